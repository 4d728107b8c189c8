import type pg from 'pg'
import { Pool as HttpPool } from 'undici'
import { assertAllCounted } from '../../server/test/support/counted.ts'
import { createCampaign, createMonths, monthBorder, writeMessages } from '../data/report-messages.ts'
import { grouped } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import { type Account, createBenchAgent, createSender } from './accounts.ts'
import { createDatabase, type Database, startPostgres } from './postgres.ts'
import { type HeraldProcess, startHerald } from './processes.ts'

// The database of the parts about reports: an account with many messages sent one by one, another with a campaign of as many, and four small
// accounts beside them.

const SMALL_ACCOUNTS = 4
/** Of a small account, as a share of a large one. Half of it is a campaign. */
const SMALL_SHARE = 0.01
const TEST_EVERY = 100

export type ReportDatabase = Database & {
  messages: number
  postmaster: number
  /** The first day of a month, in the middle of the days of the messages. */
  border: Date
  sender: Account
  campaigner: Account & { campaignId: string }
}

export async function createReportDatabase({ quick, say }: Bench): Promise<ReportDatabase> {
  const messages = quick ? 50_000 : 1_000_000
  const postgres = await startPostgres()
  const database = await createDatabase(postgres)
  const { client, pool, url } = database
  const border = await monthBorder(client)
  await createMonths(database, border)
  await createBenchAgent(pool)
  await relax(client)
  const writing = { url, border, say }
  async function createCaller(count: number, testEvery: number): Promise<Account> {
    const account = await createSender(pool, ['rcs', 'sms'])
    await writeMessages(writing, { account, messages: count, testEvery })
    return account
  }
  async function addCampaign(account: Account, count: number): Promise<Account & { campaignId: string }> {
    const campaign = await createCampaign(client, account, count, border)
    await writeMessages(writing, { account, campaign, messages: count })
    return { ...account, campaignId: campaign.campaignId }
  }
  const campaigner = await addCampaign(await createSender(pool, ['rcs', 'sms']), messages)
  const sender = await createCaller(messages, 0)
  const half = Math.ceil((messages * SMALL_SHARE) / 2)
  for (let n = 0; n < SMALL_ACCOUNTS; n++) await addCampaign(await createCaller(half, TEST_EVERY), half)
  await settle(client, say)
  return { ...database, postmaster: postgres.postmaster, messages, border, sender, campaigner }
}

/** The data need not survive a crash while it is written. */
async function relax(client: pg.Client): Promise<void> {
  await client.query(`alter system set max_wal_size = '16GB'`)
  await client.query('alter system set full_page_writes = off')
  await client.query('select pg_reload_conf()')
}

/** Durable again, with the right counters, and vacuumed as the server does by itself: each partition, and not the parent of all months. */
async function settle(client: pg.Client, say: Bench['say']): Promise<void> {
  say('vacuuming')
  const { rows } = await client.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  for (const { name } of rows) await client.query(`vacuum analyze ${name}`)
  await client.query('alter system reset all')
  await client.query('select pg_reload_conf()')
  await client.query('checkpoint')
  say('comparing the counters with the rows')
  await client.query(`set work_mem = '256MB'`)
  const compared = await assertAllCounted(client)
  await client.query('reset work_mem')
  say(`${grouped(compared)} counters are right`)
}

/** Limits are in memory: their cost in the database is not that of a report. */
export async function startReportService({ url }: Database): Promise<HeraldProcess> {
  return await startHerald([], { HERALD_DATABASE_URL: url, HERALD_LIMITS: 'memory' })
}

export type Reader = ReturnType<typeof openReader>

/** Reads over one connection, one request at a time. `ms`: until the whole response is there. */
export function openReader({ url }: HeraldProcess) {
  const http = new HttpPool(url, { connections: 1 })
  async function open(path: string, { authorization }: Account) {
    const { statusCode, body } = await http.request({ method: 'GET', path: `/v1${path}`, headers: { authorization } })
    if (statusCode !== 200) throw new Error(`the response to ${path} was ${statusCode}: ${await body.text()}`)
    return body
  }
  async function get<Body>(path: string, account: Account): Promise<{ body: Body; ms: number }> {
    const startedAt = performance.now()
    const text = await (await open(path, account)).text()
    return { body: JSON.parse(text) as Body, ms: performance.now() - startedAt }
  }
  return { open, get, close: () => http.destroy() }
}
