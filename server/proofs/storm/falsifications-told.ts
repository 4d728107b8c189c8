import { randomUUID } from 'node:crypto'
import type { Evidence } from './evidence.ts'
import { comeAgain, endpointOf, type Falsifications, first, isKind, upset } from './falsifying.ts'

// What was told.

export const TOLD: Falsifications = {
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
