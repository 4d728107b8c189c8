import type { Executor } from '../db/pool.ts'
import { recordActions } from '../events/changes.ts'
import type { OptOutSource } from './opt-outs.ts'

export const ACTION_KINDS = ['clicked', 'tapped', 'wrote', 'shared-location', 'sent-file', 'opted-out', 'opted-in'] as const

/** An action of a recipient, for the reports and events of the account. */
export type Action = {
  accountId: number
  agentId: string
  recipient: string
  messageId: string | undefined
  kind: (typeof ACTION_KINDS)[number]
  channel: 'rcs' | 'sms'
  occurredAt: Date
  buttonId?: string | undefined
  text?: string | undefined
  payload?: string | undefined
  url?: string | undefined
  latitude?: number
  longitude?: number
  /** How the recipient opted out. */
  source?: OptOutSource
}

/** Records an action. Its time comes from the network's clock, limited to the time between the acceptance of the message and now. */
export async function recordAction(db: Executor, action: Action): Promise<void> {
  await db.query({
    name: 'record-action',
    text: RECORD_ACTION,
    values: [
      action.accountId,
      action.agentId,
      action.recipient,
      action.messageId,
      action.kind,
      action.channel,
      action.occurredAt,
      action.buttonId,
      action.text,
      action.payload,
      action.url,
      action.latitude,
      action.longitude,
      action.source,
    ],
  })
}

export const RECORD_ACTION = `
  with acted as (
    insert into recipient_actions (account_id, agent_id, recipient, message_id, kind, channel, occurred_at, button_id, text, payload, url,
      latitude, longitude, campaign_id)
    select $1, $2, $3, $4, $5, $6, greatest(least($7::timestamptz, now()), m.accepted_at), $8, $9, $10, $11, $12, $13, m.campaign_id
    from (values (1)) as always left join messages m on m.id = $4
    returning *
  ), ${recordActions('acted', '$14::text')}
  select`
