import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

// The attacker, in a process of its own, so that its work does not delay the victim's client. It runs one order and reports the responses.
// Every request has its own connection, from the addresses in turn.

export type Order = {
  port: number
  addresses: string[]
  perSecond: number
  seconds: number
  /** Heads without the blank line, used in turn. */
  heads: string[]
  body: 'none' | 'brackets' | 'names'
  /** Keeps the connections, and reads only the first chunk of a response. */
  isUnread: boolean
}

/** `responses`: the number by status, or `closed` or `none` without a response. `skipped`: not sent, since too many were open. */
export type Outcome = { sent: number; skipped: number; responses: Record<string, number> }

const BRACKETS_BYTES = 1024 * 1024
const NAMES = 24_840
// A request without a response keeps its connection. More of them would only fill the memory of the attacker's own machine.
const MAX_OPEN = 512

const BODIES = {
  none: () => Buffer.alloc(0),
  brackets: () => Buffer.alloc(BRACKETS_BYTES, '['),
  // Ten bytes for each name, so that all fit into 256 KiB.
  names: () => Buffer.from(`{${Array.from({ length: NAMES }, (_, n) => `"n${n.toString(36).padStart(4, '0')}":0`).join()}}`),
}

async function attack({ port, addresses, perSecond, seconds, heads, body, isUnread }: Order): Promise<Outcome> {
  const payload = BODIES[body]()
  const framing = payload.length === 0 ? '' : `Content-Type: application/json\r\nContent-Length: ${payload.length}\r\n`
  const requests = heads.map((head) => Buffer.concat([Buffer.from(`${head}${framing}\r\n`, 'latin1'), payload]))
  const open = new Set<Socket>()
  const outcome: Outcome = { sent: 0, skipped: 0, responses: {} }
  function count(what: string): void {
    outcome.responses[what] = (outcome.responses[what] ?? 0) + 1
  }

  function send(n: number): void {
    const socket = connect({ port, host: '127.0.0.1', localAddress: addresses[n % addresses.length] as string, noDelay: true })
    let status: string | undefined
    open.add(socket)
    socket.once('readable', () => {
      status = socket.read()?.toString('latin1', 9, 12)
      count(status ?? 'none')
      if (!isUnread) socket.resume()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      open.delete(socket)
      if (status === undefined || isUnread) count('closed')
    })
    socket.write(requests[n % requests.length] as Buffer)
  }

  const startedAt = performance.now()
  for (let n = 0; n < perSecond * seconds; n++) {
    const early = startedAt + (n * 1_000) / perSecond - performance.now()
    if (early > 0) await sleep(early)
    if (open.size >= MAX_OPEN) {
      outcome.skipped += 1
    } else {
      outcome.sent += 1
      send(n)
    }
  }
  const left = startedAt + seconds * 1_000 - performance.now()
  if (left > 0) await sleep(left)
  for (const socket of open) socket.removeAllListeners('close').destroy()
  return outcome
}

process.on('message', (order: Order) => {
  void attack(order).then((outcome) => process.send?.({ outcome }))
})
process.send?.({ port: 0 })
