import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/support/database.ts'
import { createAssignedAgent, createCaller, startTestService } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { streamOf } from '../random.ts'
import { hearAnswer } from './asked.ts'
import type { Caller } from './caller.ts'
import { prepareCampaigns } from './campaigns.ts'
import { type Evidence, gatherEvidence, type Stored } from './evidence.ts'
import { startFollowers } from './followers.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import { startLoad } from './load.ts'
import { USUAL_FAULTS } from './network.ts'
import { SHARED_SETTINGS } from './nodes.ts'
import { planUpsets, VICTIMS } from './plan.ts'
import { readLogFaults } from './processes.ts'
import { makeTemplates } from './templates.ts'
import { isClean, judge } from './verdict.ts'

// The verdict on a small run that nobody disturbs is clean; and each of its lines says WRONG as soon as something is.

const SEED = 1
const MESSAGES = 200
const PEOPLE = 30
const PATIENCE_MS = 90_000

const { url, pool } = await createTestDatabase({ uncounted: 'counters are falsified here, to see that it is noticed' })
const simulator = await startSimulator()
const service = await startTestService({ ...SHARED_SETTINGS, HERALD_DATABASE_URL: url }, { findCarriers: async () => simulator.settings })
await simulator.ask('faults', USUAL_FAULTS, 'PUT')
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
const { accountId, authorization } = await createCaller(pool)
const agentId = await createAssignedAgent(pool, accountId)
const caller: Caller = { accountId, authorization, agentId, nodeUrls: () => [service.url] }
const judging = openForJudging(url)

