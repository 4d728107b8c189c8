import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/support/database.ts'
import { startTestService } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { ASKING_MESSAGE, hearAnswer } from './asked.ts'
import type { Answer } from './caller.ts'
import { smsEndOf } from './ends.ts'
import { type Evidence, gatherEvidence } from './evidence.ts'
import type { Endpoint } from './followers.ts'
import { namedAddress, watchLeases } from './leases.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import { USUAL_FAULTS } from './network.ts'
import { SHARED_SETTINGS } from './nodes.ts'
import { essentialUpsets, planUpsets, VICTIMS } from './plan.ts'
import { readLogFaults } from './processes.ts'
import type { Received } from './received.ts'
import type { Shown, Step, Stored } from './stored.ts'
import { endTenancies, startTenants, stopLoads } from './tenants.ts'
import type { Disturbance } from './upsets.ts'
import { isClean, judge } from './verdict.ts'
import { createCallers } from './world.ts'

// The verdict on a small run that nobody disturbs is clean; and each of its lines says WRONG as soon as something is.

const SEED = 1
const MESSAGES = 250
const PEOPLE = 30
const PATIENCE_MS = 90_000

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

async function runUndisturbed(): Promise<() => Promise<Evidence>> {
  const load = { seed: SEED, rate: 50, campaigns: 2, campaignEveryMs: 500, people: PEOPLE }
  const tenants = await startTenants({ pool, callers, ...load })
  const countAsked = () => tenants.reduce((sum, tenant) => sum + tenant.load.asked.messages.length, 0)
  await until('enough is asked for', () => countAsked() >= MESSAGES)
  await stopLoads(tenants)
  await untilNothingIsLeft(judging, simulator.ask, PATIENCE_MS)
  const tenancies = await endTenancies(tenants)
  const processes = { running: 1, endedByItself: [], silent: [], logs: 1, complaints: readLogFaults('service', service.log().split('\n')) }
  const rest = { seenBefore: [], processes, upsets: [NOTHING], essential: [], addresses: { api: service.url } }
  return () => gatherEvidence({ pool: judging, ask: simulator.ask, tenancies, ...rest })
}

const gather = await runUndisturbed()
const evidence = await gather()

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

function first<T>(items: readonly T[], isMeant: (item: T) => boolean = () => true): T {
  const found = items.find(isMeant)
  assert.ok(found !== undefined, 'the run has nothing of the kind')
  return found
}

function drop<T>(items: T[], isMeant: (item: T) => boolean): void {
  items.splice(items.indexOf(first(items, isMeant)), 1)
}

const isSingle = ({ campaignId, triggeredBy }: Stored) => campaignId === null && triggeredBy === null
const hasStatus = (status: string) => (message: Stored) => message.shown.status === status
const hasStep = (kind: string) => (message: Stored) => message.steps.some((step) => step.kind === kind)
const smsIs = (end: string) => (message: Stored) => smsEndOf(message).startsWith(end)
const isKind =
  (kind: string) =>
  (entry: { kind: string }): boolean =>
    entry.kind === kind

/** Of a message that has such a step: where it is kept, and the step. */
function stepOf(messages: Stored[], kind: string, where: 'steps' | 'timeline'): { list: Step[]; step: Step } {
  const list = first(messages, hasStep(kind))[where]
  return { list, step: first(list, isKind(kind)) }
}

/** The endpoint that wants all of the first account's. */
const endpointOf = ({ told }: Evidence): Endpoint => first(first(told).endpoints)
const accountsOf = ({ told }: Evidence) => told.map(({ accountId }) => accountId) as [number, number]

const ANSWER: Answer = { status: 500, body: {}, isReplayed: false, sentAt: 0, answeredAt: 0 }
const TOO_LATE = { status: 400, body: { details: [{ path: '/expiresAt' }] } }

function hear({ asked }: Evidence, answer: Partial<Answer>, of: 'any' | 'hurried' = 'any'): void {
  const one = { ...first(asked.messages, ({ body }) => of === 'any' || body.expiresAt !== undefined), outcome: 'unanswered' as const }
  hearAnswer(asked, one, { ...ANSWER, ...answer }, ASKING_MESSAGE)
}

function upset(victim: string, from: number, to: number, frozenMs = 0): Disturbance {
  return { victim, manner: frozenMs > 0 ? 'frozen' : 'killed', from, frozenMs, to }
}

