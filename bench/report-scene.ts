import pg from 'pg'
import { Pool as HttpPool } from 'undici'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { createKey } from '../server/src/accounts/keys.ts'
import { assignAgent, createAgent } from '../server/src/agents/agents.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { ensurePartitions } from '../server/src/db/partitions.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { assertAllCounted } from '../server/test/support/counted.ts'
import { say } from './measure.ts'
import { startPostgres, urlOf } from './postgres.ts'
import { type HeraldProcess, startHerald } from './processes.ts'
import { createCampaign, createMonths, type Half, monthBorder, writeMessages } from './report-data.ts'

// What the measurements of reports have in common: a PostgreSQL of its own, with an account that has sent so many messages by itself, another
// with a campaign of as many, and four small ones beside them.

const AGENT = 'bench'
const OTHERS = 4
/** Of each of the small accounts, as a share of a large one; half of it by a campaign. */
const SMALL = 0.01
const TEST_EVERY = 100

export type Caller = { accountId: number; authorization: string }

export type Scene = {
  pool: Pool
  /** As PostgreSQL comes: the pool ends statements after seconds, and plans them as the service needs it. */
  bare: pg.Client
  messages: number
  /** The first day of a month, in the middle of the days that the messages are of. */
  border: Date
  sender: Caller
  campaigner: Caller & { campaignId: string }
  startService: () => Promise<HeraldProcess>
  close: () => Promise<void>
}

export async function setScene(messages: number): Promise<Scene> {
  const server = await startPostgres()
  const pool = createPool(server.connection, () => {})
  const bare = new pg.Client(server.connection)
  const other = new pg.Client(server.connection)
  const started: HeraldProcess[] = []
  async function close(): Promise<void> {
    for (const { stop } of started) await stop()
    await Promise.all([bare.end(), other.end(), pool.end()])
    await server.stop()
  }
  async function startService(): Promise<HeraldProcess> {
    // Limits in memory: what they take in the database is no part of what a report takes.
    const herald = await startHerald([], { HERALD_DATABASE_URL: urlOf(server.connection), HERALD_LIMITS: 'memory' })
    started.push(herald)
    return herald
  }
  try {
    await Promise.all([bare.connect(), other.connect()])
    return { ...(await fill(pool, [bare, other], messages)), pool, bare, messages, startService, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function fill(
  pool: Pool,
  clients: [pg.Client, pg.Client],
  messages: number,
): Promise<Pick<Scene, 'border' | 'sender' | 'campaigner'>> {
  const [bare, other] = clients
  await migrate(pool)
  await ensurePartitions(pool)
  const border = await monthBorder(bare)
  await createMonths(bare, pool, border)
  await createAgent(pool, { agentId: AGENT, name: AGENT, billingType: 'single', carrier: 'simulator' })
  const sender = await createCaller(pool)
  const campaigner = await createCaller(pool)
  const campaign = await createCampaign(bare, { accountId: campaigner.accountId, agentId: AGENT, messages, border })
  await relax(bare)
  const large = [
    { accountId: campaigner.accountId, agentId: AGENT, ...campaign, messages },
    { accountId: sender.accountId, agentId: AGENT, messages },
  ]
  const write = async (client: pg.Client, half: Half) => {
    for (const one of large) await writeMessages(client, one, half, { border, say })
  }
  await Promise.all([write(bare, 'first half'), write(other, 'second half')])
  await writeOthers(pool, bare, Math.round(messages * SMALL), border)
  await settle(bare)
  return { border, sender, campaigner: { ...campaigner, campaignId: campaign.campaignId } }
}

async function createCaller(pool: Pool): Promise<Caller> {
  const { accountId } = await createAccount(pool, 'Bench', ['rcs', 'sms'])
  await assignAgent(pool, AGENT, accountId)
  const { integrationKey, secret } = await createKey(pool, accountId)
  return { accountId, authorization: `Bearer ${integrationKey}:${secret}` }
}

async function writeOthers(pool: Pool, bare: pg.Client, messages: number, border: Date): Promise<void> {
  for (let account = 0; account < OTHERS; account += 1) {
    const { accountId } = await createCaller(pool)
    const half = Math.ceil(messages / 2)
    const campaign = await createCampaign(bare, { accountId, agentId: AGENT, messages: half, border })
    for (const part of ['first half', 'second half'] as const) {
      await writeMessages(bare, { accountId, agentId: AGENT, ...campaign, messages: half }, part, { border, say })
      await writeMessages(bare, { accountId, agentId: AGENT, messages: half, testEvery: TEST_EVERY }, part, { border, say })
    }
  }
}

/** Nothing of the data need outlive a crash while it is written. */
async function relax(bare: pg.Client): Promise<void> {
  await bare.query(`alter system set max_wal_size = '16GB'`)
  await bare.query('alter system set full_page_writes = off')
  await bare.query('select pg_reload_conf()')
}

/** Durable again, counted right, and vacuumed as the server does by itself: each month for itself, and not the table of all months. */
async function settle(bare: pg.Client): Promise<void> {
  say('vacuuming')
  const { rows } = await bare.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  for (const { name } of rows) await bare.query(`vacuum analyze ${name}`)
  await bare.query('alter system reset all')
  await bare.query('select pg_reload_conf()')
  await bare.query('checkpoint')
  say('counting all anew')
  await bare.query(`set work_mem = '256MB'`)
  const compared = await assertAllCounted(bare)
  await bare.query('reset work_mem')
  say(`${compared.toLocaleString('en')} counters are what the rows say`)
}

/** Over one connection, one request at a time. `ms`: until the whole answer is there. */
export function reader({ url }: HeraldProcess) {
  const http = new HttpPool(url, { connections: 1 })
  async function get<Body>(path: string, { authorization }: Caller): Promise<{ body: Body; ms: number }> {
    const startedAt = performance.now()
    const answer = await http.request({ method: 'GET', path: `/v1${path}`, headers: { authorization } })
    const text = await answer.body.text()
    const ms = performance.now() - startedAt
    if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}: ${text}`)
    return { body: JSON.parse(text) as Body, ms }
  }
  return { get, http, close: () => http.destroy() }
}
