import type { SmsCarrier } from '../../carriers/carrier.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import type { SmsPlan } from '../../messages/sms-fallback.ts'
import type { SkipReason } from '../failures.ts'
import { holdPace, TURNS_AHEAD_MS } from '../rate.ts'

/** An SMS that a worker took up. It alone may submit it, once, and write down what came of it. */
export type SmsEntry = {
  messageId: string
  /** 0: to the recipient of the message; from 1 on: to a test number. */
  copy: number
  accountId: number
  agentId: string
  recipient: string
  plan: SmsPlan
  segments: number
  /** Parts that an earlier try has submitted. */
  segmentsSent: number
  attempts: number
  lease: string
  expiresAt: Date
  /** By performance.now(): the turn of its first part, where the carrier has a rate. */
  turnAt: number
  judgement: Judgement
}

/** `go` alone is submitted. `lost`: whoever submitted it has not come back. `late`: its time is over. `gone`: its message was dropped. */
export type Judgement = 'go' | 'lost' | 'late' | 'gone' | 'not-needed' | SkipReason

export type SmsClaimRequest = {
  carrier: Pick<SmsCarrier, 'name' | 'messagesPerSecond'>
  free: number
  lease: string
  /** How long a submit of one part can take, and what comes on top for each SMS. */
  partMs: number
  marginMs: number
  /** The network takes nothing now: only what is not to be submitted is taken up. */
  isPaused: boolean
  /** Leases of claims that failed, perhaps after they had been committed: nothing was submitted under them. */
  abandoned: string[]
}

export type SmsClaim = {
  entries: SmsEntry[]
  /** Another worker is claiming at this moment. */
  isBusy: boolean
  /** Some are due and had to stay, for a turn to come or for another to the same person to end. */
  isHeldBack: boolean
}

type Row = Omit<SmsEntry, 'lease' | 'turnAt'> & { messageId: string | null; waitMs: number; isHeldBack: boolean }

/**
 * Takes up what is due, and judges it by what is known at this moment: opt-outs, consents and the rest count when the SMS is sent, not when
 * its message was accepted. Claims come one after the other (the lock on the carrier's pace), and each sees all that the one before has
 * written. Of the SMS of an account to one person only one is under way at a time: whether it counts for the quarantine of the next is known
 * when it has ended.
 */
export async function claimSms(pool: Pool, request: SmsClaimRequest): Promise<SmsClaim> {
  const { carrier, free, lease, partMs, marginMs, isPaused, abandoned } = request
  return await transaction(pool, async (tx) => {
    if (!(await holdPace(tx, carrier.name))) return { entries: [], isBusy: true, isHeldBack: false }
    if (abandoned.length > 0) await tx.query({ name: 'return-abandoned-sms', text: RETURN_ABANDONED, values: [abandoned] })
    const { rows } = await tx.query<Row>({
      name: 'claim-sms',
      text: CLAIM,
      values: [carrier.name, free, lease, partMs, marginMs, carrier.messagesPerSecond ?? null, TURNS_AHEAD_MS, isPaused],
    })
    const answeredAt = performance.now()
    const entries = rows.flatMap(({ isHeldBack, waitMs, ...entry }) =>
      entry.messageId === null ? [] : [{ ...entry, lease, turnAt: answeredAt + waitMs }],
    )
    return { entries, isBusy: false, isHeldBack: rows[0]?.isHeldBack ?? false }
  })
}

// After the wait for the pace, so that the claim in question has ended, whichever way.
const RETURN_ABANDONED = `
  update sms_queue set lease = null, submitted_under = null, due_at = now(), attempts = attempts - 1
  where lease = any ($1::uuid[]) and (submitted_under is null or submitted_under = lease)`

// An SMS takes a turn for each of its parts: at one a second, ten and a bit.
const LONGEST_SMS_SECONDS = 15

/** The next turn, by the clock as it stands when all candidates are found: turns that passed meanwhile are not taken at once. */
const NEXT_TURN = `case when free_at > clock.at + interval '${LONGEST_SMS_SECONDS} seconds' then clock.at else greatest(free_at, clock.at) end`

// What is to become of an entry that is due. In the order in which a caller would want to be told.
const JUDGEMENT = `
  case
    when q.submitted_under is not null then 'lost'
    when f.message_id is null or m.id is null then 'gone'
    when late_receipt.kind is not null and q.copy = 0 and q.segments_sent = 0 then 'not-needed'
    when q.expires_at <= now() then 'late'
    -- Whoever has had the beginning gets the rest.
    when q.segments_sent > 0 then 'go'
    when o.opted_out then 'OPTED_OUT'
    when campaign.status = 'CANCELLED' then 'CANCELLED'
    when q.copy > 0 then 'go'
    when (f.plan ->> 'controlGroup')::bool and r.control_group then 'CONTROL_GROUP'
    when not (f.plan ->> 'ignoreStatus')::bool and not r.active then 'INACTIVE'
    when not (array(select json_array_elements_text(f.plan -> 'consentIds')::int) <@ coalesce(r.consents, '{}')) then 'CONSENT'
    when (f.plan ->> 'quarantine')::bool and last_sms.sent_at > now() - a.quarantine_hours * interval '1 hour' then 'QUARANTINE'
    else 'go'
  end`