/** So that the outcome of some SMS is not known, though the network has them. */
function forget({ messages }: Evidence, count: number): Stored[] {
  const some = messages.filter(smsIs('DELIVERED')).slice(0, count)
  assert.equal(some.length, count, 'the run has too few SMS')
  for (const { shown } of some) shown.smsFallback = { status: 'FAILED', reason: 'OUTCOME_UNKNOWN', segments: 1 }
  return some
}

function takenAtOf({ ledger }: Evidence, { recipient }: Stored): number {
  return Date.parse(first(ledger, ({ kind, phone }) => kind === 'sms-part' && phone === recipient).at)
}

/** An event that the endpoint had taken comes again. */
function comeAgain(endpoint: Endpoint, count = 1): number {
  const taken = endpoint.arrivals.filter(({ status }) => status < 300).slice(0, count)
  assert.equal(taken.length, count, 'the run has too few events')
  endpoint.arrivals.push(...taken)
  return first(taken).at
}

const TRY = { nodeUrl: service.url, request: 'POST /messages', sentAt: 1_000, answeredAt: 6_000, patienceMs: 5_000 }
const ENTRY = { queue: 'queue', entry: 'id', by: 'delivery-1', wasRunning: true, isTurned: false } as const

type Falsification = [what: string, falsify: (all: Evidence) => unknown]

