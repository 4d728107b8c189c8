import { randomUUID } from 'node:crypto'
import { drop, type Falsifications, first, hear, isSingle, TOO_LATE, TRY, upset } from './falsifying.ts'
import { essentialUpsets } from './plan.ts'

// What callers were told.

export const ASKED: Falsifications = {
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
    ['an answer 500', (all) => hear(all, false, { status: 500 })],
    ['a limit that nobody has reached', ({ tries }) => tries.push({ ...TRY, status: 429 })],
    ['a page of the feed is a 500', ({ tries }) => tries.push({ ...TRY, request: 'GET /events', status: 500 })],
    ['it is too late before its time', (all) => hear(all, true, { ...TOO_LATE, answeredAt: 0 })],
    ['it is too late, and has no time', (all) => hear(all, false, { ...TOO_LATE, answeredAt: Date.now() + 1e9 })],
    [
      'it is accepted after its time',
      (all) => hear(all, true, { status: 202, body: { messageId: randomUUID() }, sentAt: Date.now() + 1e9 }),
    ],
  ],
  'every request is answered, unless its node or the database is upset': [
    ['no answer', ({ tries }) => tries.push({ ...TRY, status: 0 })],
    ['told to come again', ({ tries }) => tries.push({ ...TRY, answeredAt: 1_010, status: 503 })],
    [
      'a connection that is refused, to one with little patience',
      ({ tries }) => tries.push({ ...TRY, answeredAt: 1_001, timeoutMs: 50, status: 0 }),
    ],
    [
      'the machine stood still at another time',
      (all) => {
        all.stalls = [{ from: 7_000, to: 20_000 }]
        all.tries.push({ ...TRY, status: 0 })
      },
    ],
    [
      'the machine stood still for a part of the time only',
      (all) => {
        all.stalls = [{ from: 0, to: 3_000 }]
        all.tries.push({ ...TRY, status: 0 })
      },
    ],
    [
      'another node was upset',
      (all) => {
        all.upsets = [upset('api-2', 0, 10_000), upset('delivery-1', 0, 10_000), upset('network', 0, 10_000)]
        all.tries.push({ ...TRY, nodeUrl: all.addresses.api as string, status: 0 })
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
}
