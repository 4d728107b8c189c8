import { randomUUID } from 'node:crypto'
import type { CHECKS } from '../checks/checks.ts'
import { smsEndOf } from '../checks/expected.ts'
import { SMS_WINDOW, WORKERS } from '../checks/network.ts'
import type { History } from '../history/history.ts'
import { OF_CAMPAIGNS, type Step, type StoredMessage } from '../history/messages.ts'
import { readLogErrors } from '../history/processes.ts'
import type { Arrival } from '../load/sink.ts'
import type { Fault } from '../schedule/faults.ts'
import { requiredFaults } from '../schedule/plan.ts'
import { add, all, drop, duplicate, edit, from, type Mutation, set } from './mutator.ts'

// For each check, the mutations of the history that it must notice.

const EPOCH = new Date(0).toISOString()
const STRANGER = '+48500999999'
const LIFE_MS = 48 * 3_600_000
const newId = () => randomUUID()

export const fault = (target: string, from: number, to: number, frozenMs = 0): Fault => {
  return { target, manner: frozenMs > 0 ? 'frozen' : 'killed', from, frozenMs, to }
}
export const CALL = { nodeUrl: 'http://api', request: 'POST /messages', sentAt: 1_000, respondedAt: 6_000, timeoutMs: 5_000, status: 0 }
const CHANGE = { queue: 'queue', entry: 'id', by: 'delivery-1', at: 0, wasRunning: true, isTurned: false, lease: 'one', leaseBefore: null }

const SINGLE = { campaignId: null, triggeredBy: null }
const READ = { 'shown.status': 'READ' }
const ARRIVALS = 'received.0.endpoints.0.arrivals'
const ofCampaign = (message: StoredMessage, { campaigns }: History) =>
  campaigns.some(({ id, status }) => id === message.campaignId && status === 'COMPLETED')
const isTriggered = ({ triggeredBy }: StoredMessage) => triggeredBy !== null
const hasSms = (message: StoredMessage) => smsEndOf(message).startsWith('DELIVERED')
const otherAccount = (own: number, _: unknown, { received }: History) => received.find(({ accountId }) => accountId !== own)?.accountId
const has = (steps: Step[], kind: string) => steps.some((step) => step.kind === kind)
const isListed = (kind: string) => (message: StoredMessage) => has(message.steps, kind) && has(message.timeline, kind)
const withoutStep = (kind: string) => (steps: Step[]) => steps.filter((step) => step.kind !== kind)
const changeStep = (kind: string, change: object) => (steps: Step[]) =>
  steps.map((step) => (step.kind === kind ? { ...step, ...change } : step))

/** The outcome of these SMS is not known, though the network has them. */
export const forget = (count: number) =>
  set('messages', (messages: StoredMessage[]) => {
    for (const { shown } of messages.filter(hasSms).slice(0, count))
      shown.smsFallback = { status: 'FAILED', reason: 'OUTCOME_UNKNOWN', segments: 1 }
    return messages
  })
const forgotten = ({ messages }: History) => messages.filter((message) => smsEndOf(message) === 'FAILED OUTCOME_UNKNOWN')
/** When they were submitted to the network. */
export function submittedAt(history: History): number[] {
  const segmentOf = (recipient: string) => history.ledger.find(({ kind, phone }) => kind === 'sms-part' && phone === recipient)
  return forgotten(history).map(({ recipient }) => Date.parse(segmentOf(recipient)?.at ?? ''))
}
/** Events that the endpoint had accepted come again. */
export const comeAgain = (count: number) =>
  set(ARRIVALS, (arrivals: Arrival[]) => [...arrivals, ...arrivals.filter(({ status }) => status < 300).slice(0, count)])
const lastArrival = (history: History) => history.received[0]?.endpoints[0]?.arrivals.at(-1)?.at ?? 0
const logError = (line: string) => add('processes.errors', readLogErrors('api-1', [line])[0])
const writeLine = (lineOf: (history: History) => string | undefined) =>
  set('processes.lines', (lines: string[], _: unknown, history: History) => [...lines, `{"msg":"to ${lineOf(history)}"}`])
const swapFeed = (feed: unknown[]) => feed.toSpliced(3, 2, feed[4], feed[3])