/** By the line that has to notice. */
const FALSIFICATIONS: Record<string, Falsification[]> = {
  'what was done': [
    ['the database was never killed', (all) => Object.assign(all, { essential: essentialUpsets(15) })],
    [
      'the freeze was too short',
      (all) => {
        all.upsets = [upset('delivery-1', 0, 20_000, 20_000)]
        all.essential = [{ victim: 'delivery', manner: 'frozen', leastFrozenMs: 30_000 }]
      },
    ],
  ],
  'callers are told nothing but what is promised': [
    ['an answer 500', (all) => hear(all, { status: 500 })],
    ['a limit that nobody has reached', ({ tries }) => tries.push({ ...TRY, status: 429 })],
    ['a page of the feed is a 500', ({ tries }) => tries.push({ ...TRY, request: 'GET /events', status: 500 })],
    ['it is too late before its time', (all) => hear(all, { ...TOO_LATE, answeredAt: 0 }, 'hurried')],
    ['it is too late, and has no time', (all) => hear(all, { ...TOO_LATE, answeredAt: Date.now() + 1e9 })],
    [
      'it is accepted after its time',
      (all) => hear(all, { status: 202, body: { messageId: randomUUID() }, sentAt: Date.now() + 1e9 }, 'hurried'),
    ],
  ],
  'every request is answered, unless its node or the database is upset': [
    ['no answer', ({ tries }) => tries.push({ ...TRY, status: 0 })],
    ['told to come again', ({ tries }) => tries.push({ ...TRY, answeredAt: 1_010, status: 503 })],
    [
      'a connection that is refused, to one with little patience',
      ({ tries }) => tries.push({ ...TRY, answeredAt: 1_001, patienceMs: 50, status: 0 }),
    ],
    [
      'another node was upset',
      (all) => {
        all.upsets = [upset('api-2', 0, 10_000), upset('delivery-1', 0, 10_000), upset('network', 0, 10_000)]
        all.tries.push({ ...TRY, status: 0 })
      },
    ],
    [
      'the database was upset long before',
      (all) => {
        all.upsets = [upset('database', -20_000, -10_000)]
        all.tries.push({ ...TRY, status: 503 })
      },
    ],
  ],
  'accepted against the database': [
    ['a message is lost', ({ messages }) => drop(messages, isSingle)],
    ['with its key', ({ messages, keys }) => drop(keys, ({ id }) => id === first(messages, isSingle).id)],
    ['a key has two answers', ({ asked }) => first(asked.messages, ({ outcome }) => outcome === 'accepted').ids.push(randomUUID())],
    ['it went to somebody else', ({ messages }) => Object.assign(first(messages, isSingle), { recipient: '+48500999999' })],
    [
      'what was refused is there',
      ({ asked }) =>
        Object.assign(
          first(asked.messages, ({ outcome }) => outcome === 'accepted'),
          { outcome: 'too-late' },
        ),
    ],
  ],
  'campaigns: one message for everybody': [
    ['somebody has none', ({ messages }) => drop(messages, ({ campaignId }) => campaignId !== null)],
    [
      'somebody has two',
      ({ messages }) => messages.push({ ...first(messages, ({ campaignId }) => campaignId !== null), id: randomUUID() }),
    ],
    ['it never ended', ({ campaigns }) => Object.assign(first(campaigns), { status: 'RUNNING' })],
    ['it was made twice', ({ campaigns }) => campaigns.push({ ...first(campaigns), id: randomUUID() })],
  ],
  'contents: asked for, handed over, shown and told': [
    [
      'two texts are swapped',
      ({ received }) => {
        const [one, other] = received.filter(({ channel, text }) => channel === 'rcs' && text.includes('parcel')) as [Received, Received]
        const { text } = one
        one.text = other.text
        other.text = text
      },
    ],
    [
      'it went out by another agent',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'rcs'),
          { origin: 'other' },
        ),
    ],
    [
      'it has no button',
      ({ received }) =>
        Object.assign(
          first(received, ({ buttons }) => buttons.length > 0),
          { buttons: [] },
        ),
    ],
    [
      'the network was given another time',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'rcs'),
          { expiresAt: new Date(0).toISOString() },
        ),
    ],
    [
      'an SMS has another text',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'sms'),
          { text: 'other' },
        ),
    ],
    [
      'an SMS has another sender',
      ({ received }) =>
        Object.assign(
          first(received, ({ channel }) => channel === 'sms'),
          { origin: 'Other' },
        ),
    ],
    ...(['agentId', 'recipient', 'clientReferenceId', 'expiresAt'] satisfies (keyof Shown)[]).map(
      (field): Falsification => [
        `the API shows another ${field}`,
        ({ messages }) => Object.assign(first(messages, isSingle).shown, { [field]: 'other' }),
      ],
    ),
    ['the reference is not shown', ({ messages }) => delete first(messages, isSingle).shown.clientReferenceId],
    [
      'an event names somebody else',
      ({ log }) => {
        const event = first(log, isKind('message.sent'))
        event.data = JSON.stringify({ ...JSON.parse(event.data), recipient: '+48500999999' })
      },
    ],
  ],
  'nothing of one account at another': [
    ['a message', (all) => moveAccount(all, first(all.messages, isSingle))],
    ['a key', (all) => moveAccount(all, first(all.keys))],
    ['an event', (all) => moveAccount(all, first(all.log, isKind('message.sent')))],
    ['an answer', (all) => moveAccount(all, first(all.actions))],
    ['a campaign', (all) => moveAccount(all, first(all.campaigns))],
    ['what the API shows', ({ leaked }) => leaked.push('a message')],
    ['what went out', ({ ledger }) => Object.assign(first(ledger, isKind('accepted')), { agentId: 'other' })],
  ],
  'accepted against delivered': [
    ['one is on its way for ever', ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { status: 'SENT' })],
    [
      'one failed for no reason',
      ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { failure: { reason: 'REJECTED' } }),
    ],
    [
      'one is withdrawn with a campaign that was not cancelled',
      ({ messages, campaigns }) => {
        for (const campaign of campaigns) campaign.status = 'COMPLETED'
        const { shown } = first(messages, ({ campaignId }) => campaignId !== null)
        Object.assign(shown, { status: 'FAILED', failure: { reason: 'CAMPAIGN_CANCELLED' } })
      },
    ],
    [
      'an SMS is never sent',
      ({ messages }) => Object.assign(first(messages, smsIs('DELIVERED')).shown, { smsFallback: { status: 'SCHEDULED', segments: 1 } }),
    ],
  ],
  'columns against timelines, events and the API': [
    ...[
      'sent',
      'delivered',
      'read',
      'failed',
      'expired',
      'sms-sent',
      'sms-delivered',
      'sms-failed',
      'sms-scheduled',
      'sms-skipped',
    ].flatMap((kind): Falsification[] => [
      [
        `the timeline has no "${kind}"`,
        ({ messages }) => {
          const { list, step } = stepOf(messages, kind, 'timeline')
          list.splice(list.indexOf(step), 1)
        },
      ],
      [
        `the timeline has "${kind}", and no column does`,
        ({ messages }) => {
          const { list, step } = stepOf(messages, kind, 'steps')
          list.splice(list.indexOf(step), 1)
        },
      ],
    ]),
    [
      'the timeline has it twice',
      ({ messages }) => {
        const { list, step } = stepOf(messages, 'delivered', 'timeline')
        list.push({ ...step, at: step.at + 1 })
      },
    ],
    ['the timeline has another time', ({ messages }) => (stepOf(messages, 'delivered', 'timeline').step.at += 1)],
    ['the timeline has another reason', ({ messages }) => (stepOf(messages, 'failed', 'timeline').step.reason = 'OTHER')],
    ['the log has no event of it', ({ log }) => drop(log, isKind('message.delivered'))],
    ['the log has another time', ({ log }) => Object.assign(first(log, isKind('sms.delivered')), { occurredAt: new Date(0) })],
    ['the API shows another time', ({ messages }) => (first(messages, hasStatus('READ')).shown.readAt = new Date(0).toISOString())],
    ['the API shows no time', ({ messages }) => delete first(messages, hasStatus('READ')).shown.sentAt],
    ['the status is not the last step', ({ messages }) => (first(messages, hasStatus('READ')).shown.status = 'DELIVERED')],
    ['it was delivered after it had expired', ({ messages }) => (first(messages, hasStatus('READ')).expiresAt = 0)],
    [
      'it was late, and was not',
      ({ messages }) => first(messages, hasStatus('READ')).timeline.push({ kind: 'delivered-late', at: 0, reason: null }),
    ],
  ],
  'what the API says against the network': [
    ['no phone has it', ({ ledger }) => drop(ledger, isKind('delivered'))],
    ['nobody has read it', ({ ledger }) => drop(ledger, isKind('read'))],
    ['nobody has refused it', (all) => (all.ledger = all.ledger.filter(({ kind }) => kind !== 'refused'))],
    ['the network has one more', ({ ledger }) => ledger.push({ ...first(ledger, isKind('accepted')), messageId: randomUUID() })],
    [
      'a late one is not told of',
      ({ messages, ledger }) =>
        void ledger.push({ ...first(ledger, isKind('delivered')), messageId: first(messages, hasStatus('EXPIRED')).id }),
    ],
  ],
  'what people answered': [
    ['an answer is lost', ({ actions }) => actions.pop()],
    ['an answer counts twice', ({ actions }) => actions.push(first(actions))],
    ['it has other words', ({ actions }) => (first(actions, isKind('wrote')).text = 'other')],
    ['it is of somebody else', ({ actions }) => (first(actions, isKind('wrote')).phone = '+48500999906')],
    ['it is to another message', ({ actions }) => (first(actions, isKind('wrote')).messageId = randomUUID())],
    ['it is to no message', ({ actions }) => (first(actions, isKind('wrote')).messageId = null)],
    ['it is something else', ({ actions }) => (first(actions, isKind('opted-out')).kind = 'wrote')],
    ['it is another button', ({ actions }) => (first(actions, isKind('tapped')).buttonId = 'other')],
    ['a tap makes nothing', ({ messages }) => drop(messages, ({ triggeredBy }) => triggeredBy !== null)],
    ['a tap makes two', ({ messages }) => messages.push(first(messages, ({ triggeredBy }) => triggeredBy !== null))],
  ],
  'no message twice on a phone': [
    ['under one id', ({ ledger }) => ledger.push(first(ledger, isKind('delivered')))],
    ['under two', ({ ledger }) => ledger.push({ ...first(ledger, isKind('delivered')), messageId: randomUUID() })],
  ],
  'no SMS twice; unknown ones say so': [
    ['a part comes twice', ({ ledger }) => ledger.push(first(ledger, isKind('sms-part')))],
    ['one is given up, though nobody was upset', (all) => forget(all, 1)],
    [
      'one is given up that was under way at another time',
      (all) => {
        const at = takenAtOf(all, first(forget(all, 1)))
        all.upsets = [upset('delivery-1', at + 4_000, at + 9_000), upset('network', at - 60_000, at - 50_000), upset('api-1', at, at)]
      },
    ],
    [
      'more are given up than can be under way',
      (all) => {
        forget(all, 11)
        all.upsets = [upset('network', 0, Date.now())]
      },
    ],
    ['a part is missing', ({ ledger }) => drop(ledger, isKind('sms-part'))],
    ['it failed, though the network did not say so', ({ ledger }) => drop(ledger, isKind('sms-failed'))],
    [
      'an SMS to somebody who needs none',
      ({ ledger, messages }) =>
        void ledger.push({ ...first(ledger, isKind('sms-part')), phone: first(messages, hasStatus('READ')).recipient }),
    ],
  ],
  'results are written by who holds the lease': [
    [
      'another takes it up meanwhile',
      ({ leaseChanges }) =>
        leaseChanges.push(
          { ...ENTRY, lease: 'one', leaseBefore: null },
          { ...ENTRY, by: 'delivery-2', lease: 'other', leaseBefore: 'one' },
        ),
    ],
    [
      'another writes the result',
      ({ leaseChanges }) =>
        leaseChanges.push({ ...ENTRY, lease: 'one', leaseBefore: null }, { ...ENTRY, by: 'delivery-2', lease: null, leaseBefore: 'one' }),
    ],
    ['somebody writes a result who has nothing', ({ leaseChanges }) => leaseChanges.push({ ...ENTRY, lease: null, leaseBefore: null })],
  ],
  'the feed against the log': [
    ['one is missed', (all) => first(all.told).followed.splice(3, 1)],
    ['one comes twice', (all) => first(all.told).followed.splice(3, 0, first(all.told).followed[3])],
    ['the last one is missed', (all) => first(all.told).followed.pop()],
    ['two have changed places', (all) => first(all.told).followed.splice(3, 2, first(all.told).followed[4], first(all.told).followed[3])],
    ['there is one more', (all) => first(all.told).followed.push(first(first(all.told).followed))],
    ['the other account misses one', ({ told }) => told.at(-1)?.followed.splice(3, 1)],
  ],
  'endpoints against the log': [
    [
      'one is never taken',
      (all) => {
        const endpoint = endpointOf(all)
        const { eventId } = first(endpoint.arrivals)
        endpoint.arrivals = endpoint.arrivals.filter((arrival) => arrival.eventId !== eventId)
      },
    ],
    ['one has other bytes', (all) => Object.assign(first(endpointOf(all).arrivals), { body: 'other' })],
    ['one is not signed', (all) => Object.assign(first(endpointOf(all).arrivals), { isGenuine: false })],
    [
      'one is not wanted',
      (all) => {
        const { eventId } = first(all.log, isKind('message.read'))
        first(all.told).endpoints[1]?.arrivals.push({ ...first(endpointOf(all).arrivals), eventId })
      },
    ],
    [
      'one is of another account',
      ({ told }) => endpointOf({ told } as Evidence).arrivals.push(first(first(told.slice(1)).endpoints[0]?.arrivals ?? [])),
    ],
  ],
  'an event comes again only where an upset explains it': [
    ['one that was taken', (all) => comeAgain(endpointOf(all))],
    [
      'the upset was at another time, or of another part',
      (all) => {
        const at = comeAgain(endpointOf(all))
        all.upsets = [upset('webhooks-1', at + 6_000, at + 9_000), upset('database', at - 60_000, at - 50_000), upset('delivery-1', at, at)]
      },
    ],
    [
      'more than can be under way',
      (all) => {
        comeAgain(endpointOf(all), 129)
        all.upsets = [upset('webhooks-1', 0, Date.now())]
      },
    ],
    ['an attempt that the endpoint has not seen', ({ attempts }) => attempts.push({ ...first(attempts), eventId: randomUUID() })],
  ],
  'the events of a message in their order': [['backwards', (all) => endpointOf(all).arrivals.reverse()]],
  'idempotency keys against messages': [
    ['another id', ({ again }) => Object.assign(first(again), { id: randomUUID() })],
    ['accepted anew', ({ again }) => Object.assign(first(again), { isReplayed: false })],
    ['refused', ({ again }) => Object.assign(first(again), { status: 400 })],
  ],
  'keys whose caller gave up: one message at most': [
    [
      'two',
      ({ asked, keys }) => {
        const { key } = first(asked.messages, ({ habit, outcome }) => habit === 'gives-up' && outcome === 'accepted')
        keys.push({ ...first(keys, (row) => row.key === key), id: randomUUID() })
      },
    ],
  ],
  'the network forgets nothing itself': [
    ['an entry is gone', ({ seenBefore, ledger }) => seenBefore.push({ ...first(ledger), kind: 'another' })],
    ['its books have a gap', ({ ledger }) => ledger.splice(3, 1)],
  ],
  'nothing is left over': [['in the queue', ({ left }) => Object.assign(left, { queue: 1 })]],
  'no process ended by itself, all answer': [
    ['one ended', ({ processes }) => processes.endedByItself.push('api-1 ended with 1')],
    ['one is silent', ({ processes }) => processes.silent.push('api-1')],
  ],
  'logs have no fault that an upset does not explain': [
    ['a broken rule of the database', (all) => complain(all, '{"level":"error","msg":"","err":{"code":"23505"}}')],
    ['an exception that nobody caught', (all) => complain(all, '{"level":"fatal","msg":""}', '{"cut')],
    [
      'an error that nobody knows',
      (all) => complain(all, '{"level":"error","msg":"a request failed","err":{"type":"Error","message":"x"}}'),
    ],
    [
      'a receipt that could not be kept, for another reason',
      (all) =>
        complain(
          all,
          JSON.stringify({
            level: 'error',
            msg: 'a receipt or a reply could not be kept: the SMS network will send it again',
            err: { code: '23505' },
          }),
        ),
    ],
  ],
}

