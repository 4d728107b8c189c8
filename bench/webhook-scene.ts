import { once } from 'node:events'
import pg from 'pg'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { ensurePartitions } from '../server/src/db/partitions.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { EVENTS_A_PAGE } from '../server/src/events/pages.ts'
import { addEndpoint } from '../server/src/webhooks/endpoints.ts'
import { benchKeyring } from './keys.ts'
import { startPostgres, urlOf } from './postgres.ts'
import { cpuOfFamilyMs } from './proc.ts'
import { type HeraldProcess, type Peer, startHerald, startPeer } from './processes.ts'

// What the measurements of webhooks have in common: a PostgreSQL of their own, durable as in production, and a process that does nothing
// but route and post.

export type Scene = {
  pool: Pool
  /** The pool ends statements after seconds. */
  bare: pg.Client
  startWorker: () => Promise<HeraldProcess>
  startSink: () => Promise<Peer>
  /** The processes that were started. */
  stopAll: () => Promise<void>
  postgresCpuMs: () => number | undefined
  close: () => Promise<void>
}

// Pages of the log do not have the time at which they got their place: it is that of the router's commit.
const COMMIT_TIMES = { track_commit_timestamp: 'on' }

export async function setScene(): Promise<Scene> {
  const server = await startPostgres(COMMIT_TIMES)
  const pool = createPool(server.connection, () => {})
  await migrate(pool)
  await ensurePartitions(pool)
  const bare = new pg.Client(server.connection)
  await bare.connect()
  const databaseUrl = urlOf(server.connection)
  const started: { stop: () => Promise<void> }[] = []
  async function keep<T extends { stop: () => Promise<void> }>(starting: Promise<T>): Promise<T> {
    const process = await starting
    started.push(process)
    return process
  }
  async function stopAll(): Promise<void> {
    for (const { stop } of started.splice(0).toReversed()) await stop()
  }
  async function close(): Promise<void> {
    await stopAll()
    await bare.end()
    await pool.end()
    await server.stop()
  }
  return {
    pool,
    bare,
    startWorker: () =>
      keep(startHerald(['--only', 'webhooks'], { HERALD_DATABASE_URL: databaseUrl, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' })),
    startSink: () => keep(startPeer('sink-peer.ts')),
    stopAll,
    postgresCpuMs: () => cpuOfFamilyMs(server.postmaster),
    close,
  }
}

export async function createSubscriber(pool: Pool, peer: Peer, path: string): Promise<{ accountId: number; endpointId: number }> {
  const { accountId } = await createAccount(pool, 'Bench', ['rcs'])
  return { accountId, endpointId: await subscribe(pool, accountId, peer, path) }
}

export async function subscribe(pool: Pool, accountId: number, { port }: Peer, path: string): Promise<number> {
  return (await addEndpoint(pool, { accountId, url: `http://127.0.0.1:${port}${path}` }, benchKeyring())).endpointId
}

export async function askSink({ child }: Peer, question: 'count' | 'arrivals') {
  child.send(question)
  const [answer] = await once(child, 'message')
  return answer as { count: number; arrivals: [number, number][] }
}

const KINDS = ['message.sent', 'message.delivered', 'message.read']

/** As a campaign leaves them: all are sent, then all are delivered, then all are read. Committed together. They have no place in the log yet. */
export async function fillLog(bare: pg.Client, accountId: number, count: number): Promise<void> {
  const messages = Math.ceil(count / KINDS.length)
  await bare.query(
    `insert into log_pages (account_id, event_count, events)
     select $1, count(*), json_agg(json_build_array(($3::text[])[n / $4 + 1], now()::timestamptz(3), md5((n % $4)::text)::uuid, 'order-' || n % $4, 'bench',
       '+48' || 500000000 + n % $4, null, false, null) order by n)
     from generate_series(0, $2::int - 1) as n group by n / ${EVENTS_A_PAGE} order by n / ${EVENTS_A_PAGE}`,
    [accountId, count, KINDS, messages],
  )
}

/** Nothing of the run before is left, to be read or to be written. */
export async function clear(bare: pg.Client): Promise<void> {
  await bare.query('truncate log_pages, webhook_deliveries, webhook_attempts')
  await bare.query(`update webhook_endpoints set lease = null, leased_until = '-infinity'`)
  await bare.query('checkpoint')
}
