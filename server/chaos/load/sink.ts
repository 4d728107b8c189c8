import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import type { Random } from '../support/random.ts'

/** One webhook request, in the order of arrival. `status`: of the response. */
export type Arrival = { eventId: string; body: string; status: number; isGenuine: boolean; at: number }

export type Sink = {
  url: (path: string) => string
  /** By path. */
  arrivals: ReadonlyMap<string, Arrival[]>
  /** Verifies requests at this path with this secret. */
  trust: (path: string, secret: string) => void
  close: () => void
}

const FAILURE_RATE = 0.1
const MAX_RESPONSE_MS = 60

/** A webhook receiver: responds after a moment, to a tenth of the requests with a 500, and remembers all of them. */
export async function startSink(random: Random): Promise<Sink> {
  const arrivals = new Map<string, Arrival[]>()
  const verifiers = new Map<string, Webhook>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    // A sender that is killed in the middle of a request has not sent it.
    request.once('error', () => {})
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url ?? ''
    const body = Buffer.concat(chunks).toString()
    const status = random() < FAILURE_RATE ? 500 : 204
    const headers = request.headers as Record<string, string>
    const eventId = headers['webhook-id'] ?? ''
    const list = arrivals.get(path) ?? []
    arrivals.set(path, list)
    list.push({ eventId, body, status, isGenuine: isGenuine(verifiers.get(path), body, headers), at: Date.now() })
    await sleep(random() * MAX_RESPONSE_MS)
    response.writeHead(status).end()
  })
  server.on('clientError', (_, socket) => socket.destroy())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    arrivals,
    trust: (path, secret) => verifiers.set(path, new Webhook(secret)),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** With the package that receivers use, including its tolerance of five minutes. */
function isGenuine(verifier: Webhook | undefined, body: string, headers: Record<string, string>): boolean {
  try {
    verifier?.verify(body, headers)
    return verifier !== undefined
  } catch {
    return false
  }
}
