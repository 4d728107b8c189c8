import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import { BY_STATUS, countersOfCampaign } from '../../src/reports/counters.ts'
import { assertAllCounted } from '../../test/support/counted.ts'
import { newKey } from '../../test/support/messages.ts'
import { TEXT } from '../../test/support/templates.ts'
import { until } from '../../test/support/until.ts'
import {
  createRandom,
  endLeases,
  isFull,
  kill,
  type Node,
  nextRecipient,
  readEntries,
  say,
  sendReceiptsTo,
  setScene,
  startNode,
  untilLeasesEnd,
} from './support.ts'

const PEOPLE = isFull ? 20_000 : 6_000
const PEOPLE_OF_THE_STOPPED = isFull ? 5_000 : 800
const GROUPS = 20
const WORKERS = 2
const KILLS = isFull ? 40 : 5
const CONNECTIONS = 128
const CALL_MS = 50
// About as long as making a thousand messages takes.
const CHUNK_MS = 60
// From the first claim on.
const LONGEST_LIFE_MS = isFull ? 600 : 300
const CLAIM_TIMEOUT_MS = 1_500
// Half of the receipts come after the lease has ended: others would settle what a killed worker had sent.
const LATE_MS = isFull ? 35_000 : 2_000
const TIMEOUT_MS = isFull ? 300_000 : 60_000

const random = createRandom()
const { env, pool, simulator, callerAt } = await setScene(CONNECTIONS)
const api = await startNode(env, 'api')
const caller = callerAt(api.url)
await sendReceiptsTo(simulator, api.url)
const latency = { rate: 1, ms: CALL_MS }
await simulator.ask('faults', { api: { latency }, webhooks: { late: { rate: 0.5, ms: LATE_MS } } }, 'PUT')

type CampaignOf = { id: string; phones: Set<string> }

let campaigns = 0
/** To people of its own, each of whom is in all groups but one. All of them are delivered and read. */
async function startCampaign(people: number): Promise<CampaignOf> {
  campaigns += 1
  const phones = Array.from({ length: people }, (_, n) => `+487${campaigns}${String(n).padStart(5, '0')}${10 + (n % 90)}`)
  const segmentIds = Array.from({ length: GROUPS }, (_, n) => campaigns * 100 + n)
  for (const [n, group] of segmentIds.entries()) {
    await pool.query('insert into groups (account_id, number) values ($1, $2)', [caller.accountId, group])
    const members = phones.filter((_, person) => person % GROUPS !== n)
    await pool.query('insert into group_members (account_id, group_number, phone) select $1, $2, unnest($3::text[])', [
      caller.accountId,
      group,
      members,
    ])
  }
  const request = { name: 'Proof', agentId: caller.agentId, segmentIds, message: { inline: TEXT } }
  const { status, body } = await caller.ask('POST', '/campaigns', request, { 'Idempotency-Key': newKey() })
  assert.equal(status, 202, JSON.stringify(body))
  return { id: body.campaignId, phones: new Set(phones) }
}

async function readLeases({ id }: CampaignOf): Promise<Set<string>> {
  const { rows } = await pool.query('select distinct lease from queue where campaign_id = $1 and lease is not null', [id])
  return new Set(rows.map(({ lease }) => lease))
}

async function holdsOtherThan(before: Set<string>, campaign: CampaignOf): Promise<boolean> {
  return [...(await readLeases(campaign))].some((lease) => !before.has(lease))
}

/** How many messages there are, whether these are all, and how many of them are out of the queue. */
async function progress({ id }: CampaignOf): Promise<{ made: number; areAllMade: boolean; out: number }> {
  const [{ recipients, counts }, { rows }] = await Promise.all([
    findCampaign(pool, id),
    pool.query<{ all: boolean }>('select fan_out_completed_at is not null as all from campaigns where id = $1', [id]),
  ])
  return { made: recipients, areAllMade: rows[0]?.all === true, out: recipients - counts.ACCEPTED }
}

/** Returns when the workers that run are in the midst of making messages, or, where all are made, of sending them. */
async function untilInTheMidst(campaign: CampaignOf, leasesBefore: Set<string>): Promise<void> {
  const { made, areAllMade } = await progress(campaign)
  if (!areAllMade) {
    const goal = made + Math.max((random() * (campaign.phones.size - made)) / 4, 1)
    await until('more are made', async () => {
      const now = await progress(campaign)
      return now.made >= goal || now.areAllMade
    })
    await sleep(random() * CHUNK_MS)
    return
  }
  const deadline = performance.now() + CLAIM_TIMEOUT_MS
  await until('one has claimed something', async () => {
    return performance.now() > deadline || (await holdsOtherThan(leasesBefore, campaign))
  })
  await sleep(random() * LONGEST_LIFE_MS)
}

/**
 * The counters equal the rows, all in one snapshot: at any moment, whoever writes. And a campaign that says that it is over has nothing
 * that waits.
 */
