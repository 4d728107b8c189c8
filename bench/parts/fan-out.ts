import { acceptCampaign } from '../../server/src/campaigns/accept.ts'
import type { MessageContent } from '../../server/src/content/content.ts'
import { CHUNK, fanOut as fanOutChunk } from '../../server/src/delivery/campaigns/fan-out.ts'
import { startDue } from '../../server/src/delivery/campaigns/lifecycle.ts'
import { createErasedPeople } from '../../server/src/erasure/erased.ts'
import { PRIORITIES } from '../../server/src/messages/states.ts'
import { DEFAULT_LIFE_HOURS } from '../../server/src/messages/store.ts'
import { grouped, once, ratioAtLeast } from '../measure/figures.ts'
import { cpuOfAll, watchMemory } from '../measure/process-usage.ts'
import { type Rate, reportRates, showRate, sideOf, takeTurns, timed } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { AGENT, createBenchAgent, createSender, MESSAGE } from '../setup/accounts.ts'
import { createDatabase, type Database, startPostgres } from '../setup/postgres.ts'

const erased = createErasedPeople(Buffer.alloc(32))

// The messages of a campaign, created while nothing sends. The limit is a bare `insert … select` of the same rows into the same tables, empty
// each time, in chunks as large as the fan-out's. One statement is slower: ids begin with the time of their transaction and go on at random, so
// the ids of one large transaction touch the indexes everywhere.

const ROUNDS = 3
const TARGET = ratioAtLeast(0.6)
const PERSONAL_TARGET = ratioAtLeast(0.7)
// Every recipient is in all of them. With statistics, PostgreSQL would rather sort all members for every chunk.
const GROUPS = [1, 2, 3]
const MIB = 2 ** 20

const PERSONAL: MessageContent = {
  type: 'MESSAGE',
  content: 'Hello {{name}}, your order {{order}} leaves for {{city}} on {{day}}.',
}

type Sending = Database & { accountId: number; recipients: number; postmaster: number; message?: MessageContent }

export async function measureFanOut(bench: Bench): Promise<void> {
  const recipients = bench.quick ? 50_000 : 1_000_000
  const postgres = await startPostgres()
  const database = await createDatabase(postgres)
  await createBenchAgent(database.pool)
  const { accountId } = await createSender(database.pool)
  const sending = { ...database, accountId, recipients, postmaster: postgres.postmaster }
  await createGroups(sending)
  const ours = sideOf('fan-out', () => measure(sending, () => runFanOut(sending)))
  const personal = sideOf('with four attributes of each member in the content', () =>
    measure({ ...sending, message: PERSONAL }, () => runFanOut(sending)),
  )
  const bare = sideOf(`bare insert … select, in chunks of ${grouped(CHUNK)}`, () => measure(sending, (id) => runBare(sending, id)))
  const endWatching = watchMemory(process)
  await takeTurns(bench, [ours, personal, bare], { rounds: ROUNDS, show: showRate })
  const { before, peak } = endWatching()
  reportRates(bench, ours, bare, TARGET)
  reportRates(bench, personal, ours, PERSONAL_TARGET)
  reportRates(bench, bare, undefined)
  const limit = { what: 'before', ...once(before / MIB) }
  bench.report({ what: 'memory of this process at its peak', unit: 'MiB', measured: once(peak / MIB), limit })
}

async function createGroups({ client, accountId, recipients }: Sending): Promise<void> {
  for (const group of GROUPS) {
    await client.query('insert into groups (account_id, number) values ($1, $2)', [accountId, group])
    await client.query(
      `insert into group_members (account_id, group_number, phone, attributes)
       select $1, $2, '+48' || (500000000 + n), json_build_object('name', 'Customer ' || n, 'city', 'Gdynia', 'order', n::text, 'day', 'Monday')
       from generate_series(1, $3::int) as n`,
      [accountId, group, recipients],
    )
  }
  await client.query('vacuum analyze group_members')
}

async function measure(sending: Sending, work: (campaignId: string) => Promise<void>): Promise<Rate> {
  const { client, recipients, postmaster } = sending
  await client.query('truncate messages, queue, report_deltas')
  await client.query('checkpoint')
  const campaignId = await startCampaign(sending)
  const rate = await timed(
    recipients,
    () => cpuOfAll({}, postmaster),
    () => work(campaignId),
  )
  await checkRows(sending, campaignId)
  // The fan-out must not create the messages of the bare statement again.
  await client.query(`update campaigns set status = 'COMPLETED', completed_at = now() where status = 'RUNNING'`)
  return rate
}

let campaigns = 0

async function startCampaign({ pool, accountId, message = MESSAGE }: Sending): Promise<string> {
  campaigns += 1
  const { campaignId } = await acceptCampaign(pool, {
    accountId,
    agentId: AGENT,
    name: 'Bench',
    segmentIds: GROUPS,
    message: { inline: message },
    fallback: undefined,
    idempotency: { key: `${campaigns}`, hash: Buffer.alloc(32) },
  })
  await startDue(pool)
  return campaignId
}

async function runFanOut({ pool }: Sending): Promise<void> {
  for (let isLeft = true; isLeft; ) {
    const { mayBeMore, failed } = await fanOutChunk(pool, erased)
    if (failed !== undefined) throw failed.error
    isLeft = mayBeMore
  }
}

/** The rows that the fan-out writes for each message. Its counters and its cursor are a few rows for a chunk. */
const BARE = `
  with made as materialized (
    select uuid_v7() as id, phone from group_members where account_id = $1 and group_number = ${GROUPS[0]} and phone > $4 and phone <= $5
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, content_id, expires_at, traffic, campaign_id)
    select id, $1::int, '${AGENT}', phone, false, false, $2::bigint, now() + interval '${DEFAULT_LIFE_HOURS} hours', 'PROMOTION', $3::uuid from made
  )
  insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at)
  select id, $1, '${AGENT}', 'send', ${PRIORITIES.campaign}, $3, now(), now() + interval '${DEFAULT_LIFE_HOURS} hours' from made`

async function runBare({ client, accountId, recipients }: Sending, campaignId: string): Promise<void> {
  const { rows } = await client.query('select content_id from campaigns where id = $1', [campaignId])
  const phoneAt = (n: number) => `+48${500_000_000 + n}`
  for (let from = 0; from < recipients; from += CHUNK) {
    const bounds = [phoneAt(from), phoneAt(Math.min(from + CHUNK, recipients))]
    await client.query({ name: 'bare', text: BARE, values: [accountId, rows[0].content_id, campaignId, ...bounds] })
  }
}

/** Fails unless each recipient has one message, and each message one entry in the queue. */
async function checkRows({ client, recipients }: Sending, campaignId: string): Promise<void> {
  const { rows } = await client.query(
    `select count(*)::int as messages, count(distinct m.recipient)::int as recipients, count(q.message_id)::int as queued
     from messages m left join queue q on q.message_id = m.id where m.campaign_id = $1`,
    [campaignId],
  )
  const isRight = Object.values(rows[0]).every((count) => count === recipients)
  if (!isRight) throw new Error(`instead of ${recipients} each: ${JSON.stringify(rows[0])}`)
}