function complain({ processes }: Evidence, ...lines: string[]): void {
  processes.complaints.push(...readLogFaults('api-1', lines))
}

function moveAccount(all: Evidence, one: { accountId: number }): void {
  const [ours, theirs] = accountsOf(all)
  one.accountId = one.accountId === ours ? theirs : ours
}

for (const [promise, falsifications] of Object.entries(FALSIFICATIONS)) {
  for (const [what, falsify] of falsifications) {
    test(`"${promise}" is WRONG where it is: ${what}`, () => {
      const falsified = structuredClone(evidence)
      falsify(falsified)
      assert.ok(wrongLines(falsified).includes(promise), `only these are: ${wrongLines(falsified).join(', ')}`)
    })
  }
}

for (const [promise, statement, named] of [
  ['counters against rows', 'update report_counts set delivered = delivered + 1 where delivered > 0', undefined],
  ['counters against rows', `update campaign_counts set count = count + 1 where status = 'READ'`, undefined],
  ['events against changes', 'delete from events where position = (select min(position) from events) returning subject_id as id', 'id'],
] as const) {
  test(`"${promise}" is WRONG after ${statement}`, async () => {
    const { rows } = await pool.query<{ id: string }>(statement)
    const line = first(judge(await gather()), (one) => one.promise === promise)
    assert.notDeepEqual(line.wrong, [])
    if (named !== undefined) assert.ok(line.wrong.join().includes(first(rows).id), 'it names what is missing')
  })
}

