import { eventBody } from '../../src/events/pages.ts'
import type { Attempt, History } from '../history/history.ts'
import type { Logged } from '../history/log.ts'
import type { Arrival } from '../load/sink.ts'
import { explainsRepeat, isDatabase, isWebhooks } from './causes.ts'
import { type Check, countBy, least } from './result.ts'

// What arrived at endpoints, against the log and the stored attempts.

/** `expected`: the events of the log that the endpoint wants. */
type OfEndpoint = { path: string; arrivals: Arrival[]; expected: Logged[]; attempts: Attempt[] }

const isAccepted = ({ status }: { status: number | null }) => status !== null && status < 300
const idsOf = (some: readonly { eventId: string }[]) => new Set(some.map(({ eventId }) => eventId))

function endpointsOf({ received, log, attempts }: History): OfEndpoint[] {
  const byPath = Map.groupBy(attempts, ({ path }) => path)
  return received.flatMap(({ accountId, endpoints }) =>
    endpoints.map(({ path, kinds, arrivals }) => ({
      path,
      arrivals,
      expected: log.filter((event) => event.accountId === accountId && (kinds === undefined || kinds.includes(event.kind))),
      attempts: byPath.get(path) ?? [],
    })),
  )
}

/** Each event that an endpoint wants was accepted, with the bytes of the log and a valid signature; and no other event came. */
export const checkArrivals: Check = (history) => {
  const all = endpointsOf(history)
  const wrong = all.flatMap(({ path, arrivals, expected, attempts }) => {
    const bodies = new Map(expected.map((event) => [event.eventId, eventBody(event)]))
    const wanted = new Set(bodies.keys())
    const altered = arrivals.filter(({ eventId, body }) => wanted.has(eventId) && body !== bodies.get(eventId))
    const kinds: Record<string, Set<string>> = {
      missing: wanted.difference(idsOf(arrivals.filter(isAccepted))),
      unwanted: idsOf(arrivals).difference(wanted),
      altered: idsOf(altered),
      unsigned: idsOf(arrivals.filter(({ isGenuine }) => !isGenuine)),
      'not stored as accepted': wanted.difference(idsOf(attempts.filter(isAccepted))),
    }
    return Object.entries(kinds).flatMap(([kind, ids]) => [...ids].map((id) => `${path}: ${id} is ${kind}`))
  })
  return { compared: least(all.map(({ expected }) => expected.length)), wrong }
}

// The most calls to an endpoint at once, and as many whose results are being stored.
const UNDER_WAY = 2 * 64

/** An accepted event comes again only if a fault kept the result from being stored; and so for attempts that were never stored. */
export const checkRepeatedEvents: Check = (history) => {
  const { faults } = history
  const all = endpointsOf(history)
  const most = faults.filter((fault) => isWebhooks(fault) || isDatabase(fault)).length * UNDER_WAY
  const wrong = all.flatMap(({ path, arrivals, attempts }) => {
    const repeated = repeatedOf(arrivals)
    const unstored = arrivals.length - attempts.filter(({ status }) => status !== null).length
    return [
      ...repeated
        .filter(({ acceptedAt, againAt }) => !faults.some((fault) => explainsRepeat(fault, acceptedAt, againAt)))
        .map(
          ({ eventId, acceptedAt }) => `${path}: ${eventId}, accepted at ${new Date(acceptedAt).toISOString()}, came again without a fault`,
        ),
      ...(repeated.length > most ? [`${path}: ${repeated.length} came again; at most ${most} were under way`] : []),
      ...(unstored > most ? [`${path}: ${unstored} attempts were not stored; at most ${most} were under way`] : []),
      ...unseen(arrivals, attempts).map((what) => `${path}: a stored attempt that the endpoint has not seen: ${what}`),
    ]
  })
  return { compared: all.reduce((sum, { attempts }) => sum + attempts.length, 0), wrong }
}

/** `acceptedAt`: for the first time. */
function repeatedOf(arrivals: readonly Arrival[]): { eventId: string; acceptedAt: number; againAt: number }[] {
  const accepted = new Map<string, number>()
  return arrivals.flatMap((arrival) => {
    const acceptedAt = accepted.get(arrival.eventId)
    if (acceptedAt !== undefined) return [{ eventId: arrival.eventId, acceptedAt, againAt: arrival.at }]
    if (isAccepted(arrival)) accepted.set(arrival.eventId, arrival.at)
    return []
  })
}

/** For each event, no more stored attempts with a status than responses with it. */
function unseen(arrivals: readonly Arrival[], attempts: readonly Attempt[]): string[] {
  const keyOf = ({ eventId, status }: Pick<Attempt, 'eventId' | 'status'>) => `${eventId} ${status}`
  const seen = countBy(arrivals, keyOf)
  const responded = attempts.filter(({ status }) => status !== null)
  return [...countBy(responded, keyOf)].filter(([what, count]) => count > (seen.get(what) ?? 0)).map(([what]) => what)
}

/** Of messages whose events were all accepted at once. An event that was refused, or had no response within 15 s, comes later. */
export const checkOrder: Check = (history) => {
  const wrong: string[] = []
  let compared = 0
  for (const { path, arrivals, expected, attempts } of endpointsOf(history)) {
    const late = idsOf([...arrivals.filter((one) => !isAccepted(one)), ...attempts.filter(({ status }) => status === null)])
    const firstAt = new Map(arrivals.map(({ eventId }, n) => [eventId, n] as const).toReversed())
    for (const [subject, events] of Map.groupBy(expected, ({ subjectId }) => subjectId)) {
      if (events.length < 2 || events.some(({ eventId }) => late.has(eventId))) continue
      compared += 1
      const came = events.toSorted((a, b) => (firstAt.get(a.eventId) ?? 0) - (firstAt.get(b.eventId) ?? 0))
      if (came.some(({ kind }, n) => kind !== events[n]?.kind))
        wrong.push(`${path}: the events of ${subject} came as ${came.map(({ kind }) => kind).join(', ')}`)
    }
  }
  return { compared, wrong }
}
