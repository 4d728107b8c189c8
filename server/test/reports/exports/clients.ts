import { request as httpRequest, type IncomingMessage } from 'node:http'
import { after } from 'node:test'
import pg from 'pg'
import { loadConfig } from '../../../src/config.ts'
import { createExportPool, type Pool } from '../../../src/db/pool.ts'
import { handleErrors } from '../../../src/http/error-responses.ts'
import { createServer, listeningUrl } from '../../../src/http/server.ts'
import { createUnreadWatch } from '../../../src/http/unread.ts'
import { openCopy } from '../../../src/reports/exports/copy.ts'
import { exportRoutes } from '../../../src/reports/exports/routes.ts'
import type { Times } from '../../../src/reports/exports/send-export.ts'
import { openExports } from '../../../src/reports/exports/send-export.ts'
import { logger } from '../../delivery/worker.ts'
import { ownerOf } from '../../support/database.ts'
import { until } from '../../support/until.ts'

// Clients that stop reading an export or disconnect, and the state of its database connection.

export type Sender = { accountId: number; agentId: string }

/** A whole export. */
export async function fetchExport(url: string, authorization: string): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const response = await fetch(url, { headers: { authorization } })
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

/** Everything that a COPY statement writes. */
export async function readCopy(pool: Pool, statement: string): Promise<string> {
  const connections = createExportPool(pool)
  const client = await connections.connect()
  const pieces: Buffer[] = await openCopy(client, statement).body.toArray()
  client.release(true)
  await connections.end()
  return Buffer.concat(pieces).toString()
}

/** How a response ended. */
export type Ending = { is: 'whole' | 'broken'; bytes: number }

/** Requests an export, and reads nothing until `ending` is called. `response` rejects if the connection breaks before it. */
export function openExport(url: string, authorization: string) {
  const request = httpRequest(url, { headers: { authorization }, agent: false })
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (incoming) => {
      incoming.on('error', () => {})
      incoming.on('close', close)
      resolve(incoming)
    })
  })
  // Not every test awaits it.
  response.catch(() => {})
  request.end()
  return {
    response,
    /** Reads to the end. */
    ending: async (): Promise<Ending> => {
      const incoming = await response
      let bytes = 0
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      await closed
      return { is: incoming.complete && incoming.readableEnded ? 'whole' : 'broken', bytes }
    },
    /** Disconnects. */
    leave: () => request.destroy(),
  }
}

export type Activity = { pid: number; state: string; waitsFor: string | null }

/** The database connections of exports. */
export async function exportActivity(pool: Pool): Promise<Activity[]> {
  const { rows } = await ownerOf(pool).query<Activity>(
    `select pid, state, wait_event as "waitsFor" from pg_stat_activity where datname = current_database() and application_name = 'herald-export'`,
  )
  return rows
}

/** Waits until all exports wait for their clients to read. */
export async function untilStalled(pool: Pool, count = 1): Promise<Activity[]> {
  return await until(`${count} exports wait for their clients`, async () => {
    const stalled = (await exportActivity(pool)).filter(({ waitsFor }) => waitsFor === 'ClientWrite')
    return stalled.length === count ? stalled : undefined
  })
}

/** Waits until the database does nothing for exports: for less than the 300 s after which an idle client is cut off. */
export async function untilNothingRuns(pool: Pool): Promise<void> {
  await until('the database does nothing for exports', async () => (await exportActivity(pool)).length === 0)
}

/** Waits until exports wait for the lock of `whileLocked`. */
export async function untilBlocked(pool: Pool, count = 1): Promise<Activity[]> {
  return await until(`${count} exports wait for a lock`, async () => {
    const blocked = (await exportActivity(pool)).filter(({ waitsFor }) => waitsFor === 'relation')
    return blocked.length === count ? blocked : undefined
  })
}

/** Locks the table during `work`. */
export async function whileLocked<T>(databaseUrl: string, table: string, work: () => Promise<T>): Promise<T> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  try {
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    return await work()
  } finally {
    await client.end()
  }
}

/** The routes alone, with other time limits than the service. The authorization header is the account. */
export async function startExports(pool: Pool, times?: Times): Promise<string> {
  const app = createServer(loadConfig({}), logger)
  handleErrors(app)
  const { watch, allowIdle, stop } = createUnreadWatch(logger)
  watch(app)
  after(stop)
  app.addHook('onRequest', async (request) => {
    request.caller = {
      accountId: Number(request.headers.authorization),
      accountVersion: '',
      modules: ['rcs'],
      isSuspended: false,
      integrationKey: '',
      keyVersion: '',
      secretHash: Buffer.alloc(0),
      scopes: null,
      addresses: null,
    }
  })
  const exporting = openExports(app, { pool, allowIdle, ...(times && { times }) })
  await app.register(exportRoutes, { exporting, prefix: '/v1' })
  await app.listen({ host: '127.0.0.1', port: 0 })
  after(() => app.close())
  return listeningUrl(app)
}

// Together more than the system buffers for a client that does not read: 4 MB, as measured.
const VOLUME_ROWS = 5_000
const VOLUME_TEXT = `(select string_agg(encode(sha512((n || ' ' || part)::bytea), 'base64'), '') from generate_series(1, 17) as part)`

/** Failed messages of 1.6 kB with texts that hardly compress, as many single ones as of this campaign. */
export async function writeVolume(databaseUrl: string, { accountId, agentId }: Sender, campaignId: string): Promise<void> {
  // Not by the pool, whose statements have a limit of 3.5 s.
  const client = new pg.Client(databaseUrl)
  await client.connect()
  await client.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, content, expires_at, failed_at, failure_reason, failure_description, campaign_id)
     select ((select left(uuid_v7()::text, 24)) || lpad(to_hex(n * 2 + kind), 12, '0'))::uuid, $1, $2, '+48' || 500000000 + n, 'FAILED', false, false, '{}',
       now() + interval '1 day', now(), 'REJECTED', text, case kind when 1 then $3::uuid end
     from (select n, ${VOLUME_TEXT} as text from generate_series(1, $4::int) as n) as texts, generate_series(0, 1) as kind`,
    [accountId, agentId, campaignId, VOLUME_ROWS],
  )
  await client.end()
}

/** A running campaign without messages. */
export async function writeCampaign(pool: Pool, { accountId, agentId }: Sender): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    `with content as (insert into contents (account_id, basic, message) values ($1, false, '{"type":"MESSAGE","content":"Hello"}') returning id)
     insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, fan_out_completed_at)
     select uuid_v7(), $1, $2, 'Large', '{1}', false, id, 'RUNNING', now(), now(), now() from content returning id`,
    [accountId, agentId],
  )
  return rows[0]?.id as string
}