async function runUndisturbed(): Promise<() => Promise<Evidence>> {
  const followers = await startFollowers({ pool, caller, random: streamOf(SEED, 'followers') })
  const campaigns = await prepareCampaigns(pool, caller, streamOf(SEED, 'campaigns'), 2, PEOPLE)
  const options = { templates: await makeTemplates(caller), campaigns, campaignEveryMs: 500 }
  const load = startLoad({ caller, pool, rate: 50, random: streamOf(SEED, 'messages'), ...options })
  await until('enough is asked for', () => load.asked.messages.length >= MESSAGES)
  const asked = await load.stop()
  await untilNothingIsLeft(judging, simulator.ask, PATIENCE_MS)
  const told = await followers.stop()
  const processes = { running: 1, endedByItself: [], silent: [], complaints: readLogFaults('service', service.log().split('\n')) }
  const rest = { seenBefore: [], processes, upsets: 1 }
  return () => gatherEvidence({ pool: judging, caller, ask: simulator.ask, asked, told, ...rest })
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

type Falsification = [what: string, falsify: (all: Evidence) => unknown]

/** By the line that has to notice. */
const FALSIFICATIONS: Record<string, Falsification[]> = {
  'callers are told nothing but what is promised': [
    [
      'an answer 500',
      ({ asked }) => hearAnswer(asked, first(asked.messages), { status: 500, body: {}, isReplayed: false }, 'messageId', 'expiresAt'),
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
  'accepted against delivered': [
    ['one is on its way for ever', ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { status: 'SENT' })],
    [
      'one failed for no reason',
      ({ messages }) => Object.assign(first(messages, hasStatus('READ')).shown, { failure: { reason: 'REJECTED' } }),
    ],
    [
      'an SMS is never sent',
      ({ messages }) =>
        Object.assign(first(messages, ({ shown }) => shown.smsFallback?.status === 'DELIVERED').shown, {
          smsFallback: { status: 'SCHEDULED', segments: 1 },
        }),
    ],
  ],
  'what the API says against the network': [
    ['no phone has it', ({ ledger }) => drop(ledger, ({ kind }) => kind === 'delivered')],
    ['nobody has read it', ({ ledger }) => drop(ledger, ({ kind }) => kind === 'read')],
    [
      'the network has one more',
      ({ ledger }) => ledger.push({ ...first(ledger, ({ kind }) => kind === 'accepted'), messageId: randomUUID() }),
    ],
    [
      'a late one is not told of',
      ({ messages, ledger }) =>
        void ledger.push({ ...first(ledger, ({ kind }) => kind === 'delivered'), messageId: first(messages, hasStatus('EXPIRED')).id }),
    ],
  ],
  'what people answered': [
    ['an answer is lost', ({ actions }) => actions.pop()],
    ['an answer counts twice', ({ actions }) => actions.push(first(actions))],
    ['a tap makes nothing', ({ messages }) => drop(messages, ({ triggeredBy }) => triggeredBy !== null)],
    ['a tap makes two', ({ messages }) => messages.push(first(messages, ({ triggeredBy }) => triggeredBy !== null))],
  ],
  'no message twice on a phone': [
    ['under one id', ({ ledger }) => ledger.push(first(ledger, ({ kind }) => kind === 'delivered'))],
    ['under two', ({ ledger }) => ledger.push({ ...first(ledger, ({ kind }) => kind === 'delivered'), messageId: randomUUID() })],
  ],
  'no SMS twice; unknown ones say so': [
    ['a part comes twice', ({ ledger }) => ledger.push(first(ledger, ({ kind }) => kind === 'sms-part'))],
    [
      'one is given up, though nobody was upset',
      (all) => {
        all.upsets = 0
        const { shown } = first(all.messages, ({ shown: { smsFallback } }) => smsFallback?.status === 'DELIVERED')
        shown.smsFallback = { status: 'FAILED', reason: 'OUTCOME_UNKNOWN', segments: 1 }
      },
    ],
    ['a part is missing', ({ ledger }) => drop(ledger, ({ kind }) => kind === 'sms-part')],
    [
      'an SMS to somebody who needs none',
      ({ ledger, messages }) =>
        void ledger.push({ ...first(ledger, ({ kind }) => kind === 'sms-part'), phone: first(messages, hasStatus('READ')).recipient }),
    ],
  ],
  'the feed against the log': [
    ['one is missed', ({ told }) => told.followed.splice(3, 1)],
    ['one comes twice', ({ told }) => told.followed.splice(3, 0, told.followed[3])],
    ['the last one is missed', ({ told }) => told.followed.pop()],
    ['two have changed places', ({ told }) => told.followed.splice(3, 2, told.followed[4], told.followed[3])],
    ['there is one more', ({ told }) => told.followed.push(first(told.followed))],
  ],
  'endpoints against the log': [
    ['one is never taken', ({ told }) => removeArrivals(told.endpoints[0], first(first(told.endpoints).arrivals).eventId)],
    ['one has other bytes', ({ told }) => Object.assign(first(first(told.endpoints).arrivals), { body: 'other' })],
    ['one is not signed', ({ told }) => Object.assign(first(first(told.endpoints).arrivals), { isGenuine: false })],
    [
      'one is not wanted',
      ({ told, log }) =>
        void told.endpoints[1]?.arrivals.push({
          ...first(first(told.endpoints).arrivals),
          eventId: first(log, ({ kind }) => kind === 'message.read').eventId,
        }),
    ],
  ],
  'the events of a message in their order': [['backwards', ({ told }) => first(told.endpoints).arrivals.reverse()]],
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
  ],
  'nothing is left over': [['in the queue', ({ left }) => Object.assign(left, { queue: 1 })]],
  'no process ended by itself, all answer': [
    ['one ended', ({ processes }) => processes.endedByItself.push('api-1 ended with 1')],
    ['one is silent', ({ processes }) => processes.silent.push('api-1')],
  ],
  'logs have no fault that an upset does not explain': [
    [
      'a broken rule of the database',
      ({ processes }) => processes.complaints.push(...readLogFaults('api-1', ['{"level":"error","msg":"","err":{"code":"23505"}}'])),
    ],
    [
      'an exception that nobody caught',
      ({ processes }) => processes.complaints.push(...readLogFaults('api-1', ['{"level":"fatal","msg":""}', '{"cut'])),
    ],
  ],
}

function removeArrivals(endpoint: Evidence['told']['endpoints'][number] | undefined, eventId: string): void {
  if (endpoint !== undefined) endpoint.arrivals = endpoint.arrivals.filter((arrival) => arrival.eventId !== eventId)
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

for (const [promise, statement] of [
  ['counters against rows', 'update report_counts set delivered = delivered + 1 where delivered > 0'],
  ['counters against rows', `update campaign_counts set count = count + 1 where status = 'READ'`],
  ['events against changes', 'delete from events where position = (select min(position) from events)'],
] as const) {
  test(`"${promise}" is WRONG after ${statement}`, async () => {
    await pool.query(statement)
    assert.ok(wrongLines(await gather()).includes(promise))
  })
}

test('every line of the verdict has something that makes it WRONG', () => {
  const byRows = ['counters against rows', 'events against changes']
  assert.deepEqual(new Set(judge(evidence).map(({ promise }) => promise)), new Set([...Object.keys(FALSIFICATIONS), ...byRows]))
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
