import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'

/** One request as it came, in the order of coming, at which time. `status` is what it was answered with. */
export type Arrival = { eventId: string; body: string; status: number; isGenuine: boolean; at: number }

export type Sink = {
  url: (path: string) => string
  /** By path, from the first one on. */
  arrivals: ReadonlyMap<string, Arrival[]>
  /** Requests at this path are verified with this secret. */
  trust: (path: string, secret: string) => void
  /** How many have arrived and are not answered. */
  underWay: () => number
  close: () => void
}

export type SinkOptions = { random: () => number; failureRate: number; longestAnswerMs: number }

/** The caller's side: takes events after a moment, refuses some of them with a 500, and remembers everything. */
export async function startSink({ random, failureRate, longestAnswerMs }: SinkOptions): Promise<Sink> {
  const arrivals = new Map<string, Arrival[]>()
  const verifiers = new Map<string, Webhook>()
  let underWay = 0

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    // A caller that is killed in the middle of a request has not sent it.
    request.once('error', () => {})
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url ?? ''
    const body = Buffer.concat(chunks).toString()
    const status = random() < failureRate ? 500 : 204
    const headers = request.headers as Record<string, string>
    const eventId = headers['webhook-id'] ?? ''
    const list = arrivals.get(path) ?? []
    arrivals.set(path, list)
    list.push({ eventId, body, status, isGenuine: isGenuine(verifiers.get(path), body, headers), at: Date.now() })
    underWay += 1
    await sleep(random() * longestAnswerMs)
    underWay -= 1
    response.writeHead(status).end()
  })
  server.on('clientError', (_, socket) => socket.destroy())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: (path) => `http://127.0.0.1:${port}${path}`,
    arrivals,
    trust: (path, secret) => verifiers.set(path, new Webhook(secret)),
    underWay: () => underWay,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** By the package that receivers use, its five minutes for the time included. */
function isGenuine(verifier: Webhook | undefined, body: string, headers: Record<string, string>): boolean {
  try {
    verifier?.verify(body, headers)
    return verifier !== undefined
  } catch {
    return false
  }
}