test('every line of the verdict has something that makes it WRONG', () => {
  const byRows = ['counters against rows', 'events against changes']
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
    processes: { running: 0, endedByItself: [], silent: [], logs: 0, complaints: [] },
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
  all.tries.push({ ...TRY, status: 0 }, { ...TRY, sentAt: 50_000, answeredAt: 50_010, status: 503 })
  all.tries.push({ ...TRY, sentAt: 90_000, answeredAt: 90_030, patienceMs: 30, status: 0 })
  all.upsets = [
    upset('api', 2_000, 3_000),
    upset('database', 46_000, 48_000),
    upset('webhooks-1', repeatedAt + 100, repeatedAt + 5_000),
    upset('delivery-1', takenAtOf(all, one) + 100, takenAtOf(all, one) + 9_000),
    upset('network', takenAtOf(all, other) - 9_000, takenAtOf(all, other) + 100, 9_000),
  ]
  complain(all, '{"level":"error","msg":"the network gives us no access token; every message tries again","reason":"fetch failed"}')
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

test('what is upset, when, how and for how long is a function of the seed', () => {
  assert.deepEqual(planUpsets(7, 120), planUpsets(7, 120))
  assert.notDeepEqual(planUpsets(7, 120), planUpsets(8, 120))
  assert.deepEqual(new Set(planUpsets(7, 120).map(({ victim }) => victim)), new Set(VICTIMS))
})

test('a longer run begins as a shorter one does', () => {
  const short = planUpsets(7, 60)
  assert.deepEqual(planUpsets(7, 120).slice(0, short.length), short)
})

test('whatever the seed, each essential upset is planned, and its time is long enough', () => {
  for (let seed = 0; seed < 1_000; seed++) {
    for (const seconds of [15, 30, 60, 120]) {
      const plan = planUpsets(seed, seconds)
      for (const { victim, manner, leastFrozenMs } of essentialUpsets(seconds)) {
        const isPlanned = plan.some(
          (one) =>
            one.victim.startsWith(victim) && one.manner === manner && Math.min(one.frozenMs, seconds * 1_000 - one.atMs) >= leastFrozenMs,
        )
        assert.ok(isPlanned, `seed ${seed}, ${seconds} s: no ${victim} is ${manner}`)
      }
    }
  }
})

test('of one victim, one upset is over before the next begins', () => {
  for (let seed = 0; seed < 100; seed++) {
    for (const [victim, all] of Map.groupBy(planUpsets(seed, 120), (one) => one.victim)) {
      for (const [n, { atMs }] of all.entries()) {
        const before = all[n - 1]
        assert.ok(before === undefined || before.atMs + before.frozenMs + before.goneMs <= atMs, `seed ${seed}, ${victim}`)
      }
    }
  }
})
