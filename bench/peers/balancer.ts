import { connect, createServer } from 'node:net'
import { listen } from './listen.ts'

// Forwards connections to the ports in its arguments in turn: the simulated network has one address for its receipts.

const ports = process.argv.slice(2).map(Number)
let opened = 0
const server = createServer({ noDelay: true }, (from) => {
  const to = connect({ host: '127.0.0.1', port: ports[opened++ % ports.length] as number, noDelay: true })
  from.pipe(to).pipe(from)
  for (const socket of [from, to]) socket.on('error', () => {})
  from.on('close', () => to.destroy())
  to.on('close', () => from.destroy())
})
listen(server)
