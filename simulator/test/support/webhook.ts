import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

export type Received = { headers: Record<string, unknown>; body: any; data: any; status: number }

/** A webhook that keeps what it receives, and responds with `status`. With status 0 it does not respond. */
export async function startWebhook() {
  const received: Received[] = []
  const webhook = {
    received,
    status: 200,
    challenge: (secret: string) => secret,
    url: '',
    port: 0,
    data: () => received.map(({ data }) => data),
    /** The events with a response of 200. */
    accepted: () => received.filter(({ status }) => status === 200).map(({ data }) => data),
    /** Whether the sender has closed all connections. */
    isIdle: () => new Promise<boolean>((resolve) => server.getConnections((_error, count) => resolve(count === 0))),
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (body.clientToken !== undefined) {
      response.end(webhook.challenge(body.secret))
      return
    }
    const data = JSON.parse(Buffer.from(body.message.data, 'base64').toString('utf8'))
    received.push({ headers: request.headers, body, data, status: webhook.status })
    if (webhook.status === 0) return
    response.statusCode = webhook.status
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  webhook.port = (server.address() as AddressInfo).port
  webhook.url = `http://127.0.0.1:${webhook.port}/webhook`
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  after(close)
  return Object.assign(webhook, { close })
}
