import type { Executor } from '../db/pool.ts'
import { webhookSecretPlace } from '../db/secrets.ts'
import type { Encrypted, Keyring } from '../encryption/keyring.ts'
import { type LoggedEvent, placeKey, readEventsAt } from '../events/pages.ts'

/** An event that is to be posted to an endpoint. */
export type Delivery = LoggedEvent & {
  endpointId: number
  accountId: number
  position: number
  /** Of the router's transaction, or of the replay's, that asked for it. */
  generation: string
  /** Before this one. */
  attempts: number
  subjectId: string | null
  /** Another one about the same is due, and waits for this one. */
  hasNext: boolean
  /** When it was read, by the database's clock: this machine's may be off, and the time is signed. */
  readAt: Date
}

/** Where an endpoint is, and what its events are signed with, the newest first. */
export type Target = { id: number; url: string; secrets: string[] }

export type TakeRequest = {
  /** Of this process. */
  lease: string
  /** How many more calls an endpoint may have under way, by its id; of one that is not named, as many as to begin with. */
  room: ReadonlyMap<number, number>
  /** What is under way, which stays due until it has ended. */
  underWay: { endpointId: number; subject: string }[]
}

/** What keeps the order: of a message's events one is posted at a time. One that is about nothing in particular waits for nobody. */
export function subjectOf({ subjectId, position }: Pick<Delivery, 'subjectId' | 'position'>): string {
  return subjectId ?? String(position)
}

/** How many calls at once an endpoint gets that nothing is known of yet. */
export const FIRST_WINDOW = 4
/** Where a process dies, its endpoints are served again after this time. One that lives renews it when half of it is over. */
const LEASE_SECONDS = 10
// At a time, so that workers which come at once share them.
const MOST_NEW_ENDPOINTS = 100
// A backlog of one endpoint is looked into so far for events of other messages than those under way.
const LOOK_AHEAD = 256
const MOST_AT_ONCE = 2_000

/**
 * Takes up endpoints that have something due and that nobody else serves, and reads what is due of them and of those that this process has
 * already, within the room of each: of every message the first event alone, and none while one of it is under way, so that a message is
 * not told to be read before it is told to be delivered. However long the backlog of an endpoint is, it costs a bounded look into the index
 * for each endpoint.
 *
 * Reading changes nothing but leases: what is read is due until its result is written.
 */
export async function takeDue(db: Executor, { lease, room, underWay }: TakeRequest): Promise<Delivery[]> {
  const { rows } = await db.query<Omit<Delivery, keyof LoggedEvent>>({
    name: 'take-webhooks',
    text: TAKE,
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

// The room of each is looked up by its key: a join with a list of 1,000 endpoints compared each with each, and took half a second.
const TAKE = `
  with recursive lane as (
    (select endpoint_id, due_at from webhook_deliveries where due_at is not null order by endpoint_id, due_at, position limit 1)
    union all
    select next.*
    from lane, lateral (
      select endpoint_id, due_at from webhook_deliveries d where d.due_at is not null and d.endpoint_id > lane.endpoint_id
      order by endpoint_id, due_at, position limit 1
    ) as next
  ), held as materialized (
    select e.id from lane join webhook_endpoints e on e.id = lane.endpoint_id
    where lane.due_at <= now() and ${IS_OPEN} and e.lease = $1 and e.leased_until > now() + ${HALF_LEASE}
  ), taken as materialized (
    -- Our own, in time; and those of others, once they have let go. Waits for nobody.
    select e.id from lane, lateral (
      select id, lease from webhook_endpoints e
      where e.id = lane.endpoint_id and ${IS_OPEN} and (e.leased_until <= now() or e.lease = $1 and e.leased_until <= now() + ${HALF_LEASE})
      for no key update skip locked
    ) as e
    where lane.due_at <= now() order by e.lease = $1 desc nulls last, lane.due_at limit ${MOST_NEW_ENDPOINTS} + cardinality($3::int[])
  ), leased as (
    update webhook_endpoints set lease = $1, leased_until = now() + interval '${LEASE_SECONDS} seconds'
    where id = any (array(select id from taken))
  )
  select d.endpoint_id as "endpointId", d.account_id as "accountId", d.position, d.generation, d.attempts, d.subject_id as "subjectId",
    d.has_next as "hasNext", clock_timestamp() as "readAt"
  from (select id from held union all select id from taken) as mine, lateral (
    select *, row_number() over (order by due_at, position) as turn from (
      select distinct on (subject) * from (
        select d.*, coalesce(d.subject_id, d.position::text) as subject, count(*) over (partition by coalesce(d.subject_id, d.position::text)) > 1 as has_next
        from (
          select * from webhook_deliveries d where d.endpoint_id = mine.id and d.due_at <= now() order by d.due_at, d.position limit ${LOOK_AHEAD}
        ) as d
      ) as near
      where (endpoint_id, subject) not in (select * from unnest($3::int[], $4::text[]))
      order by subject, due_at, position
    ) as first
    order by due_at, position limit coalesce(($2::jsonb ->> mine.id::text)::int, ${FIRST_WINDOW})
  ) as d
  order by d.turn, d.due_at limit ${MOST_AT_ONCE}`

type TargetRow = Encrypted & { id: number; url: string }
/** `unreadable`: endpoints with a secret that can't be decrypted, and why. The others are not held up by them. */
export type Targets = { targets: Map<number, Target>; unreadable: Map<number, unknown> }

/** As they are now: a secret that was replaced, or an endpoint that was removed, counts for the very next call. */
export async function readTargets(db: Executor, ids: number[], keyring: Keyring): Promise<Targets> {
  const { rows } = await db.query<TargetRow>({
    name: 'read-webhook-endpoints',
    text: `select e.id, e.url, s.key_id as "keyId", s.value
           from webhook_endpoints e join webhook_secrets s on s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
           where e.id = any ($1::int[]) and e.status = 'ACTIVE'
           order by e.id, s.created_at desc, s.ends_at desc nulls first`,
    values: [ids],
  })
  const targets = new Map<number, Target>()
  const unreadable = new Map<number, unknown>()
  for (const [id, secrets] of Map.groupBy(rows, (row) => row.id)) {
    try {
      const [{ url }] = secrets as [TargetRow]
      targets.set(id, { id, url, secrets: secrets.map((stored) => keyring.decrypt(webhookSecretPlace(id), stored).toString()) })
    } catch (error) {
      unreadable.set(id, error)
    }
  }
  return { targets, unreadable }
}

/** At the end of a process, so that others go on at once. */
export async function releaseEndpoints(db: Executor, lease: string): Promise<void> {
  await db.query(`update webhook_endpoints set leased_until = '-infinity' where lease = $1 and leased_until > now()`, [lease])
}
