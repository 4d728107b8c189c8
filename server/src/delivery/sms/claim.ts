import { isLive } from '../../accounts/accounts.ts'
import type { SmsCarrier } from '../../carriers/carrier.ts'
import { columns, type Executor, listed, lists, type Pool, transaction } from '../../db/pool.ts'
import { ANY_ERASED, type ErasedPeople } from '../../erasure/erased.ts'
import type { SmsPlan } from '../../messages/sms-fallback.ts'
import { optOutOf } from '../../replies/opt-outs.ts'
import { NOW_MS } from '../../windows/recipients.ts'
import type { Claim } from '../claim.ts'
import type { SmsRule } from '../failures.ts'
import { SMS_LANES, smsEntriesOf } from '../lanes.ts'
import { isClosed } from '../postpone.ts'
import { lockRate, SLOTS_AHEAD_MS, slotsWithin, takeSlots } from '../rate.ts'
import { MAX_NOTED_ATTEMPTS } from '../results.ts'
import { postponeSms } from './postpone.ts'
import { CHECKED_RULES, DECISION, type Decision, LAST_SMS } from './rules.ts'

/** An SMS that a worker has leased: no other worker may submit it or record its result. An SMS is submitted only once. */
export type SmsEntry = {
  messageId: string
  /** 0: the SMS to the recipient of the message; from 1 on: a copy to a test number. */
  copy: number
  accountId: number
  agentId: string
  recipient: string
  plan: SmsPlan
  segments: number
  /** Segments that an earlier attempt submitted. */
  segmentsSent: number
  /** Segments to submit now; 0 if the SMS is not to be submitted. */
  segmentsLeft: number
  attempts: number
  lease: string
  /** The longest time to submit its segments, and a margin to record the result. */
  leaseMs: number
  expiresAt: Date
  /** The time of the slot of its first segment, by performance.now(); 0 if the carrier has no rate. */
  slotAt: number
  decision: Decision
  /** The result of every rule, as JSON; null if none was checked. */
  rules: string | null
  /** The delivery window of its message; null: none. */
  window: string | null
  /** When it was due, and the time of the claim, by the database's clock. */
  dueMs: number
  nowMs: number
}

type SmsClaimRequest = {
  carrier: Pick<SmsCarrier, 'name' | 'messagesPerSecond'>
  free: number
  lease: string
  /** The longest time to submit one segment, and the margin of each SMS. */
  segmentMs: number
  marginMs: number
  /** The network accepts nothing now, so the claim takes only SMS that are not to be submitted. */
  isPaused: boolean
  /** Leases of claims that failed, perhaps after the commit. Nothing was submitted under them. */
  abandoned: string[]
  erased: ErasedPeople
}

// An SMS takes one slot for each of its segments: ten at most, at one a second, and some slack.
const LONGEST_SMS_SECONDS = 15

/**
 * Claims due SMS, and checks them against the current state: opt-outs, consents and the other rules apply when the SMS is sent, not when its
 * message was accepted. Claims run one at a time, since they lock the carrier's rate, so each claim sees everything that the previous one wrote.
 * An account submits at most one SMS at a time to the same person: only its result shows whether it counts for the quarantine of the next one.
 */
export async function claimSms(pool: Pool, request: SmsClaimRequest): Promise<Claim<SmsEntry>> {
  const { carrier, free, isPaused, abandoned, erased } = request
  return await transaction(pool, async (tx) => {
    const waitMs = await lockRate(tx, carrier.name, LONGEST_SMS_SECONDS)
    if (waitMs === undefined) return { entries: [], isBusy: true, mayBeMore: false }
    if (abandoned.length > 0) await tx.query({ name: 'release-abandoned-sms', text: RELEASE_ABANDONED, values: [abandoned] })
    const { rows: due } = await tx.query<Due>({ name: 'find-due-sms', text: FIND_DUE, values: [free] })
    if (due.length === 0) return { entries: [], isBusy: false, mayBeMore: false }
    const { rows: held } = await tx.query<Held>({ name: 'hold-sms', text: HOLD, values: columns(due, 'messageId', 'copy') })
    const { rows } = await tx.query<CheckedRow>({ name: 'check-sms', text: CHECK, values: columns(held, 'messageId', 'copy') })
    const allowed = rows[0]?.hasErased ? await withoutErased(tx, rows, erased) : rows
    const checked = await withoutPostponed(tx, allowed)
    const slots = isPaused ? 0 : slotsWithin(SLOTS_AHEAD_MS, waitMs, carrier.messagesPerSecond)
    const leased = await leaseWithin(tx, checked, slots, request)
    const entries = await takeSlots(tx, carrier, leased, LONGEST_SMS_SECONDS)
    return { entries, isBusy: false, mayBeMore: checked.length < allowed.length || (due[0]?.dueInAll ?? 0) > entries.length }
  })
}

