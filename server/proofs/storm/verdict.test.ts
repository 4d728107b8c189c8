import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/support/database.ts'
import { keyring } from '../../test/support/keyring.ts'
import { startTestService } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { type Evidence, gatherEvidence, readRows, type Sources } from './evidence.ts'
import { ASKED } from './falsifications-asked.ts'
import { MESSAGES } from './falsifications-messages.ts'
import { NETWORK } from './falsifications-network.ts'
import { TOLD } from './falsifications-told.ts'
import { comeAgain, complain, endpointOf, first, forget, TRY, takenAtOf, upset } from './falsifying.ts'
import { namedAddress, watchLeases } from './leases.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import { USUAL_FAULTS } from './network.ts'
import { SHARED_SETTINGS } from './nodes.ts'
import { readLogFaults } from './processes.ts'
import { readStored, type Stored } from './stored.ts'
import { endTenancies, startTenants, stopLoads, type Tenancy } from './tenants.ts'
import type { Disturbance } from './upsets.ts'
import { isClean, judge } from './verdict.ts'
import { createCallers } from './world.ts'

// The verdict on a small run that nobody disturbs is clean; and each of its lines says WRONG as soon as something is.

const SEED = 1
const ENOUGH = 250
const PEOPLE = 30
const TIMEOUT_MS = 90_000

const { url, pool } = await createTestDatabase({ uncounted: 'counters are falsified here, to see that it is noticed' })
const simulator = await startSimulator()
// One process that does all of it: its name is of a role that takes receipts.
const settings = { ...SHARED_SETTINGS, HERALD_DATABASE_URL: namedAddress(url, 'api') }
const service = await startTestService(settings, { findCarriers: async () => simulator.settings })
await simulator.ask('faults', USUAL_FAULTS, 'PUT')
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
await watchLeases(pool)
const callers = await createCallers(pool, () => [service.url])
const judging = openForJudging(url)

/** Long ago, and of nobody who matters. */
const NOTHING: Disturbance = { victim: 'nobody', manner: 'killed', from: 0, frozenMs: 0, to: 0 }

async function runUndisturbed(): Promise<{ tenancies: Tenancy[]; evidence: Evidence }> {
  const load = { seed: SEED, rate: 50, campaigns: 2, campaignEveryMs: 500, people: PEOPLE }
  const tenants = await startTenants({ pool, keyring, callers, ...load })
  const countAsked = () => tenants.reduce((sum, tenant) => sum + tenant.load.asked.messages.length, 0)
  await until('enough is asked for', () => countAsked() >= ENOUGH)
  await stopLoads(tenants)
  await untilNothingIsLeft(judging, simulator.ask, TIMEOUT_MS)
  const tenancies = await endTenancies(tenants)
  const written = service.log().split('\n')
  const processes = { running: 1, endedByItself: [], silent: [], logs: 1, written, complaints: readLogFaults('service', written) }
  const rest = { seenBefore: [], processes, upsets: [NOTHING], stalls: [], essential: [], addresses: { api: service.url } }
  return { tenancies, evidence: await gatherEvidence({ pool: judging, ask: simulator.ask, tenancies, ...rest }) }
}

const { tenancies, evidence } = await runUndisturbed()

/** The evidence with what the database has now, by this connection. */
async function gatherAgain(db: Sources['pool']): Promise<Evidence> {
  const shownOf = new Map(evidence.messages.map(({ id, shown }) => [id, shown]))
  const messages = (await readStored(db)).map((row) => ({ ...row, shown: shownOf.get(row.id) ?? { status: 'none' } }))
  return { ...structuredClone(evidence), messages, ...(await readRows({ pool: db, tenancies, ask: simulator.ask })) }
}

function wrongLines(judged: Evidence): string[] {
  return judge(judged)
    .filter(({ wrong }) => wrong.length > 0)
    .map(({ promise }) => promise)
}

test('a run that nobody disturbs has a clean verdict', () => {
  assert.deepEqual(
    judge(evidence).flatMap(({ wrong }) => wrong),
    [],
  )
  assert.ok(isClean(judge(evidence)))
})

