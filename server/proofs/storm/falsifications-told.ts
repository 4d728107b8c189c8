import { randomUUID } from 'node:crypto'
import type { Page } from '../log.ts'
import type { Evidence } from './evidence.ts'
import { comeAgain, drop, endpointOf, type Falsification, type Falsifications, first, isKind, upset } from './falsifying.ts'

// What was told.

type Owned = Evidence['log'][number]
const isPlaced = ({ lastPosition }: Page) => lastPosition !== null

/** A message of which the log has two steps. */
function twoSteps({ log }: Evidence): [Owned, Owned] {
  const one = first(log, isKind('message.sent'))
  return [one, first(log, ({ subjectId, kind }) => subjectId === one.subjectId && kind !== one.kind)]
}

export const TOLD: Falsifications = {
  'status counts of campaigns against their messages': [
    ...(['ACCEPTED', 'READ', 'FAILED', 'EXPIRED'] as const).map(
      (status): Falsification => [
        `one shows another count of ${status}`,
        ({ campaigns }) => {
          const { counts } = first(campaigns).shown
          counts[status] = (counts[status] ?? 0) + 1
        },
      ],
    ),
    ['one shows no counts', ({ campaigns }) => (first(campaigns).shown.counts = {})],
    ['one shows another number of recipients', ({ campaigns }) => (first(campaigns).shown.recipients += 1)],
  ],
  'the log has each position once, in order': [
    ['a page is removed', ({ pages }) => drop(pages, ({ lastPosition }) => lastPosition !== 1)],
    ['the last page is removed', ({ pages, heads }) => drop(pages, ({ lastPosition }) => lastPosition === first(heads).lastPosition)],
    ['a page is there twice', ({ pages }) => pages.push(first(pages))],
    [
      'a page has two places',
      ({ pages, heads }) => {
        const page = first(pages)
        const head = first(heads, ({ accountId }) => accountId === page.accountId)
        head.lastPosition += page.eventCount
        pages.push({ ...page, lastPosition: head.lastPosition })
      },
    ],
    ['two pages have one place', ({ pages }) => pages.push({ ...first(pages), pageId: randomUUID() })],
    ['a page reaches into the one before', ({ pages }) => ((first(pages, isPlaced).lastPosition as number) -= 1)],
    ['a page has no place', ({ pages }) => (first(pages).lastPosition = null)],
    ['a page has fewer events than it says', ({ pages }) => (first(pages).stored -= 1)],
    ['the head is ahead', ({ heads }) => (first(heads).lastPosition += 1)],
    ['the head is behind', ({ heads }) => (first(heads).lastPosition -= 1)],
    ['an account has no head', ({ heads }) => heads.pop()],
    [
      'the steps of a message have changed places',
      (all) => {
        const [one, other] = twoSteps(all)
        const { position } = one
        one.position = other.position
        other.position = position
      },
    ],
    ['a step of a message is there twice', (all) => all.log.push({ ...twoSteps(all)[0], eventId: randomUUID() })],
    ['two events have one id', ({ log }) => (first(log).eventId = first(log.slice(1)).eventId)],
  ],
  'the feed against the log': [
    ['one is missed', (all) => first(all.told).followed.splice(3, 1)],
    ['one comes twice', (all) => first(all.told).followed.splice(3, 0, first(all.told).followed[3])],
    ['the last one is missed', (all) => first(all.told).followed.pop()],
    ['two have changed places', (all) => first(all.told).followed.splice(3, 2, first(all.told).followed[4], first(all.told).followed[3])],
    ['there is one more', (all) => first(all.told).followed.push(first(first(all.told).followed))],
    [
      'an event has moved behind a place that was read',
      ({ log }) => {
        const moved = log.pop()
        if (moved !== undefined)
          log.splice(
            log.findIndex(({ accountId }) => accountId === moved.accountId),
            0,
            moved,
          )
      },
    ],
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
        all.upsets = [
          upset('webhooks-1', at - 30_000, at + 9_000),
          upset('webhooks-2', at + 6_000, at + 9_000),
          upset('database', at - 60_000, at - 50_000),
          upset('delivery-1', at, at),
        ]
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
}
