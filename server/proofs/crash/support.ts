import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import pg from 'pg'
import type { Executor, Pool } from '../../src/db/pool.ts'
import { assertAllCounted } from '../../test/support/counted.ts'
import { createTestDatabase } from '../../test/support/database.ts'
import { assertAllEmitted } from '../../test/support/emitted.ts'
import { KEY_FILE } from '../../test/support/keyring.ts'
import { callerAt, type MessageCaller } from '../../test/support/messages.ts'
import { freePort } from '../../test/support/ports.ts'
import { type HeraldProcess, startHerald } from '../../test/support/process.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { startSimulator, type TestSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { inParallel } from '../in-parallel.ts'
import { readEntries } from '../ledger.ts'
import { say, seconds } from '../progress.ts'
import { type Random, randomFrom } from '../random.ts'

export { inParallel, readEntries, say, seconds }

// The short run shows in a minute that the proofs work; HERALD_PROOF=full is as long as the promises are.
export const isFull = process.env.HERALD_PROOF === 'full'

/** The seed is said, and HERALD_PROOF_SEED repeats it. */
export function createRandom(): Random {
  const seed = Number(process.env.HERALD_PROOF_SEED ?? randomInt(2 ** 32))
  say(`seed ${seed}`)
  return randomFrom(seed)
}

