import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, statfsSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { createAccessTokens } from '../carriers/google-rbm/access-token.ts'
import { createHttp } from '../carriers/google-rbm/http.ts'
import type { GoogleRbmSettings } from '../carriers/google-rbm/settings.ts'
import { readCarriers } from '../carriers/settings.ts'
import type { SmppSettings } from '../carriers/smpp/settings.ts'
import type { Config } from '../config.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import { EXIT, OperatorError } from '../errors.ts'
import { MAX_COUNTED, readQueue } from '../health/backlog.ts'
import { clockDifferenceMs } from '../health/clock.ts'
import { checkProduction } from '../production.ts'
import { ROLES } from '../roles.ts'
import { readConfig, readingCommand, report, withDatabase } from './command.ts'
import { quantity } from './terminal.ts'

/** The result of one check. `says`: what was found, and for anything but `ok` what to do. */
type Finding = { check: string; result: 'ok' | 'warning' | 'failed'; says: string }
type Check = { name: string; run: () => Promise<string> }
/** `exitCode`: the exit status that the finding asks for. */
type Result = { finding: Finding; exitCode: number }

/** Thrown by a check that found something to improve; any other error means that the check failed. */
class Warning extends Error {}

const CONNECT_TIMEOUT_MS = 5_000
const CLOCK_OFF_MS = 1_000
const LOW_DISK_BYTES = 1024 ** 3
const LATE_MS = 60_000
const CERTIFICATE_DAYS = 21
const DAY_MS = 86_400_000

export const doctorCommand = readingCommand('doctor', 'check settings, database, clock, carriers, disk and TLS, and say what to do').action(
  async (options) => {
    const results = await examine()
    const findings = results.map(({ finding }) => finding)
    report(options, findings, () => [...findings.map(inWords), '', summaryOf(findings)])
    process.exitCode = Math.max(...results.map(({ exitCode }) => exitCode))
  },
)

const MARKS = { ok: 'ok     ', warning: 'warning', failed: 'FAILED ' }
const inWords = ({ check, result, says }: Finding) => `${MARKS[result]}  ${check}: ${says}`

function summaryOf(findings: Finding[]): string {
  const count = (wanted: Finding['result']) => findings.filter(({ result }) => result === wanted).length
  return `${quantity(count('ok'), 'check')} passed, ${quantity(count('warning'), 'warning')}, ${count('failed')} failed.`
}

/** Without readable settings, nothing else can be checked. */
async function examine(): Promise<Result[]> {
  let config: Config | undefined
  const settings = await resultOf({
    name: 'settings',
    run: async () => {
      config = readConfig()
      if (config.unknownVariables.length === 0) return `valid for ${config.environment}`
      throw new Warning(`not a setting: ${config.unknownVariables.join(', ')}; .env.example lists all settings`)
    },
  })
  if (config === undefined) return [settings]
  const found = config
  const checks = [...checksOf(found), ...carrierChecks(found)]
  const results = [settings]
  for (const check of checks) results.push(await resultOf(check))
  return [...results, ...(await examineDatabase())]
}

async function resultOf({ name, run }: Check): Promise<Result> {
  try {
    return { finding: { check: name, result: 'ok', says: await run() }, exitCode: 0 }
  } catch (error) {
    return failureOf(name, error)
  }
}

function failureOf(check: string, error: unknown): Result {
  const lines = error instanceof OperatorError ? error.lines : [(error as Error).message]
  const says = lines.join(' ').replace(/\.$/, '')
  if (error instanceof Warning) return { finding: { check, result: 'warning', says }, exitCode: 0 }
  const exitCode = error instanceof OperatorError ? error.exitCode : isUnavailable(error) ? EXIT.unavailable : EXIT.refused
  return { finding: { check, result: 'failed', says }, exitCode }
}

function checksOf(config: Config): Check[] {
  const checks: Check[] = [{ name: 'disk', run: async () => checkDisk(config.dataDir) }]
  if (config.environment === 'production') {
    checks.push({
      name: 'production',
      run: async () => {
        checkProduction(config, ROLES)
        return 'no setting is unsafe'
      },
    })
  }
  if (config.tls !== undefined) {
    const { cert } = config.tls
    checks.push({ name: 'TLS', run: async () => checkCertificate(new X509Certificate(cert)) })
  }
  return checks
}

function checkDisk(dataDir: string): string {
  const { bavail, bsize } = statfsSync(existingPart(dataDir))
  const free = `${((bavail * bsize) / 1024 ** 3).toFixed(1)} GiB are free in ${dataDir}`
  if (bavail * bsize < LOW_DISK_BYTES) throw new Warning(`only ${free}; make room`)
  return free
}

/** The directory, or the one that it will be created in. */
function existingPart(directory: string): string {
  return existsSync(directory) ? directory : existingPart(dirname(directory))
}

