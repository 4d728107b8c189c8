import { MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { writeFallbacks } from './sms-fallback.ts'

export const DEFAULT_LIFE_HOURS = 48
const EXPIRES_AT = `coalesce(own_expiry, now() + interval '${DEFAULT_LIFE_HOURS} hours')`
const NO_LEASE = { token: 'null::uuid', ms: '0' }

/**
 * Steps that store new messages and queue them. `created` names a step with a row for each message: the columns of `messages` below without the
 * status and its times, `own_expiry` (null: the message lives for 48 hours), `opens_at` (when its `delivery_window` opens first), and `fallback`
 * (a Fallback of messages/sms-fallback.ts as JSON, or null). No worker claims a message before its `scheduled_at`, or before `opens_at`. The step
 * `written` has the new rows. `token`: the column of `created` with the lease of messages to send at once; `ms`: the duration of the lease.
 *
 * The time in the ids is `now()`: messages without an expiry of their own expire in the order of their ids (delivery/expiry.ts).
 */
export const storeMessages = (created: string, priority: number, { token, ms } = NO_LEASE) => `
  written as (
    insert into messages as m (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
      scheduled_at, delivery_window, expires_at, traffic, triggered_by, campaign_id, routing)
    select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, accepted_at,
      scheduled_at, delivery_window, ${EXPIRES_AT}, traffic, triggered_by, campaign_id, routing
    from ${created}
    returning ${MESSAGE_FACTS}, m.accepted_at
  ), queued as (
    insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at, delivery_window, lease,
      leased_until, attempts, claimed)
    select id, account_id, agent_id, 'send', ${priority}, coalesce(campaign_id, '${NO_CAMPAIGN}'), greatest(now(), scheduled_at, opens_at),
      ${EXPIRES_AT}, delivery_window, ${token},
      case when ${token} is null then '-infinity' else now() + ${ms} * interval '1 millisecond' end, (${token} is not null)::int,
      ${token} is not null
    from ${created}
  ), expiring as (
    insert into expiries (message_id, expires_at) select id, own_expiry from ${created} where own_expiry is not null
  ), falling_back as (
    ${writeFallbacks(created)}
  ), ${recordChanges('written', [{ kind: 'message.accepted', at: 'accepted_at' }])}`
