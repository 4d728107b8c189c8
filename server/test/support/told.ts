import assert from 'node:assert/strict'
import type { Executor } from '../../src/db/pool.ts'

// What callers were told, held against what has happened. An event waits in `outbox` until it has its place in `events`; here both count.

export type Told = {
  kind: string
  subjectId: string | null
  occurredAt: Date
  data: Record<string, unknown>
}

/** All that an account was told, in order. Nothing that is for one endpoint alone. */
export async function readTold(db: Executor, { accountId }: { accountId: number }): Promise<Told[]> {
  const { rows } = await db.query<Told>(
    `select kind, subject_id as "subjectId", occurred_at as "occurredAt", data from (
       select 0 as place, position as n, account_id, kind, subject_id, occurred_at, data from events
       union all select 1, id, account_id, kind, subject_id, occurred_at, data from outbox where endpoint_id is null
     ) as told
     where account_id = $1 order by place, n`,
    [accountId],
  )
  return rows
}

/** The kinds of a message's timeline that are told, in the order in which a message can come to them, with the kinds of their events. */
const MESSAGE_KINDS = new Map([
  ['sent', 'message.sent'],
  ['delivered', 'message.delivered'],
  ['read', 'message.read'],
  ['failed', 'message.failed'],
  ['expired', 'message.expired'],
  ['sms-sent', 'sms.sent'],
  ['sms-delivered', 'sms.delivered'],
  ['sms-failed', 'sms.failed'],
])

/** In one statement, and so of one moment: the service may go on meanwhile. Each side as often as it is there. */
const COMPARE = `
  with kind as materialized (
    select * from unnest($1::text[], $2::text[]) with ordinality as k (noted, told, rank)
  ), told as materialized (
    select 0 as place, position as n, account_id, kind, subject_id, occurred_at, data from events
    union all select 1, id, account_id, kind, subject_id, occurred_at, data from outbox
  ), facts as materialized (
    select * from (
      select e.account_id, k.told as kind, e.message_id::text as subject_id, e.occurred_at
      from message_events e join kind k on k.noted = e.kind
      union all
      select account_id, case kind when 'clicked' then 'message.clicked' when 'opted-out' then 'recipient.opted_out' else 'message.replied' end,
        message_id::text, occurred_at
      from recipient_actions where kind <> 'opted-in'
      union all
      select c.account_id, step.kind, c.id::text, step.at
      from campaigns c, lateral (
        values ('campaign.started', c.started_at), ('campaign.completed', c.completed_at), ('campaign.cancelled', c.cancelled_at)
      ) as step (kind, at)
      where step.at is not null
    ) as happened
  ), about as materialized (
    -- An operator's entry is an opt-out without an action of the recipient's.
    select * from told where kind ~ '^(message|sms|campaign)\\.' or kind = 'recipient.opted_out' and data ->> 'source' <> 'operator'
  ), compared as (
    select coalesce(f.kind, t.kind) as kind, coalesce(f.subject_id, t.subject_id) as "subjectId",
      coalesce(f.occurred_at, t.occurred_at) as "occurredAt", coalesce(f.count, 0)::int as happened, coalesce(t.count, 0)::int as told
    from (select account_id, kind, subject_id, occurred_at, count(*) from facts group by 1, 2, 3, 4) as f
    full join (select account_id, kind, subject_id, occurred_at, count(*) from about group by 1, 2, 3, 4) as t
      on (f.account_id, f.kind, f.occurred_at, coalesce(f.subject_id, '')) = (t.account_id, t.kind, t.occurred_at, coalesce(t.subject_id, ''))
  ), placed as (
    select t.subject_id, k.rank, t.place, t.n, lag(k.rank) over (partition by t.subject_id order by t.place, t.n) as rank_before
    from told t join kind k on k.told = t.kind
  )
  select (select count(*)::int from compared) as compared,
    (select coalesce(json_agg(c), '[]') from compared c where happened <> told) as wrong,
    (select coalesce(json_agg(distinct subject_id), '[]') from placed where rank <= rank_before) as disordered,
    (select coalesce(json_agg(a), '[]') from about a
      where case when kind like 'campaign.%' then data ->> 'campaignId' else data ->> 'messageId' end is distinct from subject_id) as misnamed`

/**
 * Every step of a message or campaign, and every deed of a recipient, was told, once, to the account it is of, with the time that it has; and
 * nothing else was told. A message's events are in the order of its states. Returns how many were compared, so that a caller can see that
 * there was something to see. Not for a database in which a test has moved campaigns by hand.
 */
export async function assertAllTold(db: Executor): Promise<number> {
  const { compared, ...faults } = await compareTold(db)
  assert.deepEqual(faults, { wrong: [], disordered: [], misnamed: [] })
  return compared
}

/** `wrong`: what was told more or less often than it happened. `disordered`: ids. `misnamed`: events that are about something else than they say. */
export type ComparedTold = { compared: number; wrong: object[]; disordered: string[]; misnamed: object[] }

export async function compareTold(db: Executor): Promise<ComparedTold> {
  const values = [[...MESSAGE_KINDS.keys()], [...MESSAGE_KINDS.values()]]
  const { rows } = await db.query<ComparedTold>({ name: 'assert-all-told', text: COMPARE, values })
  return rows[0] as ComparedTold
}
