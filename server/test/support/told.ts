import assert from 'node:assert/strict'
import type { Executor } from '../../src/db/pool.ts'
import { LOGGED_EVENTS } from './log.ts'

// The emitted events, compared with what has happened. An event counts whether or not it has its place in the log yet.

export type Told = {
  kind: string
  subjectId: string | null
  occurredAt: Date
  data: Record<string, unknown>
}

/** The events of an account, in order, without those that are for one endpoint alone. */
export async function readTold(db: Executor, { accountId }: { accountId: number }): Promise<Told[]> {
  const { rows } = await db.query<Told>(
    `select kind, subject_id as "subjectId", occurred_at as "occurredAt", data from ${LOGGED_EVENTS} as told
     where account_id = $1 and kind <> 'webhook.test' order by page, place`,
    [accountId],
  )
  return rows
}

/** In the order in which a message can come to them. */
export const MESSAGE_KINDS = [
  'message.sent',
  'message.delivered',
  'message.read',
  'message.failed',
  'message.expired',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
]

/** In one statement, and so of one moment: the service may go on meanwhile. Each side as often as it is there. */
const COMPARE = `
  with kind as materialized (
    select * from unnest($1::text[]) with ordinality as k (told, rank)
  ), told as materialized (
    select page, place, account_id, kind, subject_id, occurred_at, data from ${LOGGED_EVENTS} as e
  ), facts as materialized (
    select * from (
      select m.account_id, step.kind, m.id::text as subject_id, step.at as occurred_at
      from messages m left join sms_fallbacks f on f.message_id = m.id, lateral (
        values ('message.sent', m.sent_at), ('message.delivered', m.delivered_at), ('message.read', m.read_at), ('message.failed', m.failed_at),
          ('message.expired', case m.status when 'EXPIRED' then m.expires_at end),
          ('sms.sent', f.sent_at), ('sms.delivered', f.delivered_at), ('sms.failed', f.failed_at)
      ) as step (kind, at)
      where step.at is not null
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
    select t.subject_id, k.rank, lag(k.rank) over (partition by t.subject_id order by t.page, t.place) as rank_before
    from told t join kind k on k.told = t.kind
  )
  select (select count(*)::int from compared) as compared,
    (select coalesce(json_agg(c), '[]') from compared c where happened <> told) as wrong,
    (select coalesce(json_agg(distinct subject_id), '[]') from placed where rank <= rank_before) as disordered,
    (select coalesce(json_agg(a), '[]') from about a
      where case when kind like 'campaign.%' then data ->> 'campaignId' else data ->> 'messageId' end is distinct from subject_id) as misnamed`

/**
 * Every step of a message or campaign, and every action of a recipient, was emitted once, to its own account and with its own time; and
 * nothing else was emitted. A message's events are in the order of its states. Returns how many were compared, so that a caller can see that
 * there was something to see. Not for a database in which a test has moved campaigns by hand.
 */
export async function assertAllTold(db: Executor): Promise<number> {
  const { compared, ...faults } = await compareTold(db)
  assert.deepEqual(faults, { wrong: [], disordered: [], misnamed: [] })
  return compared
}

/** `wrong`: what was emitted more or less often than it happened. `disordered`: ids. `misnamed`: events that are about something else than they say. */
export type ComparedTold = { compared: number; wrong: object[]; disordered: string[]; misnamed: object[] }

export async function compareTold(db: Executor): Promise<ComparedTold> {
  const values = [MESSAGE_KINDS]
  const { rows } = await db.query<ComparedTold>({ name: 'assert-all-told', text: COMPARE, values })
  return rows[0] as ComparedTold
}