type Held = { messageId: string; copy: number }
type Due = Held & { dueInAll: number }
type Checked = Omit<SmsEntry, 'segmentsLeft' | 'lease' | 'leaseMs' | 'slotAt'>
type CheckedRow = Checked & { hasErased: boolean }

const ERASED_RULE: { rule: SmsRule; result: 'failed' } = { rule: 'erased', result: 'failed' }

/** Skips SMS to erased people. The database does not have the key of their hashes, so it can't check this as a rule. */
async function withoutErased(tx: Executor, checked: CheckedRow[], erased: ErasedPeople): Promise<Checked[]> {
  const isErased = await erased.find(
    tx,
    checked.map(({ recipient }) => recipient),
  )
  return checked.map((entry) => {
    if (entry.decision !== 'ERASED' && !(entry.decision === 'go' && isErased(entry.accountId, entry.recipient))) return entry
    return { ...entry, decision: 'ERASED', rules: entry.rules && JSON.stringify([...JSON.parse(entry.rules), ERASED_RULE]) }
  })
}

/** Postpones SMS whose window is closed, and returns the others. Once one segment was sent, the remaining segments follow. */
async function withoutPostponed(tx: Executor, checked: Checked[]): Promise<Checked[]> {
  const closed = checked.filter((entry) => entry.decision === 'go' && entry.segmentsSent === 0 && isClosed(entry, entry.nowMs))
  if (closed.length === 0) return checked
  await postponeSms(tx, closed)
  return checked.filter((entry) => !closed.includes(entry))
}

/** Leases the SMS whose first segment gets one of these slots, and every SMS that needs none. */
async function leaseWithin(tx: Executor, checked: Checked[], slots: number, { lease, segmentMs, marginMs }: SmsClaimRequest) {
  const leased: Omit<SmsEntry, 'slotAt'>[] = []
  let freeSlots = slots
  for (const entry of checked) {
    if (entry.decision === 'go' && freeSlots <= 0) continue
    const segmentsLeft = entry.decision === 'go' ? entry.segments - entry.segmentsSent : 0
    freeSlots -= segmentsLeft
    leased.push({ ...entry, segmentsLeft, lease, leaseMs: segmentMs * Math.max(segmentsLeft, 1) + marginMs })
  }
  await tx.query({
    name: 'lease-sms',
    text: LEASE,
    values: [...columns(leased, 'messageId', 'copy', 'decision', 'leaseMs', 'rules'), lease],
  })
  return leased
}

// Runs under the lock on the carrier's rate, so the failed claim has either committed or rolled back.
const RELEASE_ABANDONED = `
  update sms_queue set lease = null, submitted_under = null, due_at = now(), attempts = attempts - 1
  where lease = any ($1::uuid[]) and (submitted_under is null or submitted_under = lease)`

const NONE_UNDERWAY = ` and not exists (
        select from sms_queue o where o.account_id = q.account_id and o.recipient = q.recipient and o.lease is not null and o.due_at > now()
      )`

/**
 * Transactional SMS come before campaigns. Within a priority, each account gets one SMS before any account gets a second one. A person gets
 * one SMS of an account at a time, and none while another one is being submitted. Of a suspended account, it finds only expired SMS, which the
 * check then refuses.
 */
