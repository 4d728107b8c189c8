import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { foldReports } from '../../../src/reports/counters.ts'
import {
  type PastAction,
  type PastMessage,
  type PastSms,
  type Reached,
  reachedBy,
  type Written,
  writeCampaign,
  writeMessages,
} from './past.ts'
import { newCaller, pool } from './shared.ts'
import { phone, type ReportCaller } from './support.ts'

// Any history of a campaign and of single messages. Each report is compared with one worked out in memory.

const seed = Number(process.env.HERALD_MODEL_SEED ?? Date.now() % 2 ** 31)
const runs = Number(process.env.HERALD_MODEL_RUNS ?? 10)

const DAY_MS = 86_400_000
const FIRST_DAYS = ['2024-02-27', '2025-12-29']
const TIMES = ['00:00:00.000', '00:00:00.001', '00:59:59.999', '12:34:56.789', '23:00:00.000', '23:59:59.999']
const dayOf = (first: string, day: number) => new Date(Date.parse(first) + day * DAY_MS).toISOString().slice(0, 10)

// Days are numbers from the first on, so that fast-check can shrink them.
const time = fc.tuple(fc.nat(5), fc.constantFrom(...TIMES))
const action = fc.record({
  kind: fc.constantFrom('clicked', 'tapped', 'wrote', 'shared-location', 'sent-file', 'opted-out', 'opted-in'),
  at: time,
})
const message = fc.record({
  outcome: fc.constantFrom('accepted', 'sent', 'delivered', 'read', 'read', 'failed', 'sent failed', 'expired', 'sent expired'),
  sms: fc.constantFrom('none', 'waiting', 'skipped', 'sent', 'delivered', 'failed', 'sent failed'),
  steps: fc.array(time, { minLength: 6, maxLength: 6 }),
  actions: fc.array(action, { maxLength: 3 }),
  of: fc.constantFrom('campaign', 'campaign', 'campaign', 'single', 'test'),
})
const range = fc.record({ from: fc.option(fc.integer({ min: -1, max: 6 })), length: fc.option(fc.nat(4)) })
const history = fc.record({
  first: fc.constantFrom(...FIRST_DAYS),
  messages: fc.array(message, { maxLength: 14, size: 'max' }),
  ranges: fc.array(range, { minLength: 1, maxLength: 2 }),
  isFolded: fc.boolean(),
  limit: fc.integer({ min: 3, max: 20 }),
  turn: fc.nat(5),
})
type History = typeof history extends fc.Arbitrary<infer Each> ? Each : never
type Drawn = History['messages'][number]
type Range = { from?: string; to?: string }

function toMessage(drawn: Drawn, n: number, first: string): PastMessage {
  const toText = ([day, at]: [number, string]) => `${dayOf(first, day)}T${at}Z`
  const [acceptedAt = '', one = '', two = '', three = '', four = '', five = ''] = drawn.steps.map(toText).sort()
  const outcomes: Record<Drawn['outcome'], Partial<PastMessage>> = {
    accepted: {},
    sent: { sentAt: one },
    delivered: { sentAt: one, deliveredAt: two },
    read: { sentAt: one, deliveredAt: two, readAt: three },
    failed: { failedAt: one, reason: 'NOT_REACHABLE' },
    'sent failed': { sentAt: one, failedAt: two, reason: 'REJECTED' },
    expired: { expiredAt: two },
    'sent expired': { sentAt: one, expiredAt: two },
  }
  const plans: Record<Drawn['sms'], PastSms | undefined> = {
    none: undefined,
    waiting: {},
    skipped: { skippedAt: four, reason: 'CONSENT' },
    sent: { sentAt: four },
    delivered: { sentAt: four, deliveredAt: five },
    failed: { failedAt: four, reason: 'TIMED_OUT' },
    'sent failed': { sentAt: four, failedAt: five, reason: 'UNDELIVERABLE' },
  }
  const sms = /failed|expired/.test(drawn.outcome) ? plans[drawn.sms] : undefined
  const actions: PastAction[] = drawn.actions.map(({ kind, at }, k) => ({ kind, at: toText(at), text: `${n} ${k}` }))
  // The order of the numbers is not that of the messages.
  return {
    recipient: phone((n * 11) % 97),
    acceptedAt,
    ...outcomes[drawn.outcome],
    ...(sms && { sms }),
    actions,
    test: drawn.of === 'test',
  }
}

