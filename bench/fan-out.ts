import { parseArgs } from 'node:util'
import pg from 'pg'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { assignAgent, createAgent } from '../server/src/agents/agents.ts'
import { acceptCampaign } from '../server/src/campaigns/accept.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { ensurePartitions } from '../server/src/db/partitions.ts'
import { createPool, type Executor } from '../server/src/db/pool.ts'
import { CHUNK, fanOut } from '../server/src/delivery/campaigns/fan-out.ts'
import { startDue } from '../server/src/delivery/campaigns/lifecycle.ts'
import { PRIORITIES } from '../server/src/messages/states.ts'
import { DEFAULT_LIFE_HOURS } from '../server/src/messages/store.ts'
import { startPostgres } from './postgres.ts'
import { cpuMs } from './proc.ts'

// How fast a campaign's messages are made, and nothing else: `npm run bench:fan-out`. The yardstick is a bare `insert … select` of the same
// rows into the same tables, emptied before each run: by one statement, and in chunks as large as the fan-out's, whichever is faster. It
// runs on a PostgreSQL of its own, durable as in production.

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const RECIPIENTS = values.quick ? 50_000 : 1_000_000
const ROUNDS = 3
const MARK = 0.6
// Everybody is in all of them: once they are counted, PostgreSQL would rather sort all members for every chunk.
const GROUPS = [1, 2, 3]
const AGENT = 'bench'

const server = await startPostgres()
const pool = createPool(server.connection, () => {})
await migrate(pool)
await ensurePartitions(pool)
// The pool ends statements after seconds, and plans them as the service needs it.
const bare = new pg.Client(server.connection)
await bare.connect()
const { accountId } = await createAccount(pool, 'Bench', ['rcs'])
await createAgent(pool, { agentId: AGENT, name: AGENT, billingType: 'single', carrier: 'simulator' })
await assignAgent(pool, AGENT, accountId)

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

async function createGroups(): Promise<void> {
  for (const group of GROUPS) {
    await bare.query('insert into groups (account_id, number) values ($1, $2)', [accountId, group])
    await bare.query(
      `insert into group_members (account_id, group_number, phone) select $1, $2, '+48' || (500000000 + n) from generate_series(1, $3::int) as n`,
      [accountId, group, RECIPIENTS],
    )
  }
  await bare.query('vacuum analyze group_members')
}

let campaigns = 0
/** A campaign to the groups, which has started. */
async function startCampaign(): Promise<string> {
  campaigns += 1
  const { campaignId } = await acceptCampaign(pool, {
    accountId,
    agentId: AGENT,
    name: 'Bench',
    segmentIds: GROUPS,
    message: { inline: { type: 'MESSAGE', content: 'Your order is on its way.' } },
    fallback: undefined,
    idempotency: { key: `${campaigns}`, hash: Buffer.alloc(32) },
  })
  await startDue(pool)
  return campaignId
}

/** Empty tables, and nothing of the run before left to be written. */
async function clear(): Promise<void> {
  await bare.query('truncate messages, queue, report_deltas')
  await bare.query('checkpoint')
}

async function runFanOut(): Promise<void> {
  for (let isLeft = true; isLeft; ) {
    const { mayBeMore, failed } = await fanOut(pool)
    if (failed !== undefined) throw failed.error
    isLeft = mayBeMore
  }
}

/** The rows that the fan-out writes for each message, and nothing else: its counters and its cursor are a few rows a chunk. */
const BARE = `
  with made as materialized (
    select uuid_v7() as id, phone from group_members where account_id = $1 and group_number = ${GROUPS[0]} and phone > $4 and phone <= $5
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, content_id, expires_at, traffic, campaign_id)
    select id, $1::int, '${AGENT}', phone, false, false, $2::bigint, now() + interval '${DEFAULT_LIFE_HOURS} hours', 'PROMOTION', $3::uuid from made
  )
  insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at)
  select id, $1, '${AGENT}', 'send', ${PRIORITIES.campaign}, $3, now(), now() + interval '${DEFAULT_LIFE_HOURS} hours' from made`

async function runBare(campaignId: string, chunk: number): Promise<void> {
  const { rows } = await bare.query('select content_id from campaigns where id = $1', [campaignId])
  const phoneAt = (n: number) => `+48${500_000_000 + n}`
  for (let from = 0; from < RECIPIENTS; from += chunk) {
    const bounds = [phoneAt(from), phoneAt(Math.min(from + chunk, RECIPIENTS))]
    await bare.query({ name: `bare ${chunk}`, text: BARE, values: [accountId, rows[0].content_id, campaignId, ...bounds] })
  }
}

