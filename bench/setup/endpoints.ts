import { once } from 'node:events'
import { createAccount } from '../../server/src/accounts/accounts.ts'
import type { Pool } from '../../server/src/db/pool.ts'
import { addEndpoint } from '../../server/src/webhooks/endpoints.ts'
import { cpuOfFamilyMs } from '../measure/process-usage.ts'
import { benchKeyring } from './files.ts'
import { createDatabase, type Database, startPostgres } from './postgres.ts'
import { type HeraldProcess, type Peer, startHerald } from './processes.ts'

// The parts about webhooks: a database, a process that only routes and posts events, and endpoints.

export type WebhookDatabase = Database & { startWorker: () => Promise<HeraldProcess>; postgresCpuMs: () => number }

export async function createWebhookDatabase(): Promise<WebhookDatabase> {
  const postgres = await startPostgres()
  const database = await createDatabase(postgres)
  const env = { HERALD_DATABASE_URL: database.url, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
  const startWorker = () => startHerald(['--only', 'webhooks'], env)
  return { ...database, startWorker, postgresCpuMs: () => cpuOfFamilyMs(postgres.postmaster) }
}

type Subscriber = { accountId: number; endpointId: number }

/** A new account with an endpoint. */
export async function createSubscriber(pool: Pool, url: string): Promise<Subscriber> {
  const { accountId } = await createAccount(pool, 'Bench', ['rcs'])
  return { accountId, endpointId: await subscribe(pool, accountId, url) }
}

export async function subscribe(pool: Pool, accountId: number, url: string): Promise<number> {
  return (await addEndpoint(pool, { accountId, url }, benchKeyring())).endpointId
}

/** `arrivals`: the number in each event's data, and when it came. */
export async function askSink({ child }: Peer, question: 'count' | 'arrivals'): Promise<{ count: number; arrivals: [number, number][] }> {
  child.send(question)
  const [response] = await once(child, 'message')
  return response
}

/** Nothing of the round before is left to be read or written. */
export async function clearEvents({ client }: Database): Promise<void> {
  await client.query('truncate log_pages, webhook_deliveries, webhook_attempts')
  await client.query(`update webhook_endpoints set lease = null, leased_until = '-infinity'`)
  await client.query('checkpoint')
}
