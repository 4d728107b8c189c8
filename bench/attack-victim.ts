import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './commands.ts'
import { statusOf } from './http-load.ts'
import { inTurn } from './measure.ts'
import { messageRequest } from './service.ts'

// The caller whose response times count. It stays within the default limits: 50 requests a second from 25 addresses, so that a backlog of
// many seconds still brings no more than 35 requests from one address at once.

export const PER_SECOND = 50
const ADDRESSES = Array.from({ length: 25 }, (_, n) => `127.0.3.${n + 1}`)
/** A request without a response for this long has failed, and counts with this time. */
const TIMEOUT_MS = 30_000
const WARM_UP = 500

export type Target = { port: number; account: Account }
/** `status`: undefined where no response came. */
export type Sample = { tookMs: number; status: number | undefined }

export type Victim = {
  /** Returns when every request has its response or has failed. */
  send: (seconds: number) => Promise<Sample[]>
  warmUp: () => Promise<void>
  close: () => void
}

export function createVictim({ port, account }: Target): Victim {
  const idle = new Map<string, Socket[]>(ADDRESSES.map((address) => [address, []]))
  const all = new Set<Socket>()
  let requests = 0

  function open(address: string): Socket {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address, noDelay: true })
    all.add(socket)
    socket.setEncoding('latin1')
    socket.on('error', () => {})
    socket.on('close', () => all.delete(socket))
    return socket
  }

  async function sendOne(): Promise<number | undefined> {
    const address = ADDRESSES[requests++ % ADDRESSES.length] as string
    const free = idle.get(address) as Socket[]
    while (free.at(-1)?.destroyed) free.pop()
    const socket = free.pop() ?? open(address)
    const status = await exchange(socket, messageRequest(account))
    if (status === undefined) socket.destroy()
    else free.push(socket)
    return status
  }

  return {
    send: (seconds) => sendEvenly(seconds, sendOne),
    // Four at once over all addresses stay below the limit of each.
    warmUp: async () => await inTurn(WARM_UP, 4, sendOne),
    close: () => {
      for (const socket of all) socket.destroy()
    },
  }
}

/** Times count from the moment at which a request was due: a client that waits for the service would hide the delay. */
async function sendEvenly(seconds: number, sendOne: () => Promise<number | undefined>): Promise<Sample[]> {
  const startedAt = performance.now()
  const samples: Promise<Sample>[] = []
  for (let n = 0; n < seconds * PER_SECOND; n++) {
    // At random within its slot, so that requests do not fall into step with a rhythm of the service.
    const dueAt = startedAt + ((n + Math.random()) * 1_000) / PER_SECOND
    const early = dueAt - performance.now()
    if (early > 0) await sleep(early)
    samples.push(sendOne().then((status) => ({ tookMs: performance.now() - dueAt, status })))
  }
  return await Promise.all(samples)
}

function exchange(socket: Socket, request: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    let received = ''
    function settle(status: number | undefined): void {
      clearTimeout(timer)
      socket.removeListener('data', onData).removeListener('close', onClose)
      resolve(status)
    }
    function onData(chunk: string): void {
      received += chunk
      const status = statusOf(received)
      if (status !== undefined) settle(status)
    }
    const onClose = () => settle(undefined)
    const timer = setTimeout(onClose, TIMEOUT_MS)
    if (socket.destroyed) return onClose()
    socket.on('data', onData).on('close', onClose)
    socket.write(request, 'latin1')
    return
  })
}