const FALSIFICATIONS = { ...ASKED, ...MESSAGES, ...NETWORK, ...TOLD }

for (const [promise, falsifications] of Object.entries(FALSIFICATIONS)) {
  for (const [what, falsify] of falsifications) {
    test(`"${promise}" is WRONG where it is: ${what}`, () => {
      const falsified = structuredClone(evidence)
      falsify(falsified)
      assert.ok(wrongLines(falsified).includes(promise), `only these are: ${wrongLines(falsified).join(', ')}`)
    })
  }
}

/** `wrong`: the lines that have to notice. Where the statements return an `id`, one of these lines has to name it. */
type FalsifiedRows = { what: string; wrong: string[]; statements: string[] }

const pageWhere = (condition: string, order = 'last_position') =>
  `(account_id, page_id) in (select account_id, page_id from log_pages where ${condition} order by ${order} limit 1)`
const COUNTERS_LINE = 'counters against rows'
const STATUS_LINE = 'status counts of campaigns against their messages'
const CHANGES_LINE = 'events against changes'
const LOG_LINE = 'the log has each position once, in order'
const FEED_LINE = 'the feed against the log'
const LEASES_LINE = 'results are written by who holds the lease'
const LEFT_LINE = 'nothing is left over'
const WALK_LINE = 'the walk of expiries passes no open message'
const STEPS_LINE = 'columns against timelines, events and the API'

/** Any row of a campaign's counters. */
const OF_A_CAMPAIGN = `ctid = (select ctid from report_totals where campaign_id = (select campaign_id from messages where campaign_id is not null limit 1) limit 1)`
/** Off by one, and so is one status of the campaign: each of these counters is part of one at least. */
const offByOne = (counter: string, by: '+' | '-'): FalsifiedRows => ({
  what: `a campaign counts one ${counter} too ${by === '+' ? 'many' : 'few'}`,
  wrong: [COUNTERS_LINE, STATUS_LINE],
  statements: [`update report_totals set ${counter} = ${counter} ${by} 1 where ${OF_A_CAMPAIGN} returning campaign_id as id`],
})

