import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after } from 'node:test'
import { freePort } from './ports.ts'

/** A proxy to the test database that can be cut, so that one service loses its database and other tests do not. */
export async function cuttableDatabase(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const socketDir = target.searchParams.get('host')
  const open = new Set<Socket>()
  let frozen = false
  function forward(client: Socket): void {
    if (frozen) {
      client.on('error', () => {})
      open.add(client)
      return
    }
    const upstream = socketDir
      ? connect(`${socketDir}/.s.PGSQL.${target.port || 5432}`)
      : connect(Number(target.port || 5432), target.hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  }
  let server = createServer(forward)
  // A connection of another test may get an ephemeral port while this one is cut.
  const port = await freePort()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  url.searchParams.delete('host')

  /** Passes no more bytes, without closing a connection, as when a cable is pulled. */
  function freeze(): void {
    frozen = true
    for (const socket of open) socket.pause()
  }
  async function cut(): Promise<void> {
    const closed = once(server, 'close')
    server.close()
    for (const socket of open) socket.destroy()
    await closed
  }
  async function restore(): Promise<void> {
    server = createServer(forward)
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  after(async () => {
    if (server.listening) await cut()
  })
  return { url: url.href, cut, restore, freeze }
}