async function assertCountsAreRows({ id }: CampaignOf): Promise<void> {
  assert.ok((await assertAllCounted(pool)) > 0)
  const { rows } = await pool.query(
    `select status, sum(counted) as counted, sum(rows) as rows from (
       select by_status.status, by_status.count as counted, 0 as rows from campaigns c, lateral ${countersOfCampaign('c')} as counters, lateral (
         values ${Object.entries(BY_STATUS)
           .map(([status, count]) => `('${status}', ${count})`)
           .join(', ')}
       ) as by_status (status, count) where c.id = $1
       union all
       select status, 0, count(*) from messages where campaign_id = $1 group by status
       union all
       select 'recipients', c.recipients, (select count(*) from messages where campaign_id = $1) from campaigns c where id = $1
       union all
       select 'ACCEPTED, though over', 0, count(*) from messages m join campaigns c on c.id = m.campaign_id
       where c.id = $1 and c.status = 'COMPLETED' and m.status = 'ACCEPTED'
     ) as compared group by status having sum(counted) <> sum(rows)`,
    [id],
  )
  assert.deepEqual(rows, [])
}

async function acceptedOf({ phones }: CampaignOf): Promise<{ messageId: string; phone: string; at: string }[]> {
  return (await readEntries(simulator)).filter(({ kind, phone }) => kind === 'accepted' && phones.has(phone))
}

async function messagesOf({ id }: CampaignOf): Promise<{ id: string; recipient: string; status: string; reason: string | null }[]> {
  const { rows } = await pool.query('select id, recipient, status, failure_reason as reason from messages where campaign_id = $1', [id])
  return rows
}

/** The campaign is over, and everybody has had it: once in the network's books, by message and by phone; and so says the API. */
async function assertEverybodyOnce(campaign: CampaignOf): Promise<void> {
  const { phones } = campaign
  const over = await until(
    'all have read it',
    async () => {
      const { body } = await caller.ask('GET', `/campaigns/${campaign.id}`)
      return body.status === 'COMPLETED' && body.counts.READ === body.recipients && body
    },
    TIMEOUT_MS,
  )
  assert.deepEqual(
    [over.recipients, over.counts],
    [phones.size, { ACCEPTED: 0, SENT: 0, DELIVERED: 0, READ: phones.size, FAILED: 0, EXPIRED: 0 }],
  )
  await assertCountsAreRows(campaign)
  const messages = await messagesOf(campaign)
  const accepted = await acceptedOf(campaign)
  assert.deepEqual([messages.length, accepted.length], [phones.size, phones.size])
  assert.deepEqual(new Set(accepted.map(({ phone }) => phone)), phones, 'not everybody has one')
  assert.deepEqual(
    new Map(accepted.map(({ messageId, phone }) => [messageId, phone])),
    new Map(messages.map(({ id, recipient }) => [id, recipient])),
  )
}

/** A message beside the campaign is sent: so the worker has looked at all that was due when this began. */
async function untilWorkerHasLooked(): Promise<void> {
  const messageId = await caller.accepted({ recipient: nextRecipient() })
  await until('it is sent', async () => !['ACCEPTED', 'SENDING'].includes((await caller.read(messageId)).body.status), TIMEOUT_MS)
}

type Stopped = { waiting: Set<string>; held: Set<string> }

/**
 * A worker that sends until somebody stops the campaign at a random moment, and is killed when that has just happened. Returns what waits
 * then, and what was under way, of which nobody here knows whether the network has it.
 */
async function stopAndKill(campaign: CampaignOf, stop: 'PAUSED' | 'CANCELLED'): Promise<Stopped> {
  const worker = await startNode(env, 'delivery')
  const goal = 1 + (random() * campaign.phones.size) / 2
  await until('some are out', async () => (await progress(campaign)).out >= goal)
  await moveCampaign(pool, campaign.id, stop)
  await sleep(random() * CALL_MS)
  await kill(worker)
  const { rows } = await pool.query<{ id: string; isHeld: boolean }>(
    'select message_id as id, lease is not null as "isHeld" from queue where campaign_id = $1',
    [campaign.id],
  )
  const [held, waiting] = [true, false].map((isHeld) => new Set(rows.filter((row) => row.isHeld === isHeld).map(({ id }) => id)))
  return { held, waiting } as Stopped
}

/** Another worker comes and finds the leases ended, and a campaign of which nothing is to leave. It goes on running. */
async function proveThatNothingLeaves(campaign: CampaignOf, { waiting, held }: Stopped): Promise<Node> {
  const { made } = await progress(campaign)
  const worker = await startNode(env, 'delivery')
  // The calls of the one that was killed have long since arrived.
  const readyAt = Date.now()
  await untilLeasesEnd(pool)
  for (let looks = 0; looks < 3; looks++) await untilWorkerHasLooked()
  const accepted = await acceptedOf(campaign)
  assert.deepEqual(
    accepted.filter(({ messageId }) => waiting.has(messageId)),
    [],
    'something left that had waited',
  )
  assert.deepEqual(
    accepted.filter(({ at }) => Date.parse(at) > readyAt),
    [],
    'something left after the lease',
  )
  assert.equal((await progress(campaign)).made, made)
  assert.ok(accepted.length > 0 && waiting.size > 0, 'it was stopped before or after all of it')
  await assertCountsAreRows(campaign)
  say(`stopped with ${made} made, ${accepted.length} out, ${held.size} under way at the kill, ${waiting.size} waiting`)
  return worker
}