const FALSIFIED_ROWS: FalsifiedRows[] = [
  {
    what: 'every counter of deliveries is off by one',
    wrong: [COUNTERS_LINE],
    statements: ['update report_totals set delivered = delivered + 1 where delivered > 0'],
  },
  ...['accepted', 'sent', 'delivered', 'read', 'failed', 'expired', 'unsent'].flatMap((counter) => [
    offByOne(counter, '+'),
    offByOne(counter, '-'),
  ]),
  {
    what: 'a change that is not folded yet counts twice',
    wrong: [COUNTERS_LINE, STATUS_LINE],
    statements: [
      `insert into report_deltas (account_id, campaign_id, hour, sent) select account_id, campaign_id, hour, 1 from report_totals where ${OF_A_CAMPAIGN}
       returning campaign_id as id`,
    ],
  },
  {
    what: 'a page is removed',
    wrong: [CHANGES_LINE, LOG_LINE, FEED_LINE, STEPS_LINE],
    statements: [`delete from log_pages where ${pageWhere(`events -> 0 ->> 0 like 'message.%'`)} returning events -> 0 ->> 2 as id`],
  },
  {
    what: 'an event is removed from its page',
    wrong: [CHANGES_LINE, LOG_LINE, FEED_LINE, STEPS_LINE],
    statements: [
      `update log_pages set events = (events::jsonb - 0)::json where ${pageWhere(`event_count > 1 and events -> 0 ->> 0 like 'message.%'`)}
       returning page_id as id`,
    ],
  },
  {
    what: 'a page is written twice, and has two places',
    wrong: [CHANGES_LINE, FEED_LINE],
    statements: [
      `insert into log_pages (account_id, event_count, events, last_position)
       select p.account_id, p.event_count, p.events, h.last_position + p.event_count from log_pages p join log_heads h using (account_id)
       where ${pageWhere(`events -> 0 ->> 0 like 'message.%'`)} returning events -> 0 ->> 2 as id`,
      `update log_heads h set last_position = (select max(last_position) from log_pages p where p.account_id = h.account_id)`,
    ],
  },
  {
    what: 'two pages have one position',
    wrong: [LOG_LINE],
    statements: [
      `update log_pages set last_position = last_position - 1 where ${pageWhere('event_count > 1 and last_position > event_count')} returning page_id as id`,
    ],
  },
  {
    what: 'a page has no place',
    wrong: [LOG_LINE, FEED_LINE, LEFT_LINE],
    statements: [`update log_pages set last_position = null where ${pageWhere('last_position > 1')} returning page_id as id`],
  },
  {
    what: 'a page has moved behind a position that was read',
    wrong: [LOG_LINE, FEED_LINE],
    statements: [`update log_pages set last_position = 0 where ${pageWhere('true', 'last_position desc')} returning page_id as id`],
  },
  {
    what: 'two pages of a message have changed places',
    wrong: [LOG_LINE, FEED_LINE],
    statements: [
      `create temporary table swapped on commit drop as
       with event as materialized (
         select p.account_id, p.page_id, p.last_position, e ->> 0 as kind, e ->> 2 as id from log_pages p, json_array_elements(p.events) as e
       )
       select one.account_id, one.page_id as one, other.page_id as other, one.last_position as one_at, other.last_position as other_at, one.id
       from event one join event other on one.id = other.id and one.page_id <> other.page_id
       where one.kind = 'message.sent' and other.kind = 'message.delivered' limit 1`,
      `create temporary table moved on commit drop as
       select p.page_id, sum(p.event_count) over (
         order by case p.page_id when s.one then s.other_at when s.other then s.one_at else p.last_position end) as position
       from log_pages p join swapped s using (account_id)`,
      // By way of places that no page has, since no two may have one.
      'update log_pages p set last_position = -m.position from moved m where p.page_id = m.page_id',
      'update log_pages p set last_position = -last_position where last_position < 0',
      'select id from swapped',
    ],
  },
  {
    what: 'the head of an account is behind',
    wrong: [LOG_LINE],
    statements: ['update log_heads set last_position = last_position - 1'],
  },
  {
    what: 'a queue entry is left leased',
    wrong: [LEASES_LINE, LEFT_LINE],
    statements: [
      `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
       select id, account_id, agent_id, 'revoke', 1, now(), expires_at from messages where status = 'EXPIRED' order by id limit 1`,
      `update queue set lease = gen_random_uuid(), leased_until = now() + interval '1 hour', attempts = 1 returning message_id as id`,
    ],
  },
  {
    what: 'a running lease is taken over',
    wrong: [LEASES_LINE],
    statements: [
      `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at, lease, leased_until)
       select id, account_id, agent_id, 'revoke', 1, now(), expires_at, gen_random_uuid(), now() + interval '1 hour' from messages
       where status = 'EXPIRED' order by id limit 1`,
      'update queue set lease = gen_random_uuid() returning message_id as id',
      'delete from queue',
    ],
  },
  {
    what: 'the walk has passed an open message',
    wrong: [WALK_LINE, LEFT_LINE],
    statements: [
      'update expiry_walk set reached = uuid_v7_from(now())',
      `update messages set status = 'SENT' where id = (select min(id::text)::uuid from messages where status = 'READ') returning id`,
    ],
  },
  {
    what: 'the walk is ahead, and all messages have ended',
    wrong: [WALK_LINE],
    statements: [`update expiry_walk set reached = uuid_v7_from(now() - interval '47 hours 59 minutes')`],
  },
  {
    what: 'the timeline of a campaign lacks a step',
    wrong: [STEPS_LINE, COUNTERS_LINE],
    statements: [
      `delete from message_events where (message_id, kind, occurred_at) in (
         select message_id, kind, occurred_at from message_events where campaign_id is not null and kind = 'delivered' limit 1) returning message_id as id`,
    ],
  },
]

