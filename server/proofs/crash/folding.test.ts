import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createPool, isUnavailable } from '../../src/db/pool.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { COUNTED } from '../../src/reports/counters.ts'
import { assertAllCounted, readCounted } from '../../test/support/counted.ts'
import { callerAt, type MessageCaller, newKey } from '../../test/support/messages.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import {
  assertDeliveredOnce,
  endLeases,
  inParallel,
  isFull,
  kill,
  type Node,
  nextRecipient,
  say,
  sendReceiptsTo,
  settingsFor,
  startNode,
  untilDelivered,
} from './support.ts'

const ROUNDS = isFull ? 20 : 1
const NODES = 2
const SENDERS = isFull ? 4 : 2
const QUIET_MESSAGES = 3
const TIMEOUT_MS = 60_000

// A PostgreSQL of its own: one of its processes is killed, upon which it ends all others and recovers.
const server = await startPostgres()
const pool = createPool({ connectionString: server.url }, () => {})
// Of thousands of messages a comparison takes longer than the service's statements may.
const patient = new pg.Pool({ connectionString: server.url }).on('error', () => {})
after(async () => {
  await Promise.all([pool.end(), patient.end()])
  await server.stop()
})
await migrate(pool)
await ensurePartitions(pool)
const simulator = await startSimulator()
const env = { ...(await settingsFor(simulator)), HERALD_DATABASE_URL: server.url }
const api = await startNode(env, 'api')
await sendReceiptsTo(simulator, api.url)
const [busy, quiet] = [await newCaller(), await newCaller()]
const nodes: Node[] = await Promise.all(Array.from({ length: NODES }, () => startNode(env, 'delivery')))

async function newCaller(): Promise<MessageCaller> {
  const caller = await createCaller(pool)
  return callerAt(api.url, { ...caller, agentId: await createAssignedAgent(pool, caller.accountId) })
}

const ids: string[] = []
const senders = new Map<string, MessageCaller>()
let isSending = true
let isOver = false

/** Until it is accepted: while the database recovers, it is not. */
async function send(caller: MessageCaller): Promise<void> {
  const [key, body] = [newKey(), caller.request({ recipient: nextRecipient() })]
  const { messageId } = await until('it is accepted', async () => {
    const answer = await caller.send(key, body)
    assert.ok([202, 503].includes(answer.status), `answered with ${answer.status}`)
    if (answer.status !== 202) await sleep(100)
    return answer.status === 202 ? (answer.body as { messageId: string }) : undefined
  })
  ids.push(messageId)
  senders.set(messageId, caller)
}

async function sendOnAndOn(): Promise<void> {
  await inParallel(Array(SENDERS).keys(), SENDERS, async () => {
    while (isSending) await send(busy)
  })
}

