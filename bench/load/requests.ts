import { setTimeout as sleep } from 'node:timers/promises'
import { inParallel } from '../measure/rounds.ts'
import { openConnections, type Receiver } from './connections.ts'

/** As fast as they are accepted. */
export async function sendAtOnce({ url, request }: Receiver, count: number, connections = 64): Promise<void> {
  const { send, close } = await openConnections(url, connections, 202)
  await inParallel(count, connections, () => send(request()))
  close()
}

/** `sentAt`: when the request was due, in ms since 1970. `tookMs`: from then to its response. */
export type Sent = { sentAt: number; tookMs: number; response: string }

/** Poisson arrivals, as from many independent callers. A request is timed from the moment it was due, so a late one counts as slow. */
export async function sendAtRandom({ url, request }: Receiver, perSecond: number, seconds: number): Promise<Sent[]> {
  const connections = await openConnections(url, 64, 202)
  const sent: Promise<Sent>[] = []
  const startedAt = performance.now()
  let dueAt = startedAt
  while (dueAt < startedAt + seconds * 1_000) {
    const early = dueAt - performance.now()
    if (early > 0) await sleep(early)
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
