import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { migrate } from '../../src/db/migrate.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { createCursors } from '../../src/events/cursor.ts'
import { readFeed } from '../../src/events/feed.ts'
import { findEvent } from '../../src/events/pages.ts'
import { routeEvents } from '../../src/events/router.ts'
import { listAttempts } from '../../src/webhooks/attempts.ts'
import { enableEndpoint, findEndpoint } from '../../src/webhooks/endpoints.ts'
import { replayAll } from '../../src/webhooks/replay.ts'
import { takeDue } from '../../src/webhooks/take.ts'
import { claimMessages } from '../delivery/sms/support.ts'
import { CARRIER } from '../delivery/support.ts'
import { createTestDatabase, makePastMonths } from '../support/database.ts'
import { LOGGED_EVENTS, writeEvents } from '../support/log.ts'

// A database of the version before the log had pages, with events in the log and others that wait for their place, deliveries, cursors that
// callers keep, campaigns and a queue.

const MIGRATIONS = new URL('../../src/db/migrations/', import.meta.url)
const [BEFORE_REPORTS, BEFORE] = ['0007_events', '0013_quotas']
const names = readdirSync(MIGRATIONS)
  .map((file) => file.replace('.sql', ''))
  .sort()

const { pool } = await createTestDatabase({ empty: true, unmetered: 'messages are written by hand' })
const cursors = createCursors(randomBytes(32))

/** As the migrations of older versions left it. */
async function apply(isWanted: (name: string) => boolean): Promise<void> {
  for (const name of names.filter(isWanted)) {
    const sql = readFileSync(new URL(`${name}.sql`, MIGRATIONS), 'utf8')
    await pool.query(sql)
    const checksum = createHash('sha256').update(sql).digest('hex')
    await pool.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
  }
}

const [A, B, QUIET] = [1, 2, 3]
const [OF_A, FIRST_OF_B, SECOND_OF_B, DISABLED_OF_B] = [1, 2, 3, 4]
const CAMPAIGN = '01a1e000-0000-7000-8000-000000000001'

/** What can have become of a campaign's messages, and of how many. */
const FATES: [status: string, steps: string[], count: number][] = [
  ['ACCEPTED', [], 4],
  ['SENT', ['sent'], 2],
  ['DELIVERED', ['sent', 'delivered'], 4],
  ['READ', ['sent', 'delivered', 'read'], 1],
  ['FAILED', ['failed'], 2],
  ['EXPIRED', ['sent', 'expired'], 2],
  ['EXPIRED', ['expired'], 5],
]

let phones = 48_500_100_000

async function writeMessage(status: string, steps: string[], campaignId: string | null): Promise<void> {
  phones += 1
  const column = (step: string) => (step === 'expired' ? 'expires_at' : `${step}_at`)
  const times = Object.fromEntries(steps.map((step, index) => [column(step), `now() - interval '${70 - index} hours'`]))
  const failure = status === 'FAILED' ? { failure_reason: `'REJECTED'`, failure_description: `'No.'` } : {}
  const fields: Record<string, string> = { expires_at: `now() + interval '1 hour'`, ...times, ...failure }
  await pool.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, content, campaign_id, accepted_at, ${Object.keys(fields)})
     select overlay(gen_random_uuid()::text placing left(uuid_v7_from(at)::text, 15) from 1 for 15)::uuid, 1, 'agent', $1, $2, false, false, '{}', $3, at,
       ${Object.values(fields)}
     from (values (now() - interval '71 hours')) as accepted (at)`,
    [`+${phones}`, status, campaignId],
  )
}

async function writeCampaign(): Promise<void> {
  await pool.query(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, made_at, recipients)
     values ($1, 1, 'agent', 'Older', '{1}', false, 1, 'RUNNING', now() - interval '71 hours', now() - interval '71 hours', now(), 20)`,
    [CAMPAIGN],
  )
  for (const [status, steps, count] of FATES) for (let n = 0; n < count; n += 1) await writeMessage(status, steps, CAMPAIGN)
  for (const [status, steps] of FATES) await writeMessage(status, steps, null)
  await pool.query(
    `insert into message_events (message_id, account_id, kind, occurred_at)
     select id, account_id, kind, at from messages, lateral (
       values ('sent', sent_at), ('delivered', delivered_at), ('read', read_at), ('failed', failed_at), ('expired', case status when 'EXPIRED' then expires_at end)
     ) as step (kind, at) where at is not null`,
  )
  await pool.query(
    `insert into campaign_counts select campaign_id, status, count(*) from messages where campaign_id is not null group by 1, 2`,
  )
}

