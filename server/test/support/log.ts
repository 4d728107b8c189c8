import type { Executor, Pool } from '../../src/db/pool.ts'
import { routeEvents } from '../../src/events/router.ts'
import { until } from './until.ts'

// The event log as tests read it: a row for each event, computed in SQL and not by the code under test.

/** The digits of an event id that count the events of a page (src/events/pages.ts). */
const EVENT_ID = `overlay(p.page_id::text placing lpad(to_hex(
      (('x' || substr(p.page_id::text, 16, 3))::bit(12)::int + e.place::int - 1) % 4096), 3, '0') from 16 for 3)::uuid`

const DATA = `case when e.event ->> 4 is null then e.event -> 8
      else (json_strip_nulls(json_build_object('messageId', e.event ->> 2, 'clientReferenceId', e.event ->> 3, 'agentId', e.event ->> 4,
        'recipient', e.event ->> 5, 'campaignId', e.event ->> 6, 'test', (e.event ->> 7)::bool))::jsonb || coalesce((e.event ->> 8)::jsonb, '{}'))::json end`

/** A subquery in SQL: all events, also those that are not routed yet (`position` is null). `page` and `place` give the order of writing. */
export const LOGGED_EVENTS = `(
    select p.account_id, p.last_position - p.event_count + e.place as position, p.id as page, e.place, p.page_id, ${EVENT_ID} as event_id,
      e.event ->> 0 as kind, (e.event ->> 1)::timestamptz(3) as occurred_at, e.event ->> 2 as subject_id, ${DATA} as data
    from log_pages p, json_array_elements(p.events) with ordinality as e (event, place)
  )`

export type WrittenEvent = { accountId: number; kind?: string; subjectId?: string | null; occurredAt?: Date; data?: object }

/** Writes events as a change does, each as its own page. The router gives them their positions. */
export async function writeEvents(db: Executor, events: WrittenEvent[]): Promise<void> {
  await db.query(
    `insert into log_pages (account_id, event_count, events)
     select account_id, 1, json_build_array(json_build_array(kind, coalesce(at, now())::timestamptz(3), subject, null, null, null, null, null, data::json))
     from unnest($1::int[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) with ordinality as e (account_id, kind, subject, at, data, place)
     order by place`,
    [
      events.map(({ accountId }) => accountId),
      events.map(({ kind = 'message.sent' }) => kind),
      events.map(({ subjectId = null }) => subjectId),
      events.map(({ occurredAt }) => occurredAt ?? null),
      events.map(({ data = {} }) => JSON.stringify(data)),
    ],
  )
}

/** Routes until every page has its positions. A service on the same database routes too, and may hold the lock meanwhile. */
export async function routeUntilDone(pool: Pool): Promise<void> {
  await until('every page has its positions', async () => {
    while ((await routeEvents(pool)).mayBeMore);
    return (await pool.query('select from log_pages where last_position is null limit 1')).rowCount === 0
  })
}
