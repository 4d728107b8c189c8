import type { Executor } from '../db/pool.ts'
import { webhookSecretContext } from '../db/secrets.ts'
import type { Encrypted, Keyring } from '../encryption/keyring.ts'
import { type LoggedEvent, placeKey, readEventsAt } from '../events/pages.ts'

/** An event to post to an endpoint. */
export type Delivery = LoggedEvent & {
  endpointId: number
  accountId: number
  position: number
  /** The transaction id of the router or the replay that made it due. */
  generation: string
  /** Attempts before this one. */
  attempts: number
  subjectId: string | null
  /** Another event about the same subject is due, and waits for this one. */
  hasNext: boolean
  /** When it was read, by the database's clock: this machine's clock may be off, and the time is signed. */
  readAt: Date
}

/** An endpoint's URL, and the secrets that sign its events, newest first. */
export type Target = { id: number; url: string; secrets: string[] }

type ClaimRequest = {
  /** Identifies this process. */
  lease: string
  /** How many more calls each endpoint may have, by its id. An endpoint that is missing gets FIRST_WINDOW. */
  room: ReadonlyMap<number, number>
  /** Subjects with a call in progress. Their deliveries stay due until the result is recorded. */
  underWay: { endpointId: number; subject: string }[]
}

/**
 * The key that keeps events in order: only one event of a subject, such as a message, is posted at a time. An event without a subject waits
 * for none.
 */
export function subjectOf({ subjectId, position }: Pick<Delivery, 'subjectId' | 'position'>): string {
  return subjectId ?? String(position)
}

/** The number of concurrent calls to an endpoint at first. */
export const FIRST_WINDOW = 4
/** After a process dies, its endpoints are served again once this time is over. A running process renews a lease at half of it. */
const LEASE_SECONDS = 10
// Limits a single claim, so that workers starting together share the endpoints.
const MAX_NEW_ENDPOINTS = 100
// How far a claim looks into an endpoint's backlog for events whose subject has no call in progress.
const LOOK_AHEAD = 256
const BATCH_SIZE = 2_000

/**
 * Claims endpoints that have due deliveries and no living worker, and reads the due deliveries of these and of the endpoints that this
 * process already holds, up to the room of each. It reads only the first event of each subject, and none while the subject has a call in
 * progress: a message's `read` event is never posted before its `delivered` event. However long an endpoint's backlog is, the cost is one
 * bounded index scan per endpoint.
 *
 * Only leases change. A delivery stays due until its result is recorded.
 */
export async function claimDue(db: Executor, { lease, room, underWay }: ClaimRequest): Promise<Delivery[]> {
  const { rows } = await db.query<Omit<Delivery, keyof LoggedEvent>>({
    name: 'claim-webhooks',
    text: CLAIM,
    values: [
      lease,
      JSON.stringify(Object.fromEntries(room)),
      underWay.map(({ endpointId }) => endpointId),
      underWay.map(({ subject }) => subject),
    ],
  })
  if (rows.length === 0) return []
  const events = await readEventsAt(db, rows)
  return rows.flatMap((delivery) => {
    const event = events.get(placeKey(delivery.accountId, delivery.position))
    return event === undefined ? [] : [{ ...event, ...delivery }]
  })
}

const IS_OPEN = `e.status = 'ACTIVE' and (e.paused_until is null or e.paused_until <= now())`
const HALF_LEASE = `interval '${LEASE_SECONDS / 2} seconds'`

/** A recursive step `first_due`: every endpoint that has deliveries to make, and when the first is due. One index look-up for each. */
export const FIRST_DUE = `
  first_due as (
    (select endpoint_id, due_at from webhook_deliveries where due_at is not null order by endpoint_id, due_at, position limit 1)
    union all
    select next.*
    from first_due, lateral (
      select endpoint_id, due_at from webhook_deliveries d where d.due_at is not null and d.endpoint_id > first_due.endpoint_id
      order by endpoint_id, due_at, position limit 1
    ) as next
  )`