const isIn = ({ from, to }: Range, at: string) => (from ?? '') <= at.slice(0, 10) && at.slice(0, 10) <= (to ?? '9')
const rate = (part: number, whole: number) => (whole === 0 ? null : Math.min(1, Number((part / whole).toFixed(4))))

function summaryOf(reached: Reached[], { from = null, to = null }: { from?: string | null; to?: string | null }) {
  const count = (wanted: string) =>
    reached.filter(({ kind, at }) => kind === wanted && isIn({ ...(from && { from }), ...(to && { to }) }, at)).length
  const [accepted, sent, delivered, read, clicked] = ['accepted', 'sent', 'delivered', 'read', 'clicked'].map(count) as [
    number,
    number,
    number,
    number,
    number,
  ]
  return {
    ...{ from, to, recipients: accepted, accepted, sent, delivered, read, failed: count('failed'), expired: count('expired') },
    ...{ clicked, replied: count('replied'), optedOut: count('opted-out') },
    ...{ deliveryRate: rate(delivered, sent), readRate: rate(read, delivered), clickRate: rate(clicked, delivered) },
    smsFallback: { sent: count('sms-sent'), delivered: count('sms-delivered'), failed: count('sms-failed'), skipped: count('sms-skipped') },
  }
}

const AGGREGATED = ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied']

function aggregationsOf(reached: Reached[], range: Range, interval: 'hour' | 'day') {
  const [length, stepMs] = interval === 'day' ? [10, DAY_MS] : [13, DAY_MS / 24]
  const inRange = reached.filter(({ at }) => isIn(range, at))
  const begins = inRange.map(({ at }) => Date.parse(interval === 'day' ? at.slice(0, 10) : `${at.slice(0, 13)}:00:00Z`))
  const first = range.from === undefined ? Math.min(...begins) : Date.parse(range.from)
  const last = range.to === undefined ? Math.max(...begins) : Date.parse(range.to) + DAY_MS - 1
  const items: Record<string, unknown>[] = []
  // Without any event, an open end is at infinity.
  for (let begin = first; begin <= last && Number.isFinite(begin) && Number.isFinite(last); begin += stepMs) {
    const period = new Date(begin).toISOString()
    const during = inRange.filter(({ at }) => at.slice(0, length) === period.slice(0, length))
    const counts = AGGREGATED.map((name) => [name, during.filter(({ kind }) => kind === name).length])
    items.push({ period: interval === 'day' ? period.slice(0, 10) : period, ...Object.fromEntries(counts) })
  }
  return { interval, items }
}

/** A stable sort by this key. */
function sorted<Item>(items: Item[], sort: string, keyOf: (item: Item) => string): Item[] {
  const ascending = items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : Number(keyOf(a) > keyOf(b))))
  return sort.startsWith('-') ? ascending.toReversed() : ascending
}

function recipientsOf(messages: Written[], eventType: string, range: Range, sort: string) {
  const items = messages.flatMap((each) =>
    reachedBy(each)
      .filter(({ kind, at }) => kind === eventType && isIn(range, at))
      .map(({ at, reason }) => ({ messageId: each.messageId, recipient: each.recipient, occurredAt: at, reason })),
  )
  return sorted(items, sort, (item) => (sort.endsWith('recipient') ? item.recipient : `${item.occurredAt} ${item.messageId}`))
}