let looks = 0
/** At every moment, whoever folds or dies, the counters are what the rows say. */
async function lookOnAndOn(): Promise<void> {
  while (!isOver) {
    try {
      await assertAllCounted(patient)
      looks += 1
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
    await sleep(100)
  }
}

let quietMessages = 0
/** What was answered is what is counted. */
async function assertQuietCounted(when: string): Promise<void> {
  const hours = await readCounted(pool, quiet)
  const accepted = hours.reduce((sum, { counts }) => sum + (counts.accepted ?? 0), 0)
  assert.equal(accepted, quietMessages, when)
}

/** Takes hold of the counters of this hour and the next, which may begin meanwhile. Returns how to let them go. */
async function holdCounters(): Promise<() => Promise<void>> {
  const client = new pg.Client(server.url)
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query(
    `insert into report_totals as c (account_id, campaign_id, hour, ${COUNTED.join(', ')})
     select account, $2::uuid, date_trunc('hour', now(), 'UTC') + n * interval '1 hour', ${COUNTED.map(() => 0).join(', ')}
     from unnest($1::int[]) as account, generate_series(0, 1) as n order by 1, 2, 3
     on conflict (account_id, campaign_id, hour) do update set accepted = c.accepted`,
    [[busy.accountId, quiet.accountId], NO_CAMPAIGN],
  )
  return async () => {
    await client.query('rollback').catch(() => {})
    await client.end().catch(() => {})
  }
}

type Held = { pid: number; node: string }

/** Folds that have taken their changes, and wait to add them to the counters. */
async function heldFolds(): Promise<Held[]> {
  const { rows } = await pool.query<Held>(
    `select pid, application_name as node from pg_stat_activity
     where wait_event_type = 'Lock' and application_name like 'delivery %' and query like '%delete from report_deltas%'`,
  )
  return rows
}

/** All changes of the account that is quiet are in the hands of folds that are held. */
async function untilFoldsAreHeld(): Promise<Held[]> {
  return await until('folds are held', async () => {
    const { rows } = await pool.query<{ changes: number }>('select count(*) as changes from report_deltas where account_id = $1', [
      quiet.accountId,
    ])
    const { rowCount: free } = await pool.query('select from report_deltas where account_id = $1 for update skip locked', [quiet.accountId])
    const held = await heldFolds()
    return (rows[0]?.changes ?? 0) > 0 && free === 0 && held.length > 0 ? held : undefined
  })
}

const nameOf = ({ databaseUrl }: Node) => new URL(databaseUrl).searchParams.get('application_name')

/** What befalls the folds that are held, and then those who hold them. */
const FATES: Record<string, (held: Held[], letGo: () => Promise<void>) => Promise<void>> = {
  'kill -9 of their nodes': async (held, letGo) => {
    const killed = nodes.filter((node) => held.some((fold) => fold.node === nameOf(node)))
    for (const { child } of killed) child.kill('SIGKILL')
    for (const { ended } of killed) await ended
    await assertQuietCounted('after the nodes are gone, and before their folds are')
    // Nobody is left whom PostgreSQL could tell that they are done.
    await letGo()
    for (const node of killed) await kill(node)
    await Promise.all(killed.map(async (node) => nodes.splice(nodes.indexOf(node), 1, await startNode(env, 'delivery'))))
  },
  'the end of their connections': async (held, letGo) => {
    for (const { pid } of held) await pool.query('select pg_terminate_backend($1)', [pid])
    const pids = held.map(({ pid }) => pid)
    await until('they are gone', async () => (await heldFolds()).every(({ pid }) => !pids.includes(pid)))
    await assertQuietCounted('after the connections are gone')
    await letGo()
  },
  'kill -9 of their PostgreSQL processes': async ([first], letGo) => {
    process.kill((first as Held).pid, 'SIGKILL')
    await until('PostgreSQL has noticed', async () => !(await canAsk()))
    await until('PostgreSQL is back', canAsk, TIMEOUT_MS)
    await letGo()
  },
}

async function canAsk(): Promise<boolean> {
  return await pool.query('select').then(
    () => true,
    () => false,
  )
}

async function endFolds(fate: string): Promise<void> {
  const letGo = await holdCounters()
  for (let n = 0; n < QUIET_MESSAGES; n += 1) await send(quiet)
  quietMessages += QUIET_MESSAGES
  await assertQuietCounted('before a fold')
  const held = await untilFoldsAreHeld()
  await assertQuietCounted('while folds are held')
  const { rows } = await pool.query<{ changes: number }>('select count(*) as changes from report_deltas')
  await (FATES[fate] as (typeof FATES)[string])(held, letGo)
  await assertQuietCounted('after the folds were ended')
  const left = 'select from report_deltas where account_id = $1 limit 1'
  await until('others have folded the rest', async () => (await pool.query(left, [quiet.accountId])).rowCount === 0, TIMEOUT_MS)
  await assertQuietCounted('after others have folded the rest')
  say(`${fate}: ${held.length} folds were held, with ${rows[0]?.changes} changes in all; nothing was lost or counted twice`)
}

test(`folds that are ended in the middle, ${ROUNDS === 1 ? 'once' : `${ROUNDS} times`} each by ${Object.keys(FATES).join(', ')}: no count is lost, none is doubled`, async () => {
  const beside = Promise.all([sendOnAndOn(), lookOnAndOn()])
  beside.catch(() => {})
  try {
    for (let round = 0; round < ROUNDS; round += 1) for (const fate of Object.keys(FATES)) await endFolds(fate)
    isSending = false
    // Leases of the killed.
    if (!isFull) await endLeases(pool)
    await untilDelivered(pool, TIMEOUT_MS)
    await until('all is folded', async () => (await pool.query('select from report_deltas limit 1')).rowCount === 0)
  } finally {
    isSending = false
    isOver = true
  }
  await beside
  const reader = { ...busy, read: (id: string) => (senders.get(id) as MessageCaller).read(id) }
  await assertDeliveredOnce({ pool: patient, simulator }, reader, ids)
  const compared = await assertAllCounted(patient)
  assert.ok(compared >= 8 && looks > 10, `${compared} counters, ${looks} looks`)
  say(`${ids.length} messages, ${compared} counters, ${looks} looks meanwhile`)
})
