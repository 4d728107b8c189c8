import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { eventBody, placeKey, readEventsAt } from '../events/pages.ts'
import { unsignedHeaders } from './attempt.ts'
import { ATTEMPT, type Attempt, type AttemptRow, toAttempts } from './attempts.ts'
import { findEndpoint } from './endpoints.ts'

/** What was posted, without the signature. `url` is the endpoint's URL now. */
type SentRequest = { url: string; headers: Record<string, string>; body: string }

/** Reads an attempt by its id, and makes its request again from the log; null if the log no longer has the event. */
export async function readAttempt(
  pool: Pool,
  accountId: number,
  endpointId: number,
  attemptId: string,
): Promise<Attempt & { request: SentRequest | null }> {
  const { url } = await findEndpoint(pool, endpointId, accountId)
  const row = await findAttempt(pool, { endpointId, accountId }, attemptId)
  if (row === undefined) {
    const reason = 'names no attempt of this endpoint in the last 30 days'
    throw new ApiError('RCS_NOT_FOUND', { details: [{ path: '/attemptId', reason }] })
  }
  const { position, attemptedAt } = row
  const [attempt] = (await toAttempts(pool, { endpointId, accountId }, [row])) as [Attempt]
  const event = (await readEventsAt(pool, [{ accountId, position }])).get(placeKey(accountId, position))
  const request = event && { url, headers: unsignedHeaders(event.eventId, attemptedAt), body: eventBody(event) }
  return { ...attempt, request: request ?? null }
}

type Owner = { endpointId: number; accountId: number }

/** By the unique index, whose columns the id has. */
async function findAttempt(pool: Pool, { endpointId, accountId }: Owner, attemptId: string): Promise<AttemptRow | undefined> {
  const [, time, ...others] = /^wa-(\d{1,13})-(\d{1,18})-(\d{1,9})-(\d{1,9})-(\d{1,3})$/.exec(attemptId) ?? []
  if (time === undefined) return undefined
  const { rows } = await pool.query<AttemptRow>(
    `select ${ATTEMPT} from webhook_attempts
     where endpoint_id = $1 and account_id = $2 and attempted_at = $3
       and position = $4::bigint and attempt = $5::int and duration_ms = $6::int and coalesce(status, 0) = $7::int`,
    [endpointId, accountId, new Date(Number(time)), ...others],
  )
  return rows[0]
}