type Way = { what: string; by: Executor; run: (campaignId: string) => Promise<void>; runs: Run[] }
/** `cpuMicroseconds`: of PostgreSQL, for each row; what a shared machine disturbs least. */
type Run = { perSecond: number; cpuMicroseconds: number | undefined }

const fanningOut: Way = { what: 'fan-out', by: pool, run: runFanOut, runs: [] }
// Of a million, one statement takes many minutes: it is no yardstick.
const ONE_STATEMENT_MOST = 100_000
const bareWays: Way[] = [
  { what: `bare insert … select, in chunks of ${CHUNK.toLocaleString('en')}`, by: bare, run: (id) => runBare(id, CHUNK), runs: [] },
]
if (RECIPIENTS <= ONE_STATEMENT_MOST) {
  bareWays.push({ what: 'bare insert … select, one statement', by: bare, run: (id) => runBare(id, RECIPIENTS), runs: [] })
}

async function measure({ what, by, run, runs }: Way): Promise<void> {
  await clear()
  const campaignId = await startCampaign()
  // The pool has one connection as long as it is asked for one at a time.
  const { rows } = await by.query<{ pid: number }>('select pg_backend_pid() as pid')
  const before = { at: performance.now(), cpu: cpuMs(rows[0] as { pid: number }) }
  await run(campaignId)
  const cpu = cpuMs(rows[0] as { pid: number })
  const seconds = (performance.now() - before.at) / 1_000
  await checkRows(campaignId)
  // Those that were made by the bare statement are not to be made again.
  await bare.query(`update campaigns set status = 'COMPLETED', completed_at = now() where status = 'RUNNING'`)
  const cpuMicroseconds = cpu === undefined || before.cpu === undefined ? undefined : ((cpu - before.cpu) * 1_000) / RECIPIENTS
  runs.push({ perSecond: RECIPIENTS / seconds, cpuMicroseconds })
  say(`${what}: ${seconds.toFixed(1)} s, CPU ${cpuMicroseconds?.toFixed(1)} µs each`)
}

/** Fails unless each recipient has one message, and each message one entry in the queue. */
async function checkRows(campaignId: string): Promise<void> {
  const { rows } = await bare.query(
    `select count(*)::int as messages, count(distinct m.recipient)::int as recipients, count(q.message_id)::int as queued
     from messages m left join queue q on q.message_id = m.id where m.campaign_id = $1`,
    [campaignId],
  )
  const isRight = Object.values(rows[0]).every((count) => count === RECIPIENTS)
  if (!isRight) throw new Error(`${RECIPIENTS} were wanted: ${JSON.stringify(rows[0])}`)
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number
}

function rateOf({ runs }: Way): number {
  return median(runs.map(({ perSecond }) => perSecond))
}

function cpuOf({ runs }: Way): string {
  const known = runs.flatMap(({ cpuMicroseconds }) => cpuMicroseconds ?? [])
  return known.length === 0 ? '' : median(known).toFixed(1)
}

/** Round by round, since a shared machine is as fast as it is at the moment. */
function ratioOf({ runs }: Way, yardstick: Way): number {
  return median(runs.map(({ perSecond }, round) => perSecond / (yardstick.runs[round] as Run).perSecond))
}

function print(memoryBeforeMiB: number): void {
  const [yardstick] = bareWays.toSorted((a, b) => rateOf(b) - rateOf(a)) as [Way]
  const rows = [fanningOut, ...bareWays].map((way) => [
    way.what,
    Math.round(rateOf(way)).toLocaleString('en'),
    cpuOf(way),
    ratioOf(way, yardstick).toFixed(2),
  ])
  for (const [what = '', ...cells] of [['', 'a second', 'CPU µs each', 'of the faster bare'], ...rows]) {
    process.stdout.write(`${what.padEnd(48)}${cells.map((cell) => cell.padStart(20)).join('')}\n`)
  }
  const verdict = ratioOf(fanningOut, yardstick) >= MARK ? 'kept' : 'missed'
  const peakMiB = Math.round(process.resourceUsage().maxRSS / 1_024)
  process.stdout.write(`The mark of ${MARK} is ${verdict}. Memory at most ${peakMiB} MiB, ${peakMiB - memoryBeforeMiB} more than before.\n`)
}

await createGroups()
const memoryBeforeMiB = Math.round(process.memoryUsage.rss() / 1_048_576)
const ways = [fanningOut, ...bareWays]
// There and back, so that the fan-out and the chunks, which are the faster bare way, always come one after the other.
for (let round = 0; round < ROUNDS; round++) for (const way of round % 2 === 0 ? ways : ways.toReversed()) await measure(way)
print(memoryBeforeMiB)
await bare.end()
await pool.end()
await server.stop()