function checkCertificate({ validFromDate, validToDate }: X509Certificate): string {
  const left = Math.floor((validToDate.getTime() - Date.now()) / DAY_MS)
  if (left < 0) throw new Error(`the certificate expired on ${validToDate.toISOString()}; replace it, and send SIGHUP`)
  if (validFromDate.getTime() > Date.now()) throw new Error(`the certificate is not valid before ${validFromDate.toISOString()}`)
  if (left < CERTIFICATE_DAYS) throw new Warning(`the certificate expires in ${quantity(left, 'day')}; renew it`)
  return `the certificate is valid for ${quantity(left, 'day')}`
}

function carrierChecks({ carriersFile }: Config): Check[] {
  if (carriersFile === undefined) {
    const says = 'none is configured, so messages go to a simulated network; set HERALD_CARRIERS to go live'
    return [
      {
        name: 'carriers',
        run: async () => {
          throw new Warning(says)
        },
      },
    ]
  }
  try {
    const { rcs, sms } = readCarriers(carriersFile)
    return [
      ...rcs.map((settings) => ({ name: `carrier ${settings.name}`, run: () => checkRbm(settings) })),
      ...(sms === undefined ? [] : [{ name: `carrier ${sms.name}`, run: () => checkSmsc(sms) }]),
    ]
  } catch (error) {
    return [{ name: 'carriers', run: () => Promise.reject(error) }]
  }
}

async function checkRbm({ serviceAccount }: GoogleRbmSettings): Promise<string> {
  const http = createHttp(new URL(serviceAccount.token_uri).origin, 1, CONNECT_TIMEOUT_MS)
  try {
    await createAccessTokens(serviceAccount, http).renew()
    return 'Google accepted the service account'
  } finally {
    await http.close()
  }
}

/** Only connects: some SMSCs allow one bind, which the running service has. */
async function checkSmsc({ host, port }: SmppSettings): Promise<string> {
  const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
  socket.once('timeout', () => socket.destroy(new Error(`no connection to ${host}:${port} within 5 s`)))
  try {
    await once(socket, 'connect')
    return `${host}:${port} accepts connections`
  } catch (error) {
    throw new Error(`${(error as Error).message}; check the address and the firewall`)
  } finally {
    socket.destroy()
  }
}

async function examineDatabase(): Promise<Result[]> {
  const examineWith = async (pool: Pool) => {
    const results: Result[] = []
    for (const check of databaseChecks(pool)) results.push(await resultOf(check))
    return results
  }
  try {
    return await withDatabase(examineWith, { role: 'inspection' })
  } catch (error) {
    return [failureOf('database', error)]
  }
}

const databaseChecks = (pool: Pool): Check[] => [
  { name: 'database', run: () => checkVersion(pool) },
  { name: 'clock', run: () => checkClock(pool) },
  { name: 'connections', run: () => checkConnections(pool) },
  { name: 'delivery', run: () => checkDelivery(pool) },
]

async function checkVersion(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ version: string; accounts: number }>(
    `select current_setting('server_version') as version, (select count(*)::int from accounts) as accounts`,
  )
  return `PostgreSQL ${rows[0]?.version} with ${quantity(rows[0]?.accounts ?? 0, 'account')}; its tables are those of this version`
}

async function checkClock(pool: Pool): Promise<string> {
  const askedAt = Date.now()
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  const offMs = clockDifferenceMs(askedAt, (rows[0] as { now: Date }).now)
  if (Math.abs(offMs) > CLOCK_OFF_MS) {
    const differ = `the clocks of the database and this machine differ by ${quantity(Math.abs(offMs), 'ms', 'ms')}`
    throw new Warning(`${differ}; synchronize both with NTP`)
  }
  return `this machine and the database agree within ${CLOCK_OFF_MS / 1_000} s`
}

async function checkConnections(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ used: number; most: number }>(
    `select count(*)::int as used, current_setting('max_connections')::int as most from pg_stat_activity where num_nonnulls(datid, usesysid) = 2`,
  )
  const { used, most } = rows[0] as { used: number; most: number }
  if (used > most * 0.8) throw new Warning(`${used} of ${most} connections are in use; raise max_connections, or run fewer processes`)
  return `${used} of ${most} are in use`
}

/**
 * A message that has been due for a minute waits for a process that delivers, unless its account is suspended, its agent inactive or its
 * campaign paused.
 */
async function checkDelivery(pool: Pool): Promise<string> {
  const { due, oldestMs } = await readQueue(pool)
  if (due === 0) return 'no message is due'
  const least = due === MAX_COUNTED ? 'at least ' : ''
  const sentence = `${least}${quantity(due, 'message')} due, the oldest for ${Math.round(Number(oldestMs) / 1_000)} s`
  if (Number(oldestMs) > LATE_MS) throw new Warning(`${sentence}; does a process with the role delivery run?`)
  return sentence
}
