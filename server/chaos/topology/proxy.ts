import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Cleanup } from '../support/cleanup.ts'

// A TCP port that leads elsewhere, and can be broken: the balancer in front of the API nodes, and the one address of the database.

/** How what is behind it can be away. */
export type Outage =
  /** Connections break, and so does every new one: a proxy whose server is gone. */
  | 'cut'
  /** Connections break, and nothing listens any more: a server that is down. */
  | 'refused'
  /** Nothing comes through, and no side learns of it: a pulled cable. TCP delivers later what was sent meanwhile. */
  | 'black-holed'

export type Proxy = { port: number; break: (outage: Outage) => void; restore: () => Promise<void> }

/** `connectUpstream`: where a new connection leads. */
export async function openProxy(connectUpstream: () => Socket, cleanup: Cleanup): Promise<Proxy> {
  const open = new Set<Socket>()
  let outage: Outage | undefined
  let held: (() => void)[] = []

  function unlessBlackHoled(step: () => void): void {
    if (outage === 'black-holed') held.push(step)
    else step()
  }
  function pass(from: Socket, to: Socket): void {
    open.add(from)
    from.on('error', () => {})
    from.on('data', (chunk) => unlessBlackHoled(() => to.write(chunk)))
    from.on('close', () => {
      open.delete(from)
      // After what it has sent: a client that stopped waiting may have asked for something that still happens.
      unlessBlackHoled(() => to.end())
    })
  }
  function forward(client: Socket): void {
    if (outage === 'cut') return void client.destroy()
    client.on('error', () => {})
    unlessBlackHoled(() => {
      if (client.destroyed) return
      const upstream = connectUpstream()
      pass(client, upstream)
      pass(upstream, client)
    })
  }

  const server = createServer(forward).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  cleanup.push(() => {
    held = []
    server.close()
    for (const socket of open) socket.destroy()
  })
  return {
    port,
    break: (kind) => {
      outage = kind
      if (kind === 'refused') server.close()
      if (kind !== 'black-holed') for (const socket of open) socket.destroy()
    },
    restore: async () => {
      const isListening = outage !== 'refused'
      outage = undefined
      if (!isListening) await once(server.listen(port, '127.0.0.1'), 'listening')
      for (const step of held.splice(0)) step()
    },
  }
}

export type Address = {
  url: string
  break: Proxy['break']
  /** Leads to this socket from now on. Connections that were open stay open. */
  openTo: (socketDir: string) => Promise<void>
}

/** The address of the database that the nodes know, as HAProxy's in front of Patroni. `socketDir`: of a server's Unix socket. */
export async function openAddress(socketDir: string, cleanup: Cleanup): Promise<Address> {
  let upstreamDir = socketDir
  const proxy = await openProxy(() => connect(`${upstreamDir}/.s.PGSQL.5432`), cleanup)
  return {
    url: `postgres://herald@127.0.0.1:${proxy.port}/herald`,
    break: proxy.break,
    openTo: async (next) => {
      upstreamDir = next
      await proxy.restore()
    },
  }
}
