import { isErasedNumber } from '../../erasure/erased.ts'
import { utcText } from '../../events/changes.ts'
import type { SkipReason, SmsRule } from '../failures.ts'

// The rules that decide whether a due SMS is sent, by the current state. In SQL, `q` is the queue entry, `f` the fallback, `m` the message, `c` its
// campaign, `a` the account, `o` the opt-out of the recipient, `r` what the account's groups say about the recipient, and `last` the last SMS
// of the account to the recipient.

/**
 * The result of the check at the claim. Only `go` is submitted. `lost`: an earlier worker claimed the SMS to submit it, and recorded no result.
 * `late`: the SMS has expired. `gone`: its message was dropped.
 */
export type Decision = 'go' | 'lost' | 'late' | 'gone' | 'not-needed' | SkipReason

type Rule = {
  name: SmsRule
  reason: SkipReason
  /** In SQL: whether the fallback asks for the rule. */
  applies: string
  /** In SQL: whether the rule holds the SMS back. Null means that it does not. */
  fails: string
  /** In SQL: the facts that the rule was checked with, as arguments of json_build_object. */
  facts?: string
}

const REQUIRED = `array(select json_array_elements_text(f.plan -> 'consentIds')::int)`
const GIVEN = `coalesce(r.consents, '{}')`

/** If several rules hold an SMS back, the first one is the reason that callers see: it is the most useful one. */
const RULES: Rule[] = [
  { name: 'block', reason: 'BLOCKED', applies: 'true', fails: 'o.blocked' },
  { name: 'optOut', reason: 'OPTED_OUT', applies: 'true', fails: 'o.opted_out' },
  { name: 'campaign', reason: 'CANCELLED', applies: 'c.id is not null', fails: `c.status = 'CANCELLED'` },
  { name: 'controlGroup', reason: 'CONTROL_GROUP', applies: `(f.plan ->> 'controlGroup')::bool`, fails: 'r.control_group' },
  { name: 'status', reason: 'INACTIVE', applies: `not (f.plan ->> 'ignoreStatus')::bool`, fails: 'not r.active' },
  {
    name: 'consents',
    reason: 'CONSENT',
    applies: `json_array_length(f.plan -> 'consentIds') > 0`,
    fails: `not (${REQUIRED} <@ ${GIVEN})`,
    facts: `'required', ${REQUIRED}, 'given', array(select distinct id from unnest(${GIVEN}) as id where id is not null order by id)`,
  },
  {
    name: 'quarantine',
    reason: 'QUARANTINE',
    applies: `(f.plan ->> 'quarantine')::bool`,
    fails: `last.sent_at > now() - a.quarantine_hours * interval '1 hour'`,
    facts: `'hours', a.quarantine_hours, 'lastSmsAt', ${utcText('last.sent_at')}`,
  },
]

/** The rules of a copy to a test number, which is in no group and has no quarantine. */
const RULES_OF_COPIES = RULES.filter(({ name }) => ['block', 'optOut', 'campaign'].includes(name))

const skip = ({ applies, fails, reason }: Rule) => `when ${applies} and ${fails} then '${reason}'`

/** The last SMS of the account to the recipient of `q`, for the rule of the quarantine. */
export const LAST_SMS =
  'select max(sent_at) as sent_at from sms_contacts s where s.account_id = q.account_id and s.recipient = q.recipient and not s.is_copy'

const LATE_RECEIPT = `(select kind from message_events where message_id = q.message_id and kind in ('delivered-late', 'read-late') limit 1)`

/** In SQL: the decision about a queue entry. */
export const DECISION = `
    case
      when q.submitted_under is not null then 'lost'
      when f.message_id is null or m.id is null then 'gone'
      when q.copy = 0 and q.segments_sent = 0 and ${LATE_RECEIPT} is not null then 'not-needed'
      when ${isErasedNumber('q.recipient')} then 'ERASED'
      -- A copy of a single SMS to an erased person, whose text is erased.
      when q.copy > 0 and m.campaign_id is null and ${isErasedNumber('m.recipient')} then 'ERASED'
      when q.expires_at <= now() then 'late'
      -- Once one segment was sent, the remaining segments follow.
      when q.segments_sent > 0 then 'go'
      ${RULES_OF_COPIES.map(skip).join('\n      ')}
      when q.copy > 0 then 'go'
      ${RULES.filter((rule) => !RULES_OF_COPIES.includes(rule))
        .map(skip)
        .join('\n      ')}
      else 'go'
    end`

const resultOf = ({ name, applies, fails, facts }: Rule) =>
  `json_build_object('rule', '${name}', 'result', case when not (${applies}) then 'not-required' when ${fails} then 'failed' else 'passed' end${
    facts === undefined ? '' : `${`, ${facts}`}`
  })`

/**
 * In SQL: the result of every rule, for the timeline: not only of the rule that decides. Null for a copy, and for an SMS of which segments
 * were sent before: no rule is checked for it any more.
 */
export const CHECKED_RULES = `
    case when q.copy = 0 and q.segments_sent = 0 and f.message_id is not null and m.id is not null then json_strip_nulls(json_build_array(
      json_build_object('rule', 'window', 'result', 'passed', 'dueAt', ${utcText('q.planned_at')}),
      ${RULES.map(resultOf).join(',\n      ')}
    ))::text end`
