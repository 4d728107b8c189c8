import type { History } from '../history/history.ts'
import type { Scripted } from '../history/scripted.ts'
import type { Probe } from '../load/probes.ts'
import { add, drop, edit, from, type Mutation, set } from './mutator.ts'

// A record of each kind as a correct run has it, and mutations of it.

const PROBE: Probe = { kind: 'send', key: 'key', sentAt: 1_000, respondedAt: 1_100, status: 503, messageId: undefined }

const probes = (...edits: Partial<Probe>[]) => ({ probes: edits.map((fields) => ({ ...PROBE, ...fields })) })
const COMEBACK = { visible: new Set<string>(), lateWrites: 2, newConnections: 0, newMessages: 0 }
const OUTAGE = { what: 'cut', from: 0, to: 3_000, servesReads: false, ready: [], resumedMs: 300, limitMs: 10_000 }

export const SAMPLE: Required<Scripted> = {
  cases: [{ name: 'a case' }],
  counters: { compared: 1, wrong: [] },
  outages: [
    { ...OUTAGE, probes: [PROBE, { ...PROBE, sentAt: 2_900, respondedAt: 3_100, status: 202 }] },
    { ...OUTAGE, servesReads: true, probes: [PROBE, { ...PROBE, kind: 'read', status: 200 }] },
  ],
  halts: [{ campaignId: 'campaign', waiting: ['a message'], from: 0, to: Number.POSITIVE_INFINITY }],
  stops: [{ node: 'api-1', tookMs: 400, ...probes({ status: 202 }, { key: 'not begun', status: 0 }) }],
  shares: ['api-1', 'api-2'].map((node) => ({ node, role: 'api', done: 80 })),
  failovers: [{ manner: 'frozen', withoutServiceMs: 4_000, resumedMs: 300, comeback: COMEBACK }],
  unconfirmed: { meanwhile: [PROBE], wasOnPrimary: true, isOnStandby: true },
}

const acceptedId = ({ ledger }: History) => ledger.find(({ kind }) => kind === 'accepted')?.messageId

export const SCRIPTED_MUTATIONS: Record<string, Mutation[]> = {
  'every case reached its instant': [edit('scripted.cases', {}, { error: 'no kill hit anything' })],
  'counters equal rows during faults': [add('scripted.counters.wrong', 'a counter')],
  'a database that is away is a 503 within 5 s': [
    edit('scripted.outages', {}, probes({ status: 202 })),
    edit('scripted.outages', {}, probes({ status: 500 })),
    edit('scripted.outages', {}, probes({ status: 0 })),
    edit('scripted.outages', {}, probes({}, { respondedAt: 6_001 })),
    edit('scripted.outages', {}, probes({ kind: 'read', status: 200 })),
    edit('scripted.outages', {}, probes({ kind: 'ready', status: 200 })),
    edit('scripted.outages', { servesReads: true }, probes({ status: 202 })),
    edit('scripted.outages', {}, { probes: [] }),
    edit('scripted.outages', {}, { ready: ['api-1'] }),
    edit('scripted.outages', {}, { resumedMs: 11_000 }),
  ],
  'a stopped campaign sends nothing': [
    edit('scripted.halts', {}, { waiting: from((history) => [acceptedId(history)]) }),
    edit(
      'scripted.halts',
      {},
      {
        campaignId: from(({ messages }) => messages.find(({ campaignId }) => campaignId !== null)?.campaignId),
      },
    ),
    edit('scripted.halts', {}, { waiting: [] }),
  ],
  'a stopped node responds to what it has begun': [
    edit('keys', { endpoint: 'messages' }, { key: 'not begun' }),
    edit('scripted.stops', {}, { tookMs: 10_001 }),
    edit('scripted.stops', {}, { probes: [] }),
  ],
  'both nodes of each role do a share': [edit('scripted.shares', { node: 'api-2' }, { done: 3 })],
  'service goes on by itself after a failover': [
    edit('scripted.failovers', {}, { resumedMs: 11_000 }),
    edit('scripted.failovers', {}, { resumedMs: Number.NaN }),
    drop('scripted.failovers'),
  ],
  'a primary that comes back is left alone': [
    edit('scripted.failovers', {}, { 'comeback.visible': new Set(['lost']) }),
    edit('scripted.failovers', {}, { 'comeback.newConnections': 1 }),
    edit('scripted.failovers', {}, { 'comeback.newMessages': 1 }),
  ],
  'what only the primary has counts as not accepted': [
    set('scripted.unconfirmed.meanwhile', [{ ...PROBE, status: 202 }]),
    set('scripted.unconfirmed.isOnStandby', false),
    set('scripted.unconfirmed.wasOnPrimary', false),
  ],
}
