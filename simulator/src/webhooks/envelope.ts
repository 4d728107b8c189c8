import { createHmac } from 'node:crypto'
import { fullAgentId } from '../agents.ts'
import { isoTime } from '../timing.ts'
import { LAUNCH_EVENT } from './events.ts'

/** An event for the webhook. `data`: what the envelope carries, as JSON. */
export type WebhookRow = {
  createdAt: number
  origin: string
  phone: string
  messageId: string
  event: string
  data: string
}

/** The signature is over the decoded data, not over the body. */
export function sign(data: string, clientToken: string): string {
  return createHmac('sha512', clientToken).update(data, 'utf8').digest('base64')
}

/**
 * The body of a post, the same for each try, so that the receiver can recognise a repetition. It is concatenated, since only the agent's
 * name can contain characters that JSON must escape.
 */
export function envelope(id: number, row: WebhookRow): string {
  const data = Buffer.from(row.data, 'utf8').toString('base64')
  const businessId = JSON.stringify(fullAgentId(row.origin))
  const publishTime = isoTime(row.createdAt)
  const launch = row.event === LAUNCH_EVENT ? ',"type":"agent_launch_event","event_type":"AGENT_LAUNCH"' : ''
  const attributes = `{"business_id":${businessId},"product":"RBM","project_number":"1"${launch}}`
  const ids = `"messageId":"${id}","message_id":"${id}"`
  const times = `"publishTime":"${publishTime}","publish_time":"${publishTime}"`
  return `{"message":{"data":"${data}","attributes":${attributes},${ids},${times}},"subscription":"projects/simulator/subscriptions/rbm-webhook"}`
}
