import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { after } from 'node:test'
import { freePort } from '../../../server/test/support/ports.ts'

/** A proxy between browsers and a service, which can be cut as if the service were out of reach. */
export async function startProxy(target: string) {
  const { hostname, port } = new URL(target)
  const open = new Set<Socket>()
  let isFrozen = false

  function forward(client: Socket): void {
    const service = connect(Number(port), hostname)
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
      if (isFrozen) from.pause()
    }
  }

  async function listen(at: number): Promise<Server> {
    const server = createServer(forward).listen(at, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  // A connection of another test may get an ephemeral port while this one is cut.
  const own = await freePort()
  let server = await listen(own)

  /** Closes all connections, and refuses new ones. */
  async function cut(): Promise<void> {
    server.close()
    for (const socket of open) socket.destroy()
    if (server.listening) await once(server, 'close')
  }
  after(cut)
  return {
    url: `http://127.0.0.1:${own}`,
    cut,
    restore: async () => {
      server = await listen(own)
    },
    /** Passes no more bytes and closes nothing, as when a cable is pulled. */
    freeze: () => {
      isFrozen = true
      for (const socket of open) socket.pause()
    },
    /** Connections that were frozen stay so. */
    thaw: () => {
      isFrozen = false
    },
  }
}