function actionsOf(messages: Written[], range: Range, sort: string) {
  const items = messages.flatMap(({ messageId, recipient, actions = [] }) =>
    actions
      .filter(({ at }) => isIn(range, at))
      .map(({ kind, at, text }) => ({ messageId, recipient, action: kind as string, text, occurredAt: at })),
  )
  const field = sort.replace('-', '') as 'recipient' | 'action' | 'occurredAt'
  return sorted(items, sort, (item) => item[field]).map((item) => ({ ...item, buttonId: null, payload: null, url: null }))
}

const EVENT_TYPES = [
  ...['accepted', 'sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied', 'opted-out'],
  ...['sms-sent', 'sms-delivered', 'sms-failed'],
]
const SORTS = ['occurredAt', '-recipient', '-action', '-occurredAt', 'recipient', 'action']

type World = { caller: ReportCaller; campaignId: string; ofCampaign: Written[]; ofSingle: Written[] }

/** Every report of these days equals the model. */
async function assertReports(
  { caller, campaignId, ofCampaign, ofSingle }: World,
  range: Range,
  limit: number,
  turn: number,
): Promise<void> {
  const query = Object.entries(range)
    .map(([name, day]) => `&${name}=${day}`)
    .join('')
  const of = (report: string) => `/campaigns/${campaignId}/${report}?${query}`
  const [campaign, single] = [ofCampaign.flatMap(reachedBy), ofSingle.flatMap(reachedBy)]
  assert.deepEqual(await caller.report(of('summary')), { campaignId, ...summaryOf(campaign, range) })
  assert.deepEqual(await caller.report(`/messages/summary?${query}`), summaryOf(single, range))
  for (const interval of ['day', 'hour'] as const) {
    assert.deepEqual(await caller.report(`${of('aggregations')}&interval=${interval}`), aggregationsOf(campaign, range, interval))
  }
  assert.deepEqual(await caller.report(`/messages/aggregations?${query}`), aggregationsOf(single, range, 'day'))
  for (const [index, eventType] of EVENT_TYPES.entries()) {
    const sort = SORTS.filter((each) => !each.endsWith('action'))[(index + turn) % 4] ?? ''
    const items = await caller.walk(`${of(`recipients/${eventType}`)}&sort=${sort}`, limit)
    assert.deepEqual(items, recipientsOf(ofCampaign, eventType, range, sort), `${eventType} by ${sort}`)
  }
  const sort = SORTS[turn % SORTS.length] ?? ''
  assert.deepEqual(await caller.walk(`${of('action-details')}&sort=${sort}`, limit), actionsOf(ofCampaign, range, sort), sort)
}

/** Writes a history, and reads all reports of it, of all time and of some days. */
async function play({ first, messages, ranges, isFolded, limit, turn }: History): Promise<void> {
  const caller = await newCaller()
  const past = messages.map((drawn, n) => ({ ...toMessage(drawn, n, first), of: drawn.of }))
  const byCampaign = Map.groupBy(past, ({ of }) => of === 'campaign')
  const { campaignId, messages: ofCampaign } = await writeCampaign(pool, caller, byCampaign.get(true) ?? [])
  if (isFolded) await foldReports(pool)
  const others = await writeMessages(pool, caller, byCampaign.get(false) ?? [])
  const world = { caller, campaignId, ofCampaign, ofSingle: others.filter(({ of }) => of === 'single') }
  await assertReports(world, {}, limit, turn)
  for (const [index, { from, length }] of ranges.entries()) {
    const to = length === null ? undefined : dayOf(first, (from ?? 0) + length)
    await assertReports(world, { ...(from !== null && { from: dayOf(first, from) }), ...(to && { to }) }, limit, turn + index + 1)
  }
}

describe(`reports (fast-check, seed ${seed}, ${runs} runs)`, () => {
  test('equal the model for any history and any range of days', async () => {
    await fc.assert(fc.asyncProperty(history, play), { seed, numRuns: runs })
  })
})