/** One of its messages is read, and another expires without having been sent: neither is folded yet. */
async function moveOn(): Promise<void> {
  const move = async (from: string, to: string, set: string, kind: string, at: string) => {
    await pool.query(
      `with moved as (
         update messages set status = '${to}', ${set}
         where id = (select id from messages where campaign_id = $1 and status = '${from}' limit 1)
         returning id, account_id, campaign_id, recipient, ${at} as at
       ), noted as (
         insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
         select id, account_id, '${kind}', at, campaign_id, recipient from moved
       ), counted as (
         insert into report_changes (account_id, campaign_id, hour, ${kind}) select account_id, campaign_id, date_trunc('hour', at, 'UTC'), 1 from moved
       )
       insert into campaign_changes select campaign_id, status, change from moved, (values ('${from}', -1), ('${to}', 1)) as c (status, change)`,
      [CAMPAIGN],
    )
  }
  await move('DELIVERED', 'READ', 'read_at = now()', 'read', 'read_at')
  await move('ACCEPTED', 'EXPIRED', `expires_at = now() - interval '1 minute'`, 'expired', 'expires_at')
}

/** As the version before read them. */
async function oldCounts(): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ status: string; count: number }>(
    `select status, sum(count)::int as count from (
       select status, count from campaign_counts where campaign_id = $1 union all select status, change from campaign_changes where campaign_id = $1
     ) as parts group by status`,
    [CAMPAIGN],
  )
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}

type Event = {
  accountId: number
  position: number
  eventId: string
  kind: string
  subjectId: string | null
  occurredAt: Date
  data: object
}

const COLUMNS = `account_id as "accountId", position, event_id as "eventId", kind, subject_id as "subjectId", occurred_at as "occurredAt", data`

/** The positions of all accounts are one count; of the last account, all has been forgotten. */
async function writeEventsOfOld(): Promise<void> {
  const place = async (accountId: number, kind: string, subjectId: string | null, hoursAgo: number, data: object) => {
    await pool.query(
      `insert into events (account_id, position, event_id, kind, subject_id, occurred_at, data, recorded_at)
       select $1, nextval('event_positions'), overlay(gen_random_uuid()::text placing left(uuid_v7_from(at)::text, 15) from 1 for 15)::uuid,
         $2, $3, at - interval '1 second', $4, at
       from (values (now() - $5 * interval '1 hour')) as recorded (at)`,
      [accountId, kind, subjectId, data, hoursAgo],
    )
  }
  await place(A, 'message.sent', 'a', 5, { messageId: 'a', text: 'Zażółć "😀"\n', number: 1e21, none: null })
  await place(B, 'message.sent', 'b', 5, { messageId: 'b' })
  await place(A, 'message.delivered', 'a', 4, { messageId: 'a' })
  await place(B, 'message.delivered', 'b', 4, { messageId: 'b' })
  await place(B, 'campaign.started', 'c', 3, { campaignId: 'c' })
  await place(A, 'message.replied', null, 2, { agentId: 'agent', recipient: '+48500100200', text: 'Hello' })
  await place(B, 'message.read', 'b', 2, { messageId: 'b' })
  await place(QUIET, 'message.sent', 'q', 2, { messageId: 'q' })
  // One place was given out by a transaction that was rolled back.
  await pool.query(`select nextval('event_positions')`)
  await pool.query(
    `insert into outbox (account_id, kind, subject_id, occurred_at, data, endpoint_id) values
       (1, 'message.read', 'a', now(), '{"messageId":"a"}', null), (2, 'webhook.test', null, now(), '{"endpointId":${SECOND_OF_B}}', ${SECOND_OF_B}),
       (1, 'message.sent', 'z', now(), '{"messageId":"z"}', null)`,
  )
}

async function writeDeliveries(): Promise<void> {
  await pool.query(
    `insert into webhook_endpoints (account_id, url) values (1, 'https://a.example'), (2, 'https://b.example'), (2, 'https://b.example/2')`,
  )
  await pool.query(
    `insert into webhook_endpoints (account_id, url, status, disabled_at, disabled_because)
     values (2, 'https://b.example/3', 'DISABLED', now() - interval '2.5 hours', 'FAILING')`,
  )
  await pool.query(
    `insert into webhook_deliveries (endpoint_id, account_id, position, attempts, due_at) values
       (1, 1, 1, 0, now() - interval '3 seconds'), (1, 1, 3, 0, now() - interval '2 seconds'), (1, 1, 6, 0, now() - interval '1 second'),
       (2, 2, 2, 10, null), (2, 2, 4, 2, now() + interval '1 hour'), (2, 2, 5, 0, now())`,
  )
  await pool.query(
    `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status) values (2, 2, 4, 2, now(), 7, 500)`,
  )
}

