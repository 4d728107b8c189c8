import { readFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { to as copyTo } from 'pg-copy-streams'
import { type Column, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from '../server/src/reports/exports/columns.ts'
import { median, printTable, say } from './measure.ts'
import { cpuMs } from './proc.ts'
import type { HeraldProcess } from './processes.ts'
import { type Caller, reader, type Scene } from './report-scene.ts'

// How fast the exports are, against a bare COPY of the same rows and columns, and how much memory the service takes for them.

const MARKS = { ofCopy: 0.5, moreMiB: 64 }
const SAMPLED_EVERY_MS = 50
const MIB = 2 ** 20

/** What the columns of the exports are where nothing is done to them. */
const BARE_COLUMNS = new Map([
  ['messageId', 'm.id'],
  ['clientReferenceId', 'm.client_reference_id'],
  ['agentId', 'm.agent_id'],
  ['recipient', 'm.recipient'],
  ['status', 'm.status'],
  ['acceptedAt', 'm.accepted_at'],
  ['sentAt', 'm.sent_at'],
  ['deliveredAt', 'm.delivered_at'],
  ['readAt', 'm.read_at'],
  ['failedAt', 'm.failed_at'],
  ['expiredAt', `case when m.status = 'EXPIRED' then m.expires_at end`],
  ['expiresAt', 'm.expires_at'],
  ['failureReason', 'm.failure_reason'],
  ['failureDescription', 'm.failure_description'],
  ['triggeredBy', 'm.triggered_by'],
  ['clickedAt', 'did.clicked_at'],
  ['repliedAt', 'did.replied_at'],
  ['optedOutAt', 'did.opted_out_at'],
  ['smsStatus', 'f.status'],
  ['smsReason', 'f.reason'],
  ['smsSegments', 'f.segments'],
  ['smsSentAt', 'f.sent_at'],
  ['smsDeliveredAt', 'f.delivered_at'],
  ['smsFailedAt', 'f.failed_at'],
])

/** As anybody would ask for them, planned as PostgreSQL likes. */
function bareCopy(columns: readonly Column[], own: string): string {
  const selected = columns.map(({ name }) => {
    const column = BARE_COLUMNS.get(name)
    if (column === undefined) throw new Error(`the export has a column ${name}, which the bare COPY has not`)
    return `${column} as "${name}"`
  })
  return `copy (
    select ${selected.join(', ')}
    from messages m
    left join (
      select message_id, max(occurred_at) filter (where kind = 'clicked') as clicked_at, max(occurred_at) filter (where kind = 'replied') as replied_at,
        max(occurred_at) filter (where kind = 'opted-out') as opted_out_at
      from message_events where kind in ('clicked', 'replied', 'opted-out') group by message_id
    ) as did on did.message_id = m.id
    left join sms_fallbacks f on f.message_id = m.id
    where ${own} and not m.test order by m.id
  ) to stdout (format csv, header)`
}

/** `cpuMs`: of the one backend of PostgreSQL that reads, and of the service; what a shared machine disturbs least. */
type Run = { seconds: number; bytes: number; cpuMs: { postgres: number; service: number } }

async function timed(open: () => Promise<NodeJS.ReadableStream>, cpu: Cpu, onChunk = (_chunk: Buffer) => {}): Promise<Run> {
  const before = cpu()
  const startedAt = performance.now()
  let bytes = 0
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length
      onChunk(chunk)
      done()
    },
  })
  await pipeline(await open(), sink)
  const seconds = (performance.now() - startedAt) / 1_000
  const after = cpu()
  return { seconds, bytes, cpuMs: { postgres: after.postgres - before.postgres, service: after.service - before.service } }
}

type Cpu = () => Run['cpuMs']

/** `workers`: processes of PostgreSQL that may help; their CPU time is not counted. */
async function runCopy({ bare }: Scene, { copy }: Export, workers: string): Promise<Run> {
  await bare.query(`set max_parallel_workers_per_gather = ${workers}`)
  const { rows } = await bare.query<{ pid: number }>('select pg_backend_pid() as pid')
  const cpu = () => ({ postgres: cpuMs(rows[0] as { pid: number }) ?? 0, service: 0 })
  return await timed(async () => bare.query(copyTo(copy)), cpu)
}