const NO_LIMITS = { HERALD_LIMITS: 'memory', HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000' }

/** The settings of a service that sends through this simulator, RCS with `connections` calls at once. Requests are not logged. */
export async function settingsFor(simulator: TestSimulator, connections = 64): Promise<Record<string, string>> {
  const { name, ...settings } = simulator.rcs
  const { name: smsName, ...sms } = simulator.sms
  const dir = await mkdtemp(join(tmpdir(), 'herald-proof-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'carriers.json')
  const carriers = { [name]: { type: 'google-rbm', ...settings, connections }, [smsName]: { type: 'smpp', ...sms } }
  writeFileSync(file, JSON.stringify(carriers), { mode: 0o600 })
  return { ...NO_LIMITS, HERALD_CARRIERS: file, HERALD_ENCRYPTION_KEY_FILE: KEY_FILE, HERALD_LOG_LEVEL: 'warn' }
}

export type Scene = {
  pool: Pool
  simulator: TestSimulator
  env: Record<string, string>
  /** The same caller at each node. */
  callerAt: (url: string) => MessageCaller
}

/** A database, a network and a caller; `env` is for whatever processes a proof wants. */
export async function setScene(connections?: number): Promise<Scene> {
  const { url, pool } = await createTestDatabase()
  const simulator = await startSimulator()
  const caller = await createCaller(pool)
  const agentId = await createAssignedAgent(pool, caller.accountId)
  const env = { ...(await settingsFor(simulator, connections)), HERALD_DATABASE_URL: url }
  return { pool, simulator, env, callerAt: (nodeUrl) => callerAt(nodeUrl, { ...caller, agentId }) }
}

export type Roles = 'api' | 'delivery' | 'webhooks' | 'api,delivery'

/** `databaseUrl`: with a name for its connections that nobody else's have. */
export type Node = HeraldProcess & { databaseUrl: string; metricsUrl: string }

let nodes = 0
export async function startNode(env: Record<string, string>, roles: Roles): Promise<Node> {
  nodes += 1
  const url = new URL(env.HERALD_DATABASE_URL as string)
  url.searchParams.set('application_name', `${roles} ${nodes}`)
  const databaseUrl = url.href
  const metricsPort = String(await freePort())
  const settings = { ...env, HERALD_DATABASE_URL: databaseUrl, HERALD_METRICS_PORT: metricsPort }
  const herald = await startHerald(settings, undefined, ['serve', '--only', roles])
  return { ...herald, databaseUrl, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
}

/** Returns when the database, too, has done with it: a claim that it had begun is committed after its death, with a lease of its own. */
export async function kill({ child, ended, databaseUrl }: Node): Promise<void> {
  child.kill('SIGKILL')
  await ended
  const client = new pg.Client(databaseUrl)
  await client.connect()
  await until('the database has done with it', async () => {
    const others = `select from pg_stat_activity where application_name = current_setting('application_name') and pid <> pg_backend_pid()`
    return (await client.query(`${others} and datname = current_database()`)).rowCount === 0
  })
  await client.end()
}

/** Receipts go there from now on, and those that are owed come at once. */
export async function sendReceiptsTo({ ask, rcs }: TestSimulator, url: string): Promise<void> {
  await ask('webhook', { url: `${url}/carriers/${rcs.name}/webhook` }, 'PUT')
}

let numbers = 0
/** Ever another number. Of a hundred messages one is delivered and never read, the others are read. */
export function nextRecipient(): string {
  numbers += 1
  return `+4850${String(Math.floor(numbers / 90)).padStart(5, '0')}${numbers % 90 === 0 ? '01' : (numbers % 90) + 10}`
}

/** What the network did with each message: how often it took it, took it again, and put it onto a phone. */
export async function readLedger(simulator: TestSimulator): Promise<Map<string, Record<string, number>>> {
  const byMessage = new Map<string, Record<string, number>>()
  for (const { messageId, kind } of await readEntries(simulator)) {
    const kinds = byMessage.get(messageId) ?? {}
    kinds[kind] = (kinds[kind] ?? 0) + 1
    byMessage.set(messageId, kinds)
  }
  return byMessage
}

/** Ends the leases of killed workers. What they held is due, and first of all: a claim has not moved it. */
export async function endLeases(pool: Pool): Promise<number> {
  const { rowCount } = await pool.query(`update queue set leased_until = now() - interval '1 minute' where leased_until > now()`)
  return rowCount ?? 0
}

/** Nobody holds anything; whoever is alive must have nothing under way. The full run waits until all leases have ended by themselves. */
export async function untilLeasesEnd(pool: Pool): Promise<void> {
  await until(
    'no lease runs',
    async () => {
      if (!isFull) await endLeases(pool)
      const { rowCount } = await pool.query('select from queue where leased_until > now() limit 1')
      return rowCount === 0
    },
    60_000,
  )
}

/** As `endLeases`, of SMS. Returns the messages whose SMS the network was asked to take, or was about to be. */
export async function endSmsLeases(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ messageId: string; submitting: boolean }>(
    `update sms_queue set due_at = now() - interval '1 minute' where lease is not null and due_at > now()
     returning message_id as "messageId", submitted_under is not null as submitting`,
  )
  return rows.filter(({ submitting }) => submitting).map(({ messageId }) => messageId)
}

/** How many are not yet where they will end, the phone that delivers and never reads included. */
export async function countUnsettled(pool: Pool): Promise<number> {
  const { rows } = await pool.query(
    `select count(*) from (
       select message_id from queue
       union
       select id from messages where status not in ('READ', 'FAILED') and not (status = 'DELIVERED' and recipient like '%01')
     ) as unsettled`,
  )
  return rows[0].count
}

/** Waits until every message is where it ends; returns how long that took. */
export async function untilDelivered(pool: Pool, timeoutMs: number): Promise<number> {
  const from = performance.now()
  await until('all messages are delivered', async () => (await countUnsettled(pool)) === 0, timeoutMs)
  return performance.now() - from
}

/**
 * Exactly these messages exist, no others: in the database, and each taken once and delivered once by the network. Everyone's state is read
 * through the API, and reports count what has become of them. Returns how many the network was handed again, which it ignores.
 */
export async function assertDeliveredOnce({ pool, simulator }: Pick<Scene, 'pool' | 'simulator'>, caller: MessageCaller, ids: string[]) {
  const expected = new Set(ids)
  assert.equal(expected.size, ids.length, 'two keys have the same message')
  const { rows } = await pool.query<{ id: string }>('select id from messages')
  assert.deepEqual(new Set(rows.map(({ id }) => id)), expected, 'the database holds other messages than were answered')
  const ledger = await readLedger(simulator)
  assert.deepEqual(new Set(ledger.keys()), expected, 'the network got other messages than were answered')
  let repeated = 0
  for (const [id, { accepted, delivered, repeated: again = 0 }] of ledger) {
    assert.deepEqual({ id, accepted, delivered }, { id, accepted: 1, delivered: 1 })
    repeated += again
  }
  await inParallel(ids, 20, async (id) => {
    const { status, body } = await caller.read(id)
    const isRead = !body.recipient?.endsWith('01')
    assert.deepEqual({ id, status, is: body.status }, { id, status: 200, is: isRead ? 'READ' : 'DELIVERED' })
  })
  await unhurried(pool, async (db) => {
    await assertSteps(db)
    assert.ok((await assertAllCounted(db)) > 0)
  })
  return { repeated }
}

/** Every step once: in the log of each message, in its order, and in the timelines of a campaign's messages, which alone have it. */
async function assertSteps(db: Executor): Promise<void> {
  assert.ok((await assertAllEmitted(db)) > 0)
  const { rows } = await db.query(
    `select message_id, kind, occurred_at, sum(listed) as listed, sum(columns) as columns from (
       select message_id, kind, occurred_at, 1 as listed, 0 as columns from message_events
       where kind in ('sent', 'delivered', 'read', 'failed', 'expired')
       union all
       select m.id, step.kind, step.at, 0, 1 from messages m, lateral (
         values ('sent', m.sent_at), ('delivered', m.delivered_at), ('read', m.read_at), ('failed', m.failed_at),
           ('expired', case m.status when 'EXPIRED' then m.expires_at end)
       ) as step (kind, at) where step.at is not null and m.campaign_id is not null
     ) as compared group by 1, 2, 3 having sum(listed) <> sum(columns)`,
  )
  assert.deepEqual(rows, [])
}

/** Compares by a connection without the service's time limits: of thousands of messages it takes longer than its statements may. */
async function unhurried<T>({ options }: Pool, compare: (db: Executor) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...options, statement_timeout: 0, query_timeout: 0, idle_in_transaction_session_timeout: 0 })
  await client.connect()
  try {
    return await compare(client)
  } finally {
    await client.end()
  }
}