/** By one connection, in a transaction that is rolled back: the service sees nothing of it, and neither does what comes after. */
async function falsify(statements: string[]): Promise<{ falsified: Evidence; ids: string[] }> {
  const client = await judging.connect()
  try {
    await client.query('begin')
    const ids: string[] = []
    for (const statement of statements) {
      const { rows, command, rowCount } = await client.query<{ id: string }>(statement)
      assert.ok(command === 'CREATE' || rowCount !== 0, `nothing was falsified by ${statement}`)
      ids.push(...rows.map(({ id }) => id))
    }
    return { falsified: await gatherAgain(client), ids }
  } finally {
    await client.query('rollback')
    client.release()
  }
}

for (const { what, wrong, statements } of FALSIFIED_ROWS) {
  test(`by its rows, the verdict is WRONG where ${what}`, async () => {
    const { falsified, ids } = await falsify(statements)
    const lines = judge(falsified).filter((line) => wrong.includes(line.promise))
    assert.deepEqual(
      lines.filter((line) => line.wrong.length === 0).map(({ promise }) => promise),
      [],
      `only these are: ${wrongLines(falsified).join(', ')}`,
    )
    if (ids.length === 0) return
    const named = lines.flatMap((line) => line.wrong).join()
    assert.ok(named.includes(first(ids)), `it names ${ids}`)
  })
}

test('the rows are as they were before they were falsified', async () => {
  assert.deepEqual(wrongLines(await gatherAgain(judging)), [])
})

test('every line of the verdict has something that makes it WRONG', () => {
  const byRows = FALSIFIED_ROWS.flatMap(({ wrong }) => wrong)
  assert.deepEqual(new Set(judge(evidence).map(({ promise }) => promise)), new Set([...Object.keys(FALSIFICATIONS), ...byRows]))
})

test('a line that had nothing to compare is WRONG', () => {
  const none = { compared: 0, faults: [] }
  const empty: Evidence = {
    ...Object.fromEntries(Object.entries(evidence).map(([name, value]) => [name, Array.isArray(value) ? [] : value])),
    asked: { messages: [], campaigns: [], strange: [] },
    counted: none,
    campaignsCounted: none,
    changesTold: none,
    left: {},
    processes: { running: 0, endedByItself: [], silent: [], logs: 0, written: [], complaints: [] },
  } as never
  assert.deepEqual(
    judge(empty).filter(({ wrong }) => wrong.length === 0),
    [],
  )
})

test('what an upset explains is not WRONG', () => {
  const all = structuredClone(evidence)
  const repeatedAt = comeAgain(endpointOf(all))
  const [one, other] = forget(all, 2) as [Stored, Stored]
  all.tries.push(
    { ...TRY, nodeUrl: service.url, status: 0 },
    { ...TRY, nodeUrl: service.url, sentAt: 50_000, answeredAt: 50_010, status: 503 },
  )
  all.tries.push({ ...TRY, nodeUrl: service.url, sentAt: 90_000, answeredAt: 90_030, timeoutMs: 30, status: 0 })
  all.tries.push({ ...TRY, nodeUrl: service.url, sentAt: 120_000, answeredAt: 125_900, status: 0 })
  all.stalls = [{ from: 122_000, to: 127_000 }]
  all.upsets = [
    upset('api', 2_000, 3_000),
    upset('database', 46_000, 48_000),
    upset('webhooks-1', repeatedAt + 100, repeatedAt + 5_000),
    upset('delivery-1', takenAtOf(all, one) + 100, takenAtOf(all, one) + 9_000),
    upset('network', takenAtOf(all, other) - 9_000, takenAtOf(all, other) + 100, 9_000),
  ]
  const time = new Date(takenAtOf(all, other)).toISOString()
  complain(all, JSON.stringify({ level: 'error', time, msg: 'failed to get an access token; will retry with each message' }))
  const promises = [
    'every request is answered, unless its node or the database is upset',
    'no SMS twice; unknown ones say so',
    'an event comes again only where an upset explains it',
    'logs have no fault that an upset does not explain',
  ]
  assert.deepEqual(
    judge(all).flatMap(({ promise, wrong }) => (promises.includes(promise) ? wrong : [])),
    [],
  )
})
