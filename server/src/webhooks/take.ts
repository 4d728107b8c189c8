import type { Executor } from '../db/pool.ts'
import { LOGGED_EVENT, type LoggedEvent } from '../events/feed.ts'

/** An event that is to be posted to an endpoint. */
export type Delivery = LoggedEvent & {
  endpointId: number
  accountId: number
  position: number
  /** Before this one. */
  attempts: number
  subjectId: string | null
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
  underWay: { endpointId: number; position: number }[]
}

/** How many calls at once an endpoint gets that nothing is known of yet. */
export const FIRST_WINDOW = 4
/** Where a process dies, its endpoints are served again after this time. One that lives renews it when half of it is over. */
const LEASE_SECONDS = 10

/**
 * Takes up endpoints that have something due and that nobody else serves, and reads what is due of them and of those that this process has
 * already, within the room of each. However long the backlog of an endpoint is, it costs one look into the index for each endpoint.
 *
 * Reading changes nothing but leases: what is read is due until its result is written, and is passed over while it is under way here.
 */
export async function takeDue(db: Executor, { lease, room, underWay }: TakeRequest): Promise<Delivery[]> {
  const { rows } = await db.query<Delivery>({
    name: 'take-webhooks',
    text: TAKE,
    values: [
      lease,
      JSON.stringify(Object.fromEntries(room)),
      underWay.map(({ endpointId }) => endpointId),
      underWay.map(({ position }) => position),
    ],
  })
  return rows
}

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
    where lane.due_at <= now() and e.status = 'ACTIVE' and e.lease = $1 and e.leased_until > now() + interval '${LEASE_SECONDS / 2} seconds'
  ), taken as materialized (
    -- Those of others, once they have let go; and our own, in time. Waits for nobody.
    select e.id from lane, lateral (
      select id from webhook_endpoints e
      where e.id = lane.endpoint_id and e.status = 'ACTIVE'
        and (e.leased_until <= now() or e.lease = $1 and e.leased_until <= now() + interval '${LEASE_SECONDS / 2} seconds')
      for no key update skip locked
    ) as e
    where lane.due_at <= now()
  ), leased as (
    update webhook_endpoints set lease = $1, leased_until = now() + interval '${LEASE_SECONDS} seconds'
    where id = any (array(select id from taken))
  )
  select d.endpoint_id as "endpointId", d.account_id as "accountId", d.position, d.attempts, e.subject_id as "subjectId",
    ${LOGGED_EVENT}, clock_timestamp() as "readAt"
  from (select id from held union all select id from taken) as mine,
  lateral (
    select * from webhook_deliveries d
    where d.endpoint_id = mine.id and d.due_at <= now()
      and (d.endpoint_id, d.position) not in (select * from unnest($3::int[], $4::bigint[]))
    order by d.due_at, d.position limit coalesce(($2::jsonb ->> mine.id::text)::int, ${FIRST_WINDOW})
  ) as d
  join events e on e.account_id = d.account_id and e.position = d.position
  order by d.due_at, d.position`

/** As they are now: a secret that was replaced, or an endpoint that was removed, counts for the very next call. */
export async function readTargets(db: Executor, ids: number[]): Promise<Map<number, Target>> {
  const { rows } = await db.query<Target>({
    name: 'read-webhook-endpoints',
    text: `select e.id, e.url, array(
             select secret from webhook_secrets s where s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
             order by s.created_at desc, s.ends_at desc nulls first
           ) as secrets
           from webhook_endpoints e where e.id = any ($1::int[]) and e.status = 'ACTIVE'`,
    values: [ids],
  })
  return new Map(rows.map((target) => [target.id, target]))
}

/** At the end of a process, so that others go on at once. */
export async function releaseEndpoints(db: Executor, lease: string): Promise<void> {
  await db.query(`update webhook_endpoints set leased_until = '-infinity' where lease = $1 and leased_until > now()`, [lease])
}