export const FIND_DUE = `
  with recursive ${SMS_LANES}, due as materialized (
    select q.*, row_number() over (partition by q.account_id order by q.priority, q.due_at) as account_turn,
      row_number() over (partition by q.account_id, q.recipient order by q.priority, q.due_at) as person_turn
    from lane l left join campaigns c on c.id = l.campaign_id and c.status = 'PAUSED', lateral (${smsEntriesOf('l', '$1', NONE_UNDERWAY)}
    ) as q
    where l.due_at <= now() and c.id is null and (${isLive('l.account_id')} or q.expires_at <= now())
  )
  select message_id as "messageId", copy, (select count(*)::int from due) as "dueInAll"
  from due where person_turn = 1 order by priority, account_turn, due_at limit $1`

/** Locks entries. It skips an entry that another statement has locked. */
export const HOLD = `
  select q.message_id as "messageId", q.copy from unnest(${lists('uuid', 'smallint')}) with ordinality as due (message_id, copy, place), lateral (
    select message_id, copy from sms_queue q
    where q.message_id = due.message_id and q.copy = due.copy and q.due_at <= now() for update skip locked
  ) as q
  order by due.place`

/** Checks locked entries. A statement of its own, since it reads tables with a partition for each month (db/partitions.ts). */
export const CHECK = `
  with held as materialized (
    select q.*, held.place from unnest(${lists('uuid', 'smallint')}) with ordinality as held (message_id, copy, place), lateral (
      select * from sms_queue q where q.message_id = held.message_id and q.copy = held.copy limit 1
    ) as q
  )
  select q.message_id as "messageId", q.copy, q.account_id as "accountId", m.agent_id as "agentId", q.recipient, f.plan, q.segments,
    q.segments_sent as "segmentsSent", q.attempts + 1 as attempts, q.expires_at as "expiresAt", ${DECISION} as decision,${CHECKED_RULES} as rules,
    ${ANY_ERASED} as "hasErased", m.delivery_window as window, (extract(epoch from q.due_at) * 1000)::float8 as "dueMs", ${NOW_MS} as "nowMs"
  from held q
  join accounts a on a.id = q.account_id
  left join sms_fallbacks f on f.message_id = q.message_id
  left join messages m on m.id = q.message_id
  left join campaigns c on c.id = q.campaign_id
  left join lateral (${optOutOf('q.account_id', 'm.agent_id', 'q.recipient')}) as o on true
  left join lateral (
    -- One index look-up for each group of the account.
    select bool_or(p.control_group) as control_group, bool_and(p.active) as active, array_agg(consent) as consents
    from groups g
    join group_members p on p.account_id = g.account_id and p.group_number = g.number and p.phone = q.recipient
    left join unnest(p.consents) as consent on true
    where g.account_id = q.account_id
  ) as r on true
  left join lateral (${LAST_SMS}) as last on (f.plan ->> 'quarantine')::bool
  order by q.place`

/** Leases entries, and notes in the timeline what the rules said about them. A month that is dropped has no entry with rules. */
export const LEASE = `
  with checked as materialized (
    select * from unnest(${lists('uuid', 'smallint', 'text', 'float8', 'text')}) as c (message_id, copy, decision, lease_ms, rules)
  ), leased as (
    update sms_queue q set lease = $6, attempts = q.attempts + 1, due_at = now() + c.lease_ms * interval '1 millisecond',
      -- A lost SMS stays lost, even if the worker that finds it dies too.
      submitted_under = case c.decision when 'go' then $6 else q.submitted_under end
    from checked c
    where q.message_id = any (${listed('$1::uuid[]')}::uuid[]) and q.message_id = c.message_id and q.copy = c.copy
    returning q.message_id, q.account_id, q.attempts, c.decision, c.rules
  )
  insert into message_events (message_id, account_id, kind, occurred_at, reason, detail)
  select message_id, account_id, 'sms-checked', now(), nullif(decision, 'go'), rules from leased
  where rules is not null and decision not in ('lost', 'gone', 'late', 'not-needed') and attempts <= ${MAX_NOTED_ATTEMPTS}
  on conflict do nothing`
