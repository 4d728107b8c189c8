import { type AddressInfo, connect, createServer } from 'node:net'

// Hands connections to the ports that it is started with, one after the other: the simulated network knows one address for its receipts.

const ports = process.argv.slice(2).map(Number)
let opened = 0
const server = createServer({ noDelay: true }, (from) => {
  const to = connect({ host: '127.0.0.1', port: ports[opened++ % ports.length] as number, noDelay: true })
  from.pipe(to).pipe(from)
  for (const [one, other] of [
    [from, to],
    [to, from],
  ] as const) {
    one.on('error', () => {})
    one.on('close', () => other.destroy())
  }
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