async function runExport(scene: Scene, herald: HeraldProcess, { path, caller }: Export, onChunk?: (chunk: Buffer) => void): Promise<Run> {
  const { http, close } = reader(herald)
  const backend = watchBackend(scene)
  const cpu = () => ({ postgres: backend.cpuMs(), service: cpuMs(herald.child) ?? 0 })
  const ask = async () => {
    const { authorization } = caller
    const { statusCode, body } = await http.request({ method: 'GET', path: `/v1/reports${path}`, headers: { authorization } })
    if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}: ${await body.text()}`)
    return body
  }
  const run = await timed(ask, cpu, onChunk)
  await backend.stop()
  await close()
  return run
}

/** The backend of an export is gone when the export is over: it is looked at meanwhile. */
function watchBackend({ bare }: Scene) {
  let isOver = false
  let latest = 0
  async function watch(): Promise<void> {
    while (!isOver) {
      const { rows } = await bare.query<{ pid: number }>(`select pid from pg_stat_activity where application_name = 'herald-export'`)
      for (const row of rows) latest = Math.max(latest, cpuOf(row))
      await sleep(SAMPLED_EVERY_MS)
    }
  }
  const watching = watch()
  return {
    cpuMs: () => latest,
    stop: () => {
      isOver = true
      return watching
    },
  }
}

function cpuOf(process: { pid: number }): number {
  try {
    return cpuMs(process) ?? 0
  } catch {
    // It has just ended.
    return 0
  }
}

type Export = { what: string; path: string; caller: Caller; copy: string }

function exportsOf({ sender, campaigner }: Scene): [messages: Export, campaign: Export] {
  const { campaignId } = campaigner
  return [
    {
      what: 'export of the messages, CSV',
      path: '/messages/export',
      caller: sender,
      copy: bareCopy(MESSAGE_COLUMNS, `m.account_id = ${sender.accountId} and m.campaign_id is null`),
    },
    {
      what: 'export of the campaign, ZIP',
      path: `/campaigns/${campaignId}/all-data-export`,
      caller: campaigner,
      copy: bareCopy(RECIPIENT_COLUMNS, `m.campaign_id = '${campaignId}'`),
    },
  ]
}

/** The resident memory of a process, in MiB; 0 where the system does not say it in this way (it is Linux that does). */
function residentMiB({ child }: HeraldProcess): number {
  if (process.platform !== 'linux') return 0
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1_024
}

/** Looks at the memory until it is asked for the most that there was. */
function watchMemory(herald: HeraldProcess): () => number {
  let peak = residentMiB(herald)
  const sampling = setInterval(() => {
    peak = Math.max(peak, residentMiB(herald))
  }, SAMPLED_EVERY_MS)
  return () => {
    clearInterval(sampling)
    return peak
  }
}

/** That the export has a line for each message, and that both have been read once before they are measured. */
async function warmUp(scene: Scene, herald: HeraldProcess, one: Export): Promise<void> {
  let lines = 0
  const countLines = (chunk: Buffer) => {
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', at + 1)) lines += 1
  }
  await runExport(scene, herald, one, countLines)
  if (one.path === '/messages/export' && lines !== scene.messages + 1) throw new Error(`${lines} lines of ${scene.messages} messages`)
  await runCopy(scene, one, 'default')
}

type Way = { what: string; run: () => Promise<Run>; runs: Run[] }

/** The first is the yardstick: the plan is PostgreSQL's own, and so is the number of processes. */
function waysOf(scene: Scene, herald: HeraldProcess, one: Export): Way[] {
  return [
    { what: 'bare COPY of the same rows and columns', run: () => runCopy(scene, one, 'default'), runs: [] },
    { what: 'bare COPY, by one process', run: () => runCopy(scene, one, '0'), runs: [] },
    { what: one.what, run: () => runExport(scene, herald, one), runs: [] },
  ]
}

/** Returns whether the marks are kept. Round by round, since a shared machine is as fast as it is at the moment. */
export async function measureExports(scene: Scene, herald: HeraldProcess, rounds: number): Promise<boolean> {
  const beforeMiB = residentMiB(herald)
  const stopWatching = watchMemory(herald)
  const all: Way[][] = []
  for (const one of exportsOf(scene)) {
    say(one.what)
    await warmUp(scene, herald, one)
    const ways = waysOf(scene, herald, one)
    for (let round = 0; round < rounds; round += 1) for (const { run, runs } of ways) runs.push(await run())
    all.push(ways)
  }
  const peakMiB = stopWatching()
  process.stdout.write('\n')
  const head = ['', 'rows a second', 'MiB a second', 'of the bare COPY', 'each round', 'CPU µs: database', 'service']
  printTable(
    head,
    all.flatMap((ways) => ways.map((way) => row(way, ways[0] as Way, scene.messages))),
  )
  const [messages = []] = all
  return judge(median(ratiosOf(messages.at(-1) as Way, messages[0] as Way)), peakMiB - beforeMiB, peakMiB)
}

const ratiosOf = ({ runs }: Way, yardstick: Way) => runs.map(({ seconds }, round) => (yardstick.runs[round] as Run).seconds / seconds)

function row(way: Way, yardstick: Way, messages: number): string[] {
  const each = (pick: (run: Run) => number) => median(way.runs.map(pick))
  const ratios = ratiosOf(way, yardstick)
  return [
    way.what,
    Math.round(messages / each(({ seconds }) => seconds)).toLocaleString('en'),
    each(({ bytes, seconds }) => bytes / seconds / MIB).toFixed(1),
    median(ratios).toFixed(2),
    ratios.map((ratio) => ratio.toFixed(2)).join(' '),
    each(({ cpuMs }) => (cpuMs.postgres * 1_000) / messages).toFixed(1),
    each(({ cpuMs }) => (cpuMs.service * 1_000) / messages).toFixed(1),
  ]
}

/** The archive is compressed, too, and has other files besides: its speed is shown, and not judged. */
function judge(ofCopy: number, moreMiB: number, peakMiB: number): boolean {
  const isFast = ofCopy >= MARKS.ofCopy
  const isLean = moreMiB < MARKS.moreMiB
  process.stdout.write(`The mark of ${MARKS.ofCopy} of the bare COPY's speed, for the CSV, is ${isFast ? 'kept' : 'missed'}.\n`)
  const memory = `The service had ${peakMiB.toFixed(0)} MiB at most, ${moreMiB.toFixed(0)} more than before`
  process.stdout.write(`${memory}; the mark of ${MARKS.moreMiB} is ${isLean ? 'kept' : 'missed'}.\n`)
  return isFast && isLean
}