// An endpoint's room is looked up by key: a join with a list of 1,000 endpoints became a nested loop and took half a second.
export const CLAIM = `
  with recursive ${FIRST_DUE}, held as materialized (
    select e.id from first_due f join webhook_endpoints e on e.id = f.endpoint_id
    where f.due_at <= now() and ${IS_OPEN} and e.lease = $1 and e.leased_until > now() + ${HALF_LEASE}
  ), claimed as materialized (
    -- Leases of this process that need renewal, and expired leases. Rows that are locked are skipped.
    select e.id from first_due f, lateral (
      select id, lease from webhook_endpoints e
      where e.id = f.endpoint_id and ${IS_OPEN} and (e.leased_until <= now() or e.lease = $1 and e.leased_until <= now() + ${HALF_LEASE})
      for no key update skip locked
    ) as e
    where f.due_at <= now() order by e.lease = $1 desc nulls last, f.due_at limit ${MAX_NEW_ENDPOINTS} + cardinality($3::int[])
  ), leased as (
    update webhook_endpoints set lease = $1, leased_until = now() + interval '${LEASE_SECONDS} seconds'
    where id = any (array(select id from claimed))
  )
  select d.endpoint_id as "endpointId", d.account_id as "accountId", d.position, d.generation, d.attempts, d.subject_id as "subjectId",
    d.has_next as "hasNext", clock_timestamp() as "readAt"
  from (select id from held union all select id from claimed) as mine, lateral (
    select *, row_number() over (order by due_at, position) as turn from (
      select distinct on (subject) * from (
        select d.*, coalesce(d.subject_id, d.position::text) as subject,
          count(*) over (partition by coalesce(d.subject_id, d.position::text)) > 1 as has_next
        from (
          select * from webhook_deliveries d where d.endpoint_id = mine.id and d.due_at <= now()
          order by d.due_at, d.position limit ${LOOK_AHEAD}
        ) as d
      ) as near
      where (endpoint_id, subject) not in (select * from unnest($3::int[], $4::text[]))
      order by subject, due_at, position
    ) as first
    order by due_at, position limit coalesce(($2::jsonb ->> mine.id::text)::int, ${FIRST_WINDOW})
  ) as d
  order by d.turn, d.due_at limit ${BATCH_SIZE}`

type TargetRow = Encrypted & { id: number; url: string }
/** `unreadable`: endpoints with a secret that cannot be decrypted, and the error. They do not affect the other endpoints. */
type Targets = { targets: Map<number, Target>; unreadable: Map<number, unknown> }

/** Reads the current state, so that a rotated secret or a removed endpoint applies to the very next call. */
export async function readTargets(db: Executor, ids: number[], keyring: Keyring): Promise<Targets> {
  const { rows } = await db.query<TargetRow>({
    name: 'read-webhook-endpoints',
    text: READ_TARGETS,
    values: [ids],
  })
  const targets = new Map<number, Target>()
  const unreadable = new Map<number, unknown>()
  for (const [id, secrets] of Map.groupBy(rows, (row) => row.id)) {
    try {
      const [{ url }] = secrets as [TargetRow]
      targets.set(id, { id, url, secrets: secrets.map((stored) => keyring.decrypt(webhookSecretContext(id), stored).toString()) })
    } catch (error) {
      unreadable.set(id, error)
    }
  }
  return { targets, unreadable }
}

export const READ_TARGETS = `
  select e.id, e.url, s.key_id as "keyId", s.value
  from webhook_endpoints e join webhook_secrets s on s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
  where e.id = any ($1::int[]) and e.status = 'ACTIVE'
  order by e.id, s.created_at desc, s.ends_at desc nulls first`

/** Call it when a process stops, so that other workers can claim its endpoints at once. */
export async function releaseEndpoints(db: Executor, lease: string): Promise<void> {
  await db.query(`update webhook_endpoints set leased_until = '-infinity' where lease = $1 and leased_until > now()`, [lease])
}