const startWorkers = () => Promise.all(Array.from({ length: WORKERS }, () => startNode(env, 'delivery')))

test(`kill -9 of workers in a loop while a campaign to ${PEOPLE} is made and sent: everybody gets it once, and it is completed`, async () => {
  // Before the campaign: the first to start would make all of its messages while the others start.
  let workers = await startWorkers()
  const campaign = await startCampaign(PEOPLE)
  const hits = { making: 0, sending: 0 }
  let leases = new Set<string>()
  for (let kills = 1; kills <= KILLS; kills++) {
    await untilInTheMidst(campaign, leases)
    for (const worker of workers) {
      await kill(worker)
      if (!(await progress(campaign)).areAllMade) hits.making += 1
      await sleep(random() * CHUNK_MS)
    }
    if (await holdsOtherThan(leases, campaign)) hits.sending += 1
    // In the full run they end by themselves, while others go on.
    if (!isFull) say(`${await endLeases(pool)} were being sent`)
    await assertCountsAreRows(campaign)
    const { made, out } = await progress(campaign)
    if (!isFull || kills % 10 === 0) say(`${kills} times ${WORKERS} kills: ${made} made, ${out} out`)
    leases = await readLeases(campaign)
    workers = await startWorkers()
  }
  assert.ok(hits.making > 0 && hits.sending > 0, `not both were hit: ${JSON.stringify(hits)}`)
  await assertEverybodyOnce(campaign)
  for (const worker of workers) await kill(worker)
  say(`${PEOPLE} once each; ${hits.making} kills while making, ${hits.sending} rounds while sending`)
})

test(`a campaign to ${PEOPLE_OF_THE_STOPPED} that is paused, resumed, and loses its worker after both: nothing leaves in between, everybody gets it once`, async () => {
  const campaign = await startCampaign(PEOPLE_OF_THE_STOPPED)
  const second = await proveThatNothingLeaves(campaign, await stopAndKill(campaign, 'PAUSED'))
  const { out } = await progress(campaign)
  await moveCampaign(pool, campaign.id, 'RUNNING')
  await until('it goes on', async () => (await progress(campaign)).out > out)
  await sleep(random() * LONGEST_LIFE_MS)
  await kill(second)
  await assertCountsAreRows(campaign)
  say(`resumed, and killed with ${(await progress(campaign)).out} out`)
  await untilLeasesEnd(pool)
  const last = await startNode(env, 'delivery')
  await assertEverybodyOnce(campaign)
  await kill(last)
})

test(`a campaign to ${PEOPLE_OF_THE_STOPPED} that is cancelled and loses its worker: nothing leaves after the lease, and what waited is withdrawn`, async () => {
  const campaign = await startCampaign(PEOPLE_OF_THE_STOPPED)
  const stopped = await stopAndKill(campaign, 'CANCELLED')
  const last = await proveThatNothingLeaves(campaign, stopped)
  await until(
    'nothing of it is left',
    async () => {
      const { rows } = await pool.query(
        `select c.withdrawn_at is not null and not exists (select from queue q where q.campaign_id = c.id) as ended from campaigns c where c.id = $1`,
        [campaign.id],
      )
      return rows[0].ended
    },
    TIMEOUT_MS,
  )
  await kill(last)
  await assertCountsAreRows(campaign)
  const { body } = await caller.ask('GET', `/campaigns/${campaign.id}`)
  assert.deepEqual([body.status, body.counts.ACCEPTED], ['CANCELLED', 0])
  await assertWithdrawn(campaign, stopped)
})

/** Who got it got it once; all others' messages have failed, and say why. */
async function assertWithdrawn(campaign: CampaignOf, { held, waiting }: Stopped): Promise<void> {
  const accepted = await acceptedOf(campaign)
  assert.equal(new Set(accepted.map(({ phone }) => phone)).size, accepted.length, 'somebody has two')
  const taken = new Set(accepted.map(({ messageId }) => messageId))
  assert.equal(taken.size, accepted.length)
  const withdrawn = new Set<string>()
  for (const { id, status, reason } of await messagesOf(campaign)) {
    const told = `${id} is ${status}, and the network has ${taken.has(id) ? '' : 'not '}had it`
    if (status !== 'FAILED') assert.ok(taken.has(id), told)
    else {
      assert.equal(reason, 'CAMPAIGN_CANCELLED', told)
      assert.ok(!taken.has(id) || held.has(id), told)
      withdrawn.add(id)
    }
  }
  assert.deepEqual(waiting.difference(withdrawn), new Set(), 'something that waited was not withdrawn')
}
