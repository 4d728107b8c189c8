import { openConnections } from './http-load.ts'
import { inTurn } from './measure.ts'

// Requests at random moments, as from many callers who know nothing of each other.

const CONNECTIONS = 64

/** Where requests go, and what they are. */
export type Receiver = { url: string; request: () => string }
/** `sentAt`: when it was due, in ms since 1970. `tookMs`: from then until the response was there. */
export type Sent = { sentAt: number; tookMs: number; response: string }

/** As fast as they are accepted: compiles the code and plans the statements. */
export async function sendAtOnce({ url, request }: Receiver, count: number): Promise<void> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  await inTurn(count, CONNECTIONS, () => connections.send(request()))
  connections.close()
}

/** Poisson arrivals. A request is timed from the moment it was due: one that waits because the one before was slow counts as slow. */
export async function sendAtRandom({ url, request }: Receiver, perSecond: number, seconds: number): Promise<Sent[]> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  const sent: Promise<Sent>[] = []
  const startedAt = performance.now()
  let dueAt = startedAt
  while (dueAt < startedAt + seconds * 1_000) {
    const late = performance.now() - dueAt
    if (late < 0) await new Promise((resolve) => setTimeout(resolve, -late))
    const due = dueAt
    sent.push(
      connections.send(request()).then((response) => ({ sentAt: performance.timeOrigin + due, tookMs: performance.now() - due, response })),
    )
    dueAt += (-Math.log(1 - Math.random()) * 1_000) / perSecond
  }
  const all = await Promise.all(sent)
  connections.close()
  return all
}
