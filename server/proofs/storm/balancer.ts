import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

// One address in front of several nodes: each connection goes to the next of them, and on to another one where nobody listens. Networks post
// their receipts here.

export type Balancer = { url: string; close: () => void }

export async function startBalancer(nodeUrls: () => readonly string[]): Promise<Balancer> {
  const open = new Set<Socket>()
  let turn = 0
  function forward(client: Socket, triesLeft: number): void {
    const urls = nodeUrls()
    const { port, hostname } = new URL(urls[turn++ % urls.length] as string)
    const upstream = connect(Number(port), hostname)
    function tryNext(): void {
      if (triesLeft > 1) forward(client, triesLeft - 1)
      else client.destroy()
    }
    upstream.once('error', tryNext)
    upstream.once('connect', () => {
      upstream.off('error', tryNext)
      pass(client, upstream)
      pass(upstream, client)
    })
  }
  function pass(from: Socket, to: Socket): void {
    open.add(from)
    from.pipe(to)
    from.on('error', () => to.destroy())
    from.on('close', () => {
      open.delete(from)
      to.destroy()
    })
  }
  const server = createServer((client) => {
    client.on('error', () => {})
    forward(client, nodeUrls().length)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
