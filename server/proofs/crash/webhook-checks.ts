import assert from 'node:assert/strict'
import type { Pool } from '../../src/db/pool.ts'
import { eventBody } from '../../src/events/pages.ts'
import type { Logged } from '../log.ts'
import type { Arrival } from './webhook-sink.ts'

// What has to hold between the log, what arrived at an endpoint, and what was written down about it.

/** `expected`: what the log has for this endpoint. `unanswered`: events of which the service has written down that a try had no answer. */
export type Theirs = { arrivals: Arrival[]; expected: Logged[]; unanswered?: readonly string[] }

/** The columns of messages, which nothing of this reads or writes, have the same steps as the log, with the same times. */
export async function assertAllInTheLog(pool: Pool, log: Logged[]): Promise<void> {
  const { rows } = await pool.query<{ id: string; kind: string; at: Date }>(
    `select m.id, step.kind, step.at from messages m, lateral (
       values ('message.sent', m.sent_at), ('message.delivered', m.delivered_at), ('message.read', m.read_at), ('message.failed', m.failed_at),
         ('message.expired', case m.status when 'EXPIRED' then m.expires_at end)
     ) as step (kind, at) where step.at is not null`,
  )
  const told = log.map(({ subjectId, kind, occurredAt }) => `${subjectId} ${kind} ${occurredAt.toISOString()}`)
  const happened = rows.map(({ id, kind, at }) => `${id} ${kind} ${at.toISOString()}`)
  assert.equal(told.length, happened.length)
  assert.deepEqual(new Set(told), new Set(happened))
}

/** Events that should have been taken and were not, and requests that should not have come so: by event. */
export function findMisarrived({ arrivals, expected }: Theirs): {
  missing: string[]
  unwanted: string[]
  altered: string[]
  unsigned: string[]
} {
  const bodies = new Map(expected.map((event) => [event.eventId, eventBody(event)]))
  const idsOf = (some: Arrival[]) => [...new Set(some.map(({ eventId }) => eventId))]
  const taken = new Set(idsOf(arrivals.filter(({ status }) => status < 300)))
  const known = arrivals.filter(({ eventId }) => bodies.has(eventId))
  return {
    missing: [...bodies.keys()].filter((eventId) => !taken.has(eventId)),
    unwanted: idsOf(arrivals.filter(({ eventId }) => !bodies.has(eventId))),
    altered: idsOf(known.filter(({ eventId, body }) => body !== bodies.get(eventId))),
    unsigned: idsOf(arrivals.filter(({ isGenuine }) => !isGenuine)),
  }
}

export function assertArrived(theirs: Theirs): void {
  assert.deepEqual(findMisarrived(theirs), { missing: [], unwanted: [], altered: [], unsigned: [] })
}

/** `again`: requests for events that the endpoint had taken before. */
export function countRepeated({ arrivals, expected }: Theirs): { again: number; refused: number; ofEvents: number } {
  const taken = new Set<string>()
  let again = 0
  let refused = 0
  for (const { eventId, status } of arrivals) {
    if (taken.has(eventId)) again += 1
    else if (status < 300) taken.add(eventId)
    else refused += 1
  }
  return { again, refused, ofEvents: expected.length }
}

/** Where one of a message's events was not taken, it comes again later, and the order is not promised. Returns how many messages were compared. */
export function assertInOrder({ arrivals, expected, unanswered = [] }: Theirs): number {
  const refused = new Set([...unanswered, ...arrivals.filter(({ status }) => status >= 300).map(({ eventId }) => eventId)])
  const firstAt = new Map<string, number>()
  for (const [n, { eventId }] of arrivals.entries()) if (!firstAt.has(eventId)) firstAt.set(eventId, n)
  let compared = 0
  for (const [subject, events] of Map.groupBy(expected, ({ subjectId }) => subjectId)) {
    if (events.length < 2 || events.some(({ eventId }) => refused.has(eventId))) continue
    const came = events.toSorted((a, b) => (firstAt.get(a.eventId) as number) - (firstAt.get(b.eventId) as number))
    assert.deepEqual(
      came.map(({ kind }) => kind),
      events.map(({ kind }) => kind),
      `the events of ${subject}`,
    )
    compared += 1
  }
  return compared
}

/**
 * Whatever was written down has happened: for each event, no more attempts with a status than requests answered with it. One of them took
 * it. Nothing is left over. `unwritten`: requests of those that were killed before they could write it down.
 */
export async function assertAttempts(pool: Pool, endpointId: number, { arrivals, expected }: Theirs): Promise<{ unwritten: number }> {
  const { rows } = await pool.query<{ position: number; status: number | null; error: string | null }>(
    'select position, status, error from webhook_attempts where endpoint_id = $1',
    [endpointId],
  )
  const idOf = new Map(expected.map(({ position, eventId }) => [position, eventId]))
  const attempts = rows.map((row) => ({ ...row, eventId: idOf.get(row.position) ?? `position ${row.position}, which it should not get` }))
  const left = new Map<string, number>()
  const taken = new Set<string>()
  const keyOf = ({ eventId, status }: { eventId: string; status: number | null }) => `${eventId} ${status}`
  for (const arrival of arrivals) left.set(keyOf(arrival), (left.get(keyOf(arrival)) ?? 0) + 1)
  for (const attempt of attempts) {
    assert.equal(attempt.error, null)
    const remaining = (left.get(keyOf(attempt)) ?? 0) - 1
    assert.ok(remaining >= 0, `an attempt that the endpoint has not seen: ${keyOf(attempt)}`)
    left.set(keyOf(attempt), remaining)
    if (attempt.status !== null && attempt.status < 300) taken.add(attempt.eventId)
  }
  assert.deepEqual(taken, new Set(expected.map(({ eventId }) => eventId)))
  const { rowCount } = await pool.query('select from webhook_deliveries where endpoint_id = $1 limit 1', [endpointId])
  assert.equal(rowCount, 0, 'no delivery is left')
  return { unwritten: arrivals.length - attempts.length }
}