const CLAIM = `
  with recursive lane as (
    (select account_id, priority, campaign_id, due_at from sms_queue order by account_id, priority, campaign_id, due_at limit 1)
    union all
    select next.*
    from lane, lateral (
      select account_id, priority, campaign_id, due_at from sms_queue q
      where (q.account_id, q.priority, q.campaign_id) > (lane.account_id, lane.priority, lane.campaign_id)
      order by account_id, priority, campaign_id, due_at limit 1
    ) as next
  ), candidate as materialized (
    select c.*, row_number() over (partition by c.account_id order by c.priority, c.due_at) as account_turn,
      row_number() over (partition by c.account_id, c.recipient order by c.priority, c.due_at) as person_turn
    from lane l left join campaigns p on p.id = l.campaign_id and p.status = 'PAUSED', lateral (
      select message_id, copy, account_id, recipient, priority, due_at
      from sms_queue q
      where q.account_id = l.account_id and q.priority = l.priority and q.campaign_id = l.campaign_id and q.due_at <= now() and not exists (
        select from sms_queue o where o.account_id = q.account_id and o.recipient = q.recipient and o.lease is not null and o.due_at > now()
      )
      order by q.due_at limit $2
    ) as c
    where l.due_at <= now() and p.id is null
  ), picked as materialized (
    select * from candidate where person_turn = 1 order by priority, account_turn, due_at limit $2
  ), taken as materialized (
    select q.*, p.account_turn from picked p, lateral (
      select * from sms_queue q where q.message_id = p.message_id and q.copy = p.copy and q.due_at <= now() for update skip locked
    ) as q
  ), judged as materialized (
    select q.*, f.plan, m.agent_id, ${JUDGEMENT} as judgement, q.segments - q.segments_sent as parts
    from taken q
    join accounts a on a.id = q.account_id
    left join sms_fallbacks f on f.message_id = q.message_id
    left join messages m on m.id = q.message_id
    left join lateral (
      -- A look into the index for each group of the account.
      select bool_or(p.control_group) as control_group, bool_and(p.active) as active, array_agg(consent) as consents
      from groups g
      join group_members p on p.account_id = g.account_id and p.group_number = g.number and p.phone = q.recipient
      left join unnest(p.consents) as consent on true
      where g.account_id = q.account_id
    ) as r on true
    left join campaigns campaign on campaign.id = q.campaign_id
    left join opt_outs o on o.account_id = q.account_id and o.agent_id = m.agent_id and o.phone = q.recipient
    left join lateral (
      select kind from message_events e where e.message_id = q.message_id and e.kind in ('delivered-late', 'read-late') limit 1
    ) as late_receipt on true
    left join lateral (
      select max(c.sent_at) as sent_at from sms_contacts c where c.account_id = q.account_id and c.recipient = q.recipient and not c.is_copy
    ) as last_sms on true
  ), clock as materialized (
    select clock_timestamp() as at from (select count(*) from judged) as looked
  ), turned as materialized (
    select j.*, ${NEXT_TURN} + coalesce(sum(parts) filter (where judgement = 'go') over (
      order by j.priority, j.account_turn, j.due_at, j.message_id, j.copy rows between unbounded preceding and 1 preceding
    ), 0) * (interval '1 second' / $6::float8) as turn_at
    from judged j, carrier_paces p, clock where p.carrier = $1
  ), claimed as materialized (
    select turned.* from turned, clock
    where judgement <> 'go' or not $8 and ($6 is null or turn_at <= clock.at + $7 * interval '1 millisecond')
  ), updated as (
    update sms_queue q set
      lease = $3,
      due_at = now() + ($4 * greatest(q.segments - q.segments_sent, 1) + $5) * interval '1 millisecond',
      -- One that is lost stays so, whoever finds that out and dies over it.
      submitted_under = case when (q.message_id, q.copy) in (select message_id, copy from claimed where judgement = 'go') then $3 else q.submitted_under end,
      attempts = q.attempts + 1
    where q.message_id = any (array(select message_id from claimed)) and (q.message_id, q.copy) in (select message_id, copy from claimed)
  ), paced as (
    update carrier_paces p set free_at = last.at
    from (select max(turn_at + parts * (interval '1 second' / $6)) filter (where judgement = 'go') as at from claimed) as last
    where p.carrier = $1 and last.at is not null
  )
  select message_id as "messageId", copy, account_id as "accountId", agent_id as "agentId", recipient, plan, segments,
    segments_sent as "segmentsSent", attempts + 1 as attempts, expires_at as "expiresAt", judgement,
    -- By the clock as it stands when the answer is given, read once for all of it.
    coalesce(round(extract(epoch from turn_at - (select clock_timestamp())) * 1000)::int, 0) as "waitMs",
    (select count(*) from candidate) > (select count(*) from claimed) as "isHeldBack"
  from (values (1)) as always left join claimed on true`
