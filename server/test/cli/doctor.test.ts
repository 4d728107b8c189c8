import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { suspendAccount } from '../../src/accounts/accounts.ts'
import { createSender, queueMessage } from '../delivery/support.ts'
import { installCertificate } from '../support/certificates.ts'
import { createTestDatabase } from '../support/database.ts'
import { freePort } from '../support/ports.ts'
import { runHerald } from '../support/process.ts'
import { startSimulator } from '../support/simulator.ts'

const { url: HERALD_DATABASE_URL, hotPool: pool } = await createTestDatabase()
const directory = mkdtempSync(join(tmpdir(), 'herald-doctor-'))
after(() => rmSync(directory, { recursive: true }))
const env = { HERALD_DATABASE_URL, HERALD_DATA_DIR: directory }

type Finding = { check: string; result: string; says: string }

async function examine(more: Record<string, string> = {}) {
  const { code, stdout } = await runHerald(['doctor', '--json'], { ...env, ...more })
  const findings = JSON.parse(stdout) as Finding[]
  return { code, of: (check: string) => findings.find((finding) => finding.check === check) as Finding, findings }
}

describe('herald doctor', () => {
  test('reports settings, disk, database, clock and connections of a good installation', async () => {
    const { code, of, findings } = await examine()
    assert.equal(code, 0)
    for (const check of ['settings', 'disk', 'database', 'clock', 'connections', 'delivery']) assert.equal(of(check).result, 'ok', check)
    assert.match(of('database').says, /^PostgreSQL \d+.* with \d+ accounts?; its tables are those of this version$/)
    assert.equal(of('carriers').result, 'warning')
    const { stdout } = await runHerald(['doctor'], env)
    assert.equal(stdout.split('\n').at(-2), `${findings.length - 1} checks passed, 1 warning, 0 failed.`)
  })

  test('names a misspelt setting, and a setting that is wrong', async () => {
    const misspelt = await examine({ HERALD_LOGLEVEL: 'info' })
    assert.deepEqual([misspelt.code, misspelt.of('settings').result], [0, 'warning'])
    assert.match(misspelt.of('settings').says, /^not a setting: HERALD_LOGLEVEL; /)
    const wrong = await examine({ HERALD_PORT: 'eighty' })
    assert.deepEqual([wrong.code, wrong.findings.length, wrong.of('settings').result], [2, 1, 'failed'])
    assert.match(wrong.of('settings').says, /^HERALD_PORT must be a whole number/)
  })

  test('fails without a database, and says why', async () => {
    const { code, of } = await examine({ HERALD_DATABASE_URL: 'postgres://127.0.0.1:1/x' })
    assert.deepEqual([code, of('database').result], [4, 'failed'])
    assert.match(of('database').says, /^PostgreSQL can't be reached at the address in HERALD_DATABASE_URL: .*ECONNREFUSED/)
  })

  test('creates no database and no tables, and says how to', async () => {
    const dataDir = join(directory, 'none', 'data')
    const missing = await examine({ HERALD_DATABASE_URL: '', HERALD_DATA_DIR: dataDir })
    assert.deepEqual([missing.code, missing.of('disk').result, existsSync(join(directory, 'none'))], [3, 'ok', false])
    assert.match(missing.of('database').says, new RegExp(`^There is no database in ${dataDir}: "herald serve" creates one\\. If .*URL$`))
    const empty = await createTestDatabase({ empty: true })
    const noTables = await examine({ HERALD_DATABASE_URL: empty.url })
    assert.equal(noTables.code, 3)
    assert.match(noTables.of('database').says, /^The database has no tables yet: run /)
    assert.deepEqual((await empty.pool.query(`select from pg_tables where schemaname = 'public'`)).rows, [])
  })

  test('asks Google for a token and connects to the SMSC', async () => {
    const { carriersFile } = await startSimulator()
    const { code, findings } = await examine({ HERALD_CARRIERS: carriersFile })
    const carriers = findings.filter(({ check }) => check.startsWith('carrier '))
    assert.deepEqual([code, carriers.map(({ result }) => result)], [0, ['ok', 'ok']])
    const unreachable = join(directory, 'carriers.json')
    const settings = JSON.parse(readFileSync(carriersFile, 'utf8'))
    settings['simulator-sms'].port = await freePort()
    writeFileSync(unreachable, JSON.stringify(settings), { mode: 0o600 })
    const failed = (await examine({ HERALD_CARRIERS: unreachable })).findings.find(({ result }) => result === 'failed')
    assert.match(failed?.says ?? '', /ECONNREFUSED.*; check the address and the firewall$/)
  })

  test('checks the certificate, and warns of messages that nothing delivers', async () => {
    const from = performance.now()
    await queueMessage(pool, await createSender(pool), { dueInMs: -120_000 })
    const suspended = await createSender(pool)
    await queueMessage(pool, suspended, { dueInMs: -120_000 })
    await suspendAccount(pool, suspended.accountId)
    const { of } = await examine({ ...installCertificate('ec').settings })
    assert.equal(of('delivery').result, 'warning')
    const says = /^1 message due, the oldest for (\d+) s; does a process with the role delivery run\?$/
    const seconds = Number(says.exec(of('delivery').says)?.[1])
    assert.ok(seconds >= 120 && seconds <= Math.round(120 + (performance.now() - from) / 1_000), of('delivery').says)
    assert.equal(of('TLS').result, 'ok')
  })
})
