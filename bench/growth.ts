import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import pg from 'pg'
import { joinEmbeddedServer } from '../server/src/db/embedded/server.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { ensurePartitions } from '../server/src/db/partitions.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { claim, ensurePace } from '../server/src/delivery/claim.ts'
import { PRIORITIES } from '../server/src/messages/states.ts'
import { CONNECTIONS, saturate } from './accept.ts'
import { openConnections } from './http-load.ts'
import type { Line } from './lines.ts'
import { median, say } from './measure.ts'
import { startHerald, temporaryDirectory } from './processes.ts'
import { type Account, AGENT, createSender, messageRequest } from './service.ts'

// Whether what is done for a message costs more where there is much of it: two databases of one PostgreSQL, one empty and one with millions of
// messages that have come to their end, in the month's table where new ones go too. The two take turns. Then what a claim takes where one
// message waits, and where a million do.

const HISTORY_MARK = 0.9
const BACKLOG_MARK = 1.2
const CHUNK = 50_000

export async function measureGrowth({ quick }: { quick: boolean }): Promise<Line[]> {
  const sizes = quick ? { history: 100_000, backlog: 50_000 } : { history: 5_000_000, backlog: 1_000_000 }
  const dataDir = temporaryDirectory()
  const server = await joinEmbeddedServer(dataDir, false, say)
  const socket = server.connection as Socket
  const databases = {
    empty: await createDatabase(socket, 'growth_empty'),
    full: await createDatabase(socket, 'growth_full'),
  }
  await fillHistory(databases.full, sizes.history)
  const lines = [
    ...(await compareAccepting(databases, sizes.history, quick)),
    ...(await compareClaiming(databases, sizes.history, quick)),
    ...(await compareBacklogs(databases.empty, sizes.backlog, quick)),
  ]
  for (const { pool, client } of Object.values(databases)) {
    await pool.end()
    await client.end()
  }
  await server.leave()
  rmSync(dataDir, { recursive: true, force: true })
  return lines
}

type Database = { url: string; pool: Pool; client: pg.Client; account: Account }
type Pair = { empty: Database; full: Database }
/** Where the embedded server listens. */
type Socket = { host: string; port: number; user: string }

/** With the tables of the service and an account that sends. `client`: without the limits of the service's own connections. */
async function createDatabase(connection: Socket, database: string): Promise<Database> {
  const first = new pg.Client({ ...connection, database: 'postgres' })
  await first.connect()
  await first.query(`create database ${database}`)
  await first.end()
  const pool = createPool({ ...connection, database }, () => {})
  await migrate(pool)
  await ensurePartitions(pool)
  const client = new pg.Client({ ...connection, database })
  await client.connect()
  const url = `postgres://${connection.user}@localhost/${database}?host=${encodeURIComponent(connection.host)}&port=${connection.port}`
  return { url, pool, client, account: await createSender(pool) }
}

/** Messages that were read, with what each leaves behind: three steps of its timeline, and its idempotency key. */
async function fillHistory({ client, account: { accountId } }: Database, messages: number): Promise<void> {
  const startedAt = performance.now()
  await client.query('set synchronous_commit = off')
  for (let from = 0; from < messages; from += CHUNK) {
    await client.query({ name: 'fill', text: FILL, values: [from, Math.min(from + CHUNK, messages) - 1, messages, accountId] })
    const done = Math.min(from + CHUNK, messages)
    if (done % (CHUNK * 10) !== 0 && done < messages) continue
    say(
      `growth: ${done.toLocaleString('en')} of ${messages.toLocaleString('en')} messages of history, after ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`,
    )
  }
  // As a database has it that grew over weeks, and so that none of it begins while something is measured.
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

/** Evenly from the first of the month until now. */
const FILL = `
  with made as materialized (
    select n, at, '+48' || 500000000 + (n::bigint * 48271 % 99999989) as recipient,
      (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid as id
    from (
      select n, (date_trunc('month', now(), 'UTC') + n::float8 / $3::int * (now() - interval '5 minutes' - date_trunc('month', now(), 'UTC')))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, status, basic, test, content, accepted_at, expires_at, sent_at, delivered_at, read_at)
    select id, $4::int, '${AGENT}', recipient, 'READ', false, false, '{"type":"MESSAGE","content":"Your order is on its way."}', at, at + interval '48 hours',
      at + interval '1 second', at + interval '3 seconds', at + interval '60 seconds'
    from made
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at)
    select id, $4, step.kind, at + step.seconds * interval '1 second' from made, (values ('sent', 1), ('delivered', 3), ('read', 60)) as step (kind, seconds)
  )
  insert into idempotency_keys (account_id, endpoint, key, request_hash, message_id, created_at)
  select $4, 'messages', md5(n || 'key'), sha256(n::text::bytea), id, at from made`

async function compareAccepting({ empty, full }: Pair, history: number, quick: boolean): Promise<Line[]> {
  const [seconds, rounds] = quick ? [1, 3] : [4, 9]
  const sides = await Promise.all([empty, full].map(openSide))
  const ratios: number[] = []
  const rates: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const [before, after] = [await runSide(sides[0] as Side, seconds), await runSide(sides[1] as Side, seconds)]
    if (round === 0) continue
    say(`growth: accepted ${before.toFixed(0)} a second with no history, ${after.toFixed(0)} with it`)
    ratios.push(after / before)
    rates.push(after)
  }
  for (const { close } of sides) await close()
  const value = median(rates)
  return [
    {
      part: 'growth',
      what: `accepted, with ${history.toLocaleString('en')} messages of history`,
      value,
      unit: 'a second',
      limit: { what: 'without', value: value / median(ratios) },
      mark: { least: HISTORY_MARK },
    },
  ]
}