export const MUTATIONS: Record<Exclude<keyof typeof CHECKS, ProvedByRows>, Mutation[]> = {
  'the required faults were injected': [
    set('required', requiredFaults(15)),
    all(
      'a freeze that was too short',
      set('faults', [fault('delivery-1', 0, 20_000, 20_000)]),
      set('required', [{ target: 'delivery', manner: 'frozen', leastFrozenMs: 30_000 }]),
    ),
  ],
  'callers get only documented responses': [
    add('requested.unexpected', 'key: 500'),
    duplicate('calls', {}, { status: 429 }),
    duplicate('calls', {}, { status: 500, request: 'GET /events' }),
  ],
  'every request has a response, unless a fault explains it': [
    add('calls', CALL),
    add('calls', { ...CALL, respondedAt: 1_010, status: 503 }),
    add('calls', { ...CALL, respondedAt: 1_001, timeoutMs: 50 }),
    all('the machine stalled at another time', set('stalls', [{ from: 7_000, to: 20_000 }]), add('calls', CALL)),
    all('the machine stalled for less than half of the time', set('stalls', [{ from: 0, to: 3_000 }]), add('calls', CALL)),
    all(
      'another node had a fault',
      set('faults', [fault('api-2', 0, 10_000), fault('delivery-1', 0, 10_000), fault('network', 0, 10_000)]),
      duplicate('calls', {}, { ...CALL, nodeUrl: from(({ addresses }) => addresses['api-1']) }),
    ),
    all(
      'the database had a fault long before',
      set('faults', [fault('database', -20_000, -10_000)]),
      add('calls', { ...CALL, status: 503 }),
    ),
  ],
  'accepted requests equal messages': [
    drop('messages', SINGLE),
    drop('keys', { endpoint: 'messages' }),
    edit('requested.messages', { outcome: 'accepted' }, { ids: (ids: string[]) => [...ids, newId()] }),
    edit('messages', SINGLE, { recipient: STRANGER }),
    edit('requested.messages', { outcome: 'accepted' }, { outcome: 'too-late' }),
  ],
  'a campaign has one message for each recipient': [
    drop('messages', ofCampaign),
    duplicate('messages', ofCampaign, { id: newId }),
    edit('campaigns', {}, { status: 'RUNNING' }),
    duplicate('campaigns', {}, { id: newId }),
  ],
  'contents are as requested on phones, in the API and in events': [
    edit('phones', { channel: 'rcs' }, { text: 'Your parcel 9-9 is on its way.' }),
    edit('phones', { channel: 'rcs' }, { origin: 'other' }),
    edit('phones', ({ buttons }) => buttons.length > 0, { buttons: [] }),
    edit('phones', { channel: 'rcs' }, { expiresAt: EPOCH }),
    edit('phones', { channel: 'sms' }, { text: 'other' }),
    edit('phones', { channel: 'sms' }, { origin: 'Other' }),
    ...['agentId', 'recipient', 'clientReferenceId', 'scheduledAt', 'expiresAt'].map((field) =>
      edit('messages', SINGLE, { [`shown.${field}`]: 'other' }),
    ),
    edit('messages', SINGLE, { 'shown.clientReferenceId': undefined }),
    ...[-3_600_000, 1].map((ms) =>
      edit('messages', ({ campaignId, expiresAt, acceptedAt }) => campaignId !== null && expiresAt - acceptedAt > LIFE_MS - 3_600_000, {
        expiresAt: (_: number, { acceptedAt }: StoredMessage) => acceptedAt + LIFE_MS + ms,
        'shown.expiresAt': (_: string, { expiresAt }: StoredMessage) => new Date(expiresAt).toISOString(),
      }),
    ),
    edit('log', { kind: 'message.sent' }, { data: (data: string) => JSON.stringify({ ...JSON.parse(data), recipient: STRANGER }) }),
  ],
  'nothing of one account is at another': [
    edit('messages', SINGLE, { accountId: otherAccount }),
    edit('keys', {}, { accountId: otherAccount }),
    edit('log', { kind: 'message.sent' }, { accountId: otherAccount }),
    edit('actions', {}, { accountId: otherAccount }),
    edit('campaigns', {}, { accountId: otherAccount }),
    add('leaked', 'a message'),
    edit('ledger', { kind: 'accepted' }, { agentId: 'other' }),
  ],
  'every message has an allowed final status': [
    edit('messages', READ, { 'shown.status': 'SENT' }),
    edit('messages', READ, { 'shown.failure': { reason: 'REJECTED' } }),
    edit('messages', ofCampaign, { 'shown.status': 'FAILED', 'shown.failure': { reason: 'CAMPAIGN_CANCELLED' } }),
    edit('messages', hasSms, { 'shown.smsFallback': { status: 'SCHEDULED', segments: 1 } }),
  ],
  'columns equal timelines, events and the API': [
    ...[...OF_CAMPAIGNS, 'sms-sent', 'sms-delivered', 'sms-failed', 'sms-scheduled', 'sms-skipped'].flatMap((kind) => [
      edit('messages', isListed(kind), { timeline: withoutStep(kind) }),
      edit('messages', isListed(kind), { steps: withoutStep(kind) }),
    ]),
    ...OF_CAMPAIGNS.flatMap((kind) => [
      edit('messages', ({ campaignId, steps }) => campaignId === null && has(steps, kind), {
        timeline: (_: Step[], { steps, timeline }: StoredMessage) => [...timeline, ...steps.filter((step) => step.kind === kind)],
      }),
      drop('log', (event, { messages }) => {
        return event.kind === `message.${kind}` && messages.some(({ id, campaignId }) => id === event.subjectId && campaignId === null)
      }),
    ]),
    edit('messages', isListed('delivered'), { timeline: (steps: Step[]) => [...steps, { kind: 'delivered', at: 1, reason: null }] }),
    edit('messages', isListed('delivered'), { timeline: changeStep('delivered', { at: 1 }) }),
    edit('messages', isListed('failed'), { timeline: changeStep('failed', { reason: 'OTHER' }) }),
    edit('log', { kind: 'sms.delivered' }, { occurredAt: new Date(0) }),
    edit('messages', READ, { 'shown.readAt': EPOCH }),
    edit('messages', READ, { 'shown.sentAt': undefined }),
    edit('messages', READ, { 'shown.status': 'DELIVERED' }),
    edit('messages', READ, { expiresAt: 0 }),
    edit('messages', READ, { timeline: (steps: Step[]) => [...steps, { kind: 'delivered-late', at: 0, reason: null }] }),
  ],
  'the API shows what the network did': [
    drop('ledger', { kind: 'delivered' }),
    drop('ledger', { kind: 'read' }),
    set('ledger', (ledger: History['ledger']) => ledger.filter(({ kind }) => kind !== 'refused')),
    duplicate('ledger', { kind: 'accepted' }, { messageId: newId }),
    duplicate(
      'ledger',
      { kind: 'delivered' },
      {
        messageId: from(({ messages }) => messages.find(({ shown }) => shown.status === 'EXPIRED')?.id),
      },
    ),
  ],
  'replies are stored once, and taps send once': [
    drop('actions'),
    duplicate('actions'),
    edit('actions', { kind: 'wrote' }, { text: 'other' }),
    edit('actions', { kind: 'wrote' }, { phone: '+48500999906' }),
    edit('actions', { kind: 'wrote' }, { messageId: newId }),
    edit('actions', { kind: 'wrote' }, { messageId: null }),
    edit('actions', { kind: 'opted-out' }, { kind: 'wrote' }),
    edit('actions', { kind: 'tapped' }, { buttonId: 'other' }),
    drop('messages', isTriggered),
    duplicate('messages', isTriggered),
  ],
  'no message is twice on a phone': [
    duplicate('ledger', { kind: 'delivered' }),
    duplicate('ledger', { kind: 'delivered' }, { messageId: newId }),
  ],
  'no SMS is submitted twice, and unknown outcomes are explained': [
    duplicate('ledger', { kind: 'sms-part' }),
    forget(1),
    all(
      'an SMS that was never submitted is unknown, without a fault',
      forget(1),
      set('ledger', (ledger: History['ledger'], _: unknown, history: History) =>
        ledger.filter(({ phone }) => forgotten(history).every(({ recipient }) => recipient !== phone)),
      ),
      // Else it is one too many.
      set('faults', [fault('network', 0, 1)]),
    ),
    ...[[], [1_500]].map((stalledMs) =>
      all(
        `an SMS is unknown that was under way at another time, with stalls of ${stalledMs} ms`,
        forget(1),
        set('faults', (_: unknown, __: unknown, history: History) => {
          const [at = 0] = submittedAt(history)
          return [fault('delivery-1', at + 4_000, at + 9_000), fault('network', at - 60_000, at - 50_000), fault('api-1', at, at)]
        }),
        set(
          'stalls',
          from((history) => stalledMs.map((ms) => ({ from: submittedAt(history)[0] ?? 0, to: (submittedAt(history)[0] ?? 0) + ms }))),
        ),
      ),
    ),
    all('more are unknown than can be under way', forget(WORKERS * SMS_WINDOW + 1), set('faults', [fault('network', 0, 1e13)])),
    drop('ledger', { kind: 'sms-part' }),
    drop('ledger', { kind: 'sms-failed' }),
    duplicate(
      'ledger',
      { kind: 'sms-part' },
      {
        phone: from(({ messages }) => messages.find(({ shown }) => shown.status === 'READ')?.recipient),
      },
    ),
  ],
  'results are stored by the holder of the lease': [
    all(
      'another node claims it meanwhile',
      add('leaseChanges', CHANGE),
      add('leaseChanges', { ...CHANGE, by: 'delivery-2', lease: 'other', leaseBefore: 'one' }),
    ),
    all(
      'another node stores the result',
      add('leaseChanges', CHANGE),
      add('leaseChanges', { ...CHANGE, by: 'delivery-2', lease: null, leaseBefore: 'one' }),
    ),
    add('leaseChanges', CHANGE),
    add('leaseChanges', { ...CHANGE, lease: null }),
    set('leaseChanges', (changes: History['leaseChanges']) =>
      changes.slice(0, changes.findIndex(({ queue, lease }) => queue === 'sms_queue' && lease !== null) + 1),
    ),
  ],
  'status counts of campaigns equal their messages': [
    ...['ACCEPTED', 'READ', 'FAILED', 'EXPIRED'].map((status) =>
      edit('campaigns', {}, { [`shown.counts.${status}`]: (count = 0) => count + 1 }),
    ),
    edit('campaigns', {}, { 'shown.counts': {} }),
    edit('campaigns', {}, { 'shown.recipients': (count: number) => count + 1 }),
  ],
  'the log has each position once, in order': [
    drop('pages', ({ lastPosition }) => lastPosition !== 1),
    drop('pages', ({ lastPosition }, { heads }) => lastPosition === heads[0]?.lastPosition),
    duplicate('pages'),
    duplicate('pages', {}, { pageId: newId }),
    duplicate('pages', {}, { lastPosition: 1e6 }),
    edit('pages', {}, { lastPosition: (position: number) => position - 1 }),
    edit('pages', {}, { lastPosition: null }),
    edit('pages', {}, { stored: (stored: number) => stored - 1 }),
    edit('heads', {}, { lastPosition: (position: number) => position + 1 }),
    edit('heads', {}, { lastPosition: (position: number) => position - 1 }),
    drop('heads'),
    edit('log', { kind: 'message.sent' }, { position: 1e6 }),
    duplicate('log', { kind: 'message.sent' }, { eventId: newId }),
    edit('log', {}, { eventId: from(({ log }) => log[1]?.eventId) }),
  ],
  'the feed equals the log': [
    set('received.0.feed', (feed: unknown[]) => feed.toSpliced(3, 1)),
    set('received.0.feed', (feed: unknown[]) => feed.toSpliced(3, 0, feed[3])),
    set('received.0.feed', (feed: unknown[]) => feed.slice(0, -1)),
    set('received.0.feed', swapFeed),
    duplicate('received.0.feed'),
    set('log', (log: History['log']) => [...log.slice(-1), ...log.slice(0, -1)]),
    set('received.1.feed', (feed: unknown[]) => feed.toSpliced(3, 1)),
  ],
  'endpoints get the log': [
    set(ARRIVALS, (arrivals: Arrival[]) => arrivals.filter(({ eventId }) => eventId !== arrivals[0]?.eventId)),
    edit(ARRIVALS, {}, { body: 'other' }),
    edit(ARRIVALS, {}, { isGenuine: false }),
    duplicate(
      'received.0.endpoints.1.arrivals',
      {},
      {
        eventId: from(({ log }) => log.find(({ kind }) => kind === 'message.read')?.eventId),
      },
    ),
    duplicate(ARRIVALS, {}, { eventId: from(({ received }) => received[1]?.endpoints[0]?.arrivals[0]?.eventId) }),
    set('attempts', (attempts: History['attempts']) => attempts.filter(({ eventId }) => eventId !== attempts[0]?.eventId)),
  ],
  'an event comes again only if a fault explains it': [
    comeAgain(1),
    all(
      'the fault was at another time, or of another target',
      comeAgain(1),
      set('faults', (_: unknown, __: unknown, history: History) => {
        const at = lastArrival(history)
        const webhooks = [fault('webhooks-1', at - 30_000, at + 9_000), fault('webhooks-2', at + 6_000, at + 9_000)]
        return [...webhooks, fault('database', at - 60_000, at - 50_000), fault('delivery-1', at, at)]
      }),
    ),
    all('more come again than can be under way', comeAgain(129), set('faults', [fault('database', 0, 1e13)])),
    all(
      'more attempts are not stored than can be under way',
      set('attempts', (attempts: History['attempts']) => attempts.slice(-9)),
      set('faults', [fault('database', 0, 1e13)]),
    ),
    duplicate('attempts', {}, { eventId: newId }),
  ],
  'the events of a message come in order': [set(ARRIVALS, (arrivals: Arrival[]) => arrivals.toReversed())],
  'keys return their first response': [
    edit('replays', {}, { id: newId }),
    edit('replays', {}, { isReplayed: false }),
    edit('replays', {}, { status: 400 }),
    drop('replays'),
  ],
  'an abandoned key has one message at most': [
    duplicate('keys', ({ key }, { requested }) => requested.messages.some((one) => one.key === key && one.habit === 'stops-waiting'), {
      id: newId,
    }),
  ],
  'the network loses nothing itself': [
    set(
      'seenBefore',
      from(({ ledger }) => [{ ...ledger[0], kind: 'another' }]),
    ),
    drop('ledger', { seq: 4 }),
  ],
  'nothing remains to be done': [set('remaining.queue', 1), set('remaining.pages without a position', 1)],
  'the walk of expiries skips no open message': [
    edit('walks', {}, { reachedAt: (_: number, { dueAt }: History['walks'][number]) => dueAt + 1 }),
    edit('walks', {}, { reachedAt: (reachedAt: number) => reachedAt - 61_000 }),
    edit('walks', {}, { passed: ['a message'] }),
    drop('walks'),
    duplicate('walks'),
  ],
  'no process ended by itself, all respond': [add('processes.endedByItself', 'api-1 ended with 1'), add('processes.silent', 'api-1')],
  'logs have no error that a fault does not explain': [
    logError('{"level":"error","msg":"","err":{"code":"23505"}}'),
    logError('{"level":"error","time":"2026-01-01T00:00:00Z","msg":"failed to get an access token; will retry with each message"}'),
    logError('{"level":"fatal","msg":""}'),
    logError('{"level":"error","msg":"a request failed","err":{"type":"Error","message":"x"}}'),
    add('processes.errors', { process: 'database', level: 'fatal', text: 'server process (PID 1) was terminated by signal 9: Killed' }),
  ],
  'logs have no number, text or secret': [
    writeLine(({ messages }) => messages[0]?.recipient),
    writeLine(({ messages }) => messages[0]?.recipient.slice(1)),
    writeLine(({ requested }) => requested.messages[0]?.contents.text),
    writeLine(({ secrets }) => secrets[0]),
  ],
}

/** The database compares these, so their mutations change rows. */
export type ProvedByRows = 'rows keep the rules of their tables' | 'counters equal rows' | 'every change is emitted once'