const LEASE = randomUUID()

async function writeQueue(): Promise<void> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from messages where status = 'ACCEPTED' and campaign_id is not null order by id limit 3`,
  )
  const due: [place: number, due: string, lease: string | null][] = [
    [0, `now() + interval '40 seconds'`, LEASE],
    [1, `now() - interval '1 minute'`, null],
    [2, `now() + interval '1 hour'`, null],
  ]
  for (const [place, at, lease] of due) {
    await pool.query(
      `insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at, attempts, lease, claimed)
       values ($1, 1, 'agent', 'send', 2, $2, ${at}, now() + interval '1 hour', $3, $4, $5)`,
      [rows[place]?.id, CAMPAIGN, lease === null ? 0 : 1, lease, lease !== null],
    )
  }
}

let old: Event[] = []
let counts: Record<string, number> = {}
let queue: { id: string; due: Date; lease: string | null }[] = []

describe('the upgrade to a log of pages', () => {
  before(async () => {
    await pool.query(
      'create table schema_migrations (name text primary key, checksum text not null, applied_at timestamptz(3) not null default now())',
    )
    await apply((name) => name <= BEFORE_REPORTS)
    await makePastMonths(pool)
    await pool.query(`insert into accounts (name, modules) select 'Older', '{rcs}' from generate_series(1, 3)`)
    await pool.query(`insert into agents (agent_id, name, billing_type, carrier) values ('agent', 'Agent', 'single', $1)`, [CARRIER])
    await pool.query(`insert into agent_assignments (account_id, agent_id) values (1, 'agent')`)
    await writeCampaign()
    await apply((name) => name > BEFORE_REPORTS && name <= BEFORE)
    await moveOn()
    await writeEventsOfOld()
    await writeDeliveries()
    await writeQueue()
    counts = await oldCounts()
    old = (await pool.query<Event>(`select ${COLUMNS} from events order by account_id, position`)).rows
    await pool.query('delete from events where account_id = $1', [QUIET])
    queue = (await pool.query('select message_id as id, due_at as due, lease from queue order by due_at')).rows
    assert.deepEqual(await migrate(pool), names.slice(names.indexOf(BEFORE) + 1))
  })

  const ofAccount = (accountId: number) => old.filter((event) => event.accountId === accountId)
  const cursorAt = ({ accountId, position, eventId }: Event) => cursors.encode(accountId, { position, mark: eventId.slice(-8) })

  test('keeps every event, with its id, place, time and data', async () => {
    const { rows } = await pool.query<Event>(
      `select ${COLUMNS} from ${LOGGED_EVENTS} as e where position is not null order by account_id, position`,
    )
    assert.deepEqual(
      rows,
      old.filter(({ accountId }) => accountId !== QUIET),
    )
    for (const accountId of [A, B]) {
      const { items, hasMore } = await readFeed(pool, cursors, accountId, { limit: 100 })
      assert.deepEqual(
        [items.map(({ eventId, kind, occurredAt, data }) => ({ eventId, kind, occurredAt, data: JSON.parse(data) })), hasMore],
        [ofAccount(accountId).map(({ eventId, kind, occurredAt, data }) => ({ eventId, kind, occurredAt, data })), false],
      )
    }
    for (const { accountId, eventId, position } of [...ofAccount(A), ...ofAccount(B)]) {
      assert.equal((await findEvent(pool, accountId, eventId))?.position, position)
    }
  })

  test('keeps every cursor that callers have, also of events that were forgotten; one beyond the log is refused', async () => {
    for (const event of old) {
      const { items } = await readFeed(pool, cursors, event.accountId, { after: cursorAt(event), limit: 100 })
      const later = event.accountId === QUIET ? [] : ofAccount(event.accountId).filter(({ position }) => position > event.position)
      assert.deepEqual(
        items.map(({ eventId }) => eventId),
        later.map(({ eventId }) => eventId),
      )
    }
    const beyond = cursors.encode(A, { position: 7, mark: '0123abcd' })
    await assert.rejects(readFeed(pool, cursors, A, { after: beyond, limit: 1 }), { code: 'RCS_INVALID_REQUEST' })
  })

  test('keeps what a delivery is about, so that events of one message are posted in their order', async () => {
    const { rows } = await pool.query(
      'select endpoint_id, position, subject_id, attempts from webhook_deliveries order by endpoint_id, position',
    )
    assert.deepEqual(rows.map(Object.values), [
      [OF_A, 1, 'a', 0],
      [OF_A, 3, 'a', 0],
      [OF_A, 6, null, 0],
      [FIRST_OF_B, 2, 'b', 10],
      [FIRST_OF_B, 4, 'b', 2],
      [FIRST_OF_B, 5, 'c', 0],
    ])
    const taken = await takeDue(pool, { lease: randomUUID(), room: new Map(), underWay: [] })
    assert.deepEqual(
      taken
        .map(({ endpointId, position, eventId, hasNext }) => [endpointId, position, eventId, hasNext])
        .sort(([a, x], [b, y]) => Number(a) - Number(b) || Number(x) - Number(y)),
      [
        [OF_A, 1, ofAccount(A)[0]?.eventId, true],
        [OF_A, 6, ofAccount(A)[2]?.eventId, false],
        [FIRST_OF_B, 5, ofAccount(B)[2]?.eventId, false],
      ],
    )
    const [attempt] = await listAttempts(pool, FIRST_OF_B, { limit: 1 })
    assert.deepEqual([attempt?.eventId, attempt?.type, attempt?.status], [ofAccount(B)[1]?.eventId, 'message.delivered', 500])
  })

  test('keeps the number of a campaign’s messages by status, folded or not, sent or not', async () => {
    assert.deepEqual(counts, { ACCEPTED: 3, SENT: 2, DELIVERED: 3, READ: 2, FAILED: 2, EXPIRED: 8 })
    assert.deepEqual((await findCampaign(pool, CAMPAIGN)).counts, counts)
  })

  test('leaves claimed entries to the worker that has them, until the lease ends', async () => {
    const { rows } = await pool.query('select message_id as id, leased_until as until, lease from queue order by due_at')
    const [waiting, leased, postponed] = queue as [(typeof queue)[0], (typeof queue)[0], (typeof queue)[0]]
    assert.deepEqual(rows[1], { id: leased.id, until: leased.due, lease: LEASE })
    await ensurePace(pool, CARRIER)
    assert.deepEqual(
      (await claimMessages(pool)).map(({ messageId }) => messageId),
      [waiting.id],
    )
    assert.deepEqual(await recordResults(pool, [{ messageId: leased.id, lease: LEASE, is: 'sent' }]), [true])
    assert.equal((await pool.query('select from queue where message_id = $1 and lease is null', [postponed.id])).rowCount, 1)
  })

  test('gives pending events their places behind all that was there, in their order, and sends a test to its endpoint alone', async () => {
    // Of the message that was sent in the test before, too.
    while ((await routeEvents(pool)).mayBeMore);
    await writeEvents(pool, [{ accountId: QUIET, subjectId: 'new' }])
    await routeEvents(pool)
    const read = async (accountId: number) => {
      const last = ofAccount(accountId).at(-1) as Event
      const { items } = await readFeed(pool, cursors, accountId, { after: cursorAt(last), limit: 100 })
      return items.map(({ kind, data }) => [kind, JSON.parse(data).messageId ?? data])
    }
    const leased = queue[1]?.id
    assert.deepEqual(await read(A), [
      ['message.read', 'a'],
      ['message.sent', 'z'],
      ['message.sent', leased],
    ])
    assert.deepEqual(await read(B), [['webhook.test', `{"endpointId":${SECOND_OF_B}}`]])
    assert.deepEqual(await read(QUIET), [['message.sent', '{}']])
    const { rows } = await pool.query(
      'select endpoint_id, position, subject_id from webhook_deliveries where position > 7 or (endpoint_id, position) = (1, 7) order by 1, 2',
    )
    assert.deepEqual(rows.map(Object.values), [
      [OF_A, 7, 'a'],
      [OF_A, 8, 'z'],
      [OF_A, 9, leased],
      [SECOND_OF_B, 8, null],
    ])
  })

  test('replays old events by the time at which they were recorded', async () => {
    await pool.query('delete from webhook_deliveries')
    assert.equal((await replayAll(pool, FIRST_OF_B, new Date(Date.now() - 3.5 * 3_600_000))).replayed, 2)
    const { rows } = await pool.query('select position, subject_id from webhook_deliveries order by position')
    assert.deepEqual(rows.map(Object.values), [
      [5, 'c'],
      [7, 'b'],
    ])
  })

  test('names the time of disabling when an endpoint is enabled that was disabled before', async () => {
    const { disabledAt } = await findEndpoint(pool, DISABLED_OF_B)
    const { missedSince } = await enableEndpoint(pool, DISABLED_OF_B)
    assert.ok(missedSince !== null)
    assert.deepEqual(missedSince, disabledAt)
    await replayAll(pool, DISABLED_OF_B, missedSince)
    const { rows } = await pool.query('select position, subject_id from webhook_deliveries where endpoint_id = $1', [DISABLED_OF_B])
    assert.deepEqual(rows.map(Object.values), [[7, 'b']])
  })
})