type Side = { account: Account; connections: Awaited<ReturnType<typeof openConnections>>; close: () => Promise<void> }

async function openSide({ url, account }: Database): Promise<Side> {
  const api = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: url })
  const connections = await openConnections(api.url, CONNECTIONS, 202)
  async function close(): Promise<void> {
    connections.close()
    await api.stop()
  }
  return { account, connections, close }
}

async function runSide({ account, connections }: Side, seconds: number): Promise<number> {
  return (
    await saturate(
      connections,
      seconds,
      () => messageRequest(account),
      () => ({}),
    )
  ).perSecond
}

const CARRIER = { name: 'simulator', messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }
const BATCH = 64

async function timeClaim({ pool }: Database, free: number): Promise<number> {
  const from = performance.now()
  const lease = randomUUID()
  const { entries } = await claim(pool, { carrier: CARRIER, free, lease, leaseMs: 3_600_000, pausedAgents: [], calls: new Map() })
  const ms = performance.now() - from
  // Half of what is free is the most that one account gets.
  if (entries.length !== Math.max(1, Math.ceil(free / 2))) throw new Error(`of ${free} free calls a claim took ${entries.length}`)
  return ms
}

/** Exactly so many wait, all due. Not by truncating, after which every statement would be planned anew. */
async function setBacklog({ client, account: { accountId } }: Database, waiting: number): Promise<void> {
  await client.query('delete from queue')
  await client.query('vacuum queue')
  await client.query(
    `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
     select uuid_v7(), $1, '${AGENT}', 'send', ${PRIORITIES.transactional}, now() - interval '1 minute', now() + interval '48 hours' from generate_series(1, $2::int)`,
    [accountId, waiting],
  )
}

async function compareClaiming({ empty, full }: Pair, history: number, quick: boolean): Promise<Line[]> {
  const claims = quick ? 50 : 300
  const times: { empty: number[]; full: number[] } = { empty: [], full: [] }
  for (const database of [empty, full]) {
    await ensurePace(database.pool, CARRIER.name)
    await setBacklog(database, claims * BATCH * 2)
    await database.client.query('vacuum analyze queue')
  }
  for (let n = 0; n < claims; n++) {
    times.empty.push(await timeClaim(empty, BATCH))
    times.full.push(await timeClaim(full, BATCH))
  }
  return [
    {
      part: 'growth',
      what: `a claim of ${BATCH / 2}, with ${history.toLocaleString('en')} messages of history, 50 %`,
      value: median(times.full),
      unit: 'ms',
      limit: { what: 'without', value: median(times.empty) },
      mark: { most: 1.1 },
    },
  ]
}

async function compareBacklogs(database: Database, backlog: number, quick: boolean): Promise<Line[]> {
  const claims = quick ? 50 : 300
  const lines: Line[] = []
  for (const free of [1, BATCH]) {
    const taken = Math.max(1, free / 2)
    const alone: number[] = []
    const among: number[] = []
    for (let n = 0; n < claims; n++) {
      await setBacklog(database, taken)
      alone.push(await timeClaim(database, free))
    }
    await setBacklog(database, backlog)
    await database.client.query('vacuum analyze queue')
    for (let n = 0; n < claims; n++) among.push(await timeClaim(database, free))
    lines.push({
      part: 'growth',
      what: `a claim of ${taken}, of ${backlog.toLocaleString('en')} that wait, 50 %`,
      value: median(among),
      unit: 'ms',
      limit: { what: `of ${taken} that ${taken === 1 ? 'waits' : 'wait'}`, value: median(alone) },
      mark: { most: BACKLOG_MARK },
    })
  }
  return lines
}
