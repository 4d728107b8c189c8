import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after } from 'node:test'

/** How a database can be away. */
export type Outage =
  /** Connections break, and so does every new one: a proxy whose server is gone. */
  | 'cut'
  /** Connections break, and nobody listens any more: a server that is down. */
  | 'refused'
  /** Nothing comes through, and nobody is told: a cable that is pulled. What was sent meanwhile arrives once it is mended, as TCP has it. */
  | 'black-holed'

/** A way to the test database that can be broken and mended. */
export async function breakableDatabase(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const socketDir = target.searchParams.get('host')
  const port = Number(target.port || 5432)
  const way = await openWay(() => (socketDir ? connect(`${socketDir}/.s.PGSQL.${port}`) : connect(port, target.hostname)))
  after(way.close)
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(way.port)
  url.searchParams.delete('host')
  return { url: url.href, begin: way.begin, mend: way.mend }
}

/** From a port of its own to wherever `connectUpstream` leads at that moment. */
export async function openWay(connectUpstream: () => Socket) {
  const open = new Set<Socket>()
  let outage: Outage | undefined
  let held: (() => void)[] = []

  function unlessFrozen(step: () => void): void {
    if (outage === 'black-holed') held.push(step)
    else step()
  }
  function pass(from: Socket, to: Socket): void {
    open.add(from)
    from.on('error', () => {})
    from.on('data', (chunk) => unlessFrozen(() => to.write(chunk)))
    from.on('close', () => {
      open.delete(from)
      // After what it has sent: whoever gave up waiting for an answer may have asked for something that still happens.
      unlessFrozen(() => to.end())
    })
  }
  function forward(client: Socket): void {
    if (outage === 'cut') return void client.destroy()
    client.on('error', () => {})
    unlessFrozen(() => {
      if (client.destroyed) return
      const upstream = connectUpstream()
      pass(client, upstream)
      pass(upstream, client)
    })
  }

  const server = createServer(forward).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }

  function begin(kind: Outage): void {
    outage = kind
    if (kind === 'refused') server.close()
    if (kind !== 'black-holed') for (const socket of open) socket.destroy()
  }
  async function mend(): Promise<void> {
    const isListening = outage !== 'refused'
    outage = undefined
    if (!isListening) await once(server.listen(port, '127.0.0.1'), 'listening')
    for (const step of held.splice(0)) step()
  }
  function close(): void {
    held = []
    server.close()
    for (const socket of open) socket.destroy()
  }
  return { port, begin, mend, close }
}
