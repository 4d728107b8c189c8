import { createHmac } from 'node:crypto'

export type WebhookRow = {
  id: number
  tries: number
  created_at: number
  origin: string
  phone: string
  message_id: string
  event: string
  data: string
}

/** The signature is over the decoded data, not over the body. */
export function sign(data: string, clientToken: string): string {
  return createHmac('sha512', clientToken).update(data, 'utf8').digest('base64')
}

/** What is posted: the same for each try, so that the other side can tell a repetition. */
export function envelope(row: WebhookRow): string {
  const publishTime = new Date(row.created_at).toISOString()
  return JSON.stringify({
    message: {
      data: Buffer.from(row.data, 'utf8').toString('base64'),
      attributes: { business_id: `${row.origin}@rbm.goog`, product: 'RBM', project_number: '1' },
      messageId: String(row.id),
      message_id: String(row.id),
      publishTime,
      publish_time: publishTime,
    },
    subscription: 'projects/simulator/subscriptions/rbm-webhook',
  })
}
