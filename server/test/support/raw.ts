import { connect } from 'node:net'

/** A connection on which a test sends any bytes, valid HTTP or not. `ended`: everything that arrived until the server closed. */
export function rawConnection(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString('utf8')
  })
  const ended = new Promise<string>((resolve) => {
    // A reset ends it too; what came before counts.
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
  })
  return {
    send: (text: string | Buffer) => socket.write(text),
    received: () => received,
    ended,
    close: () => socket.destroy(),
    reset: () => socket.once('connect', () => setImmediate(() => socket.resetAndDestroy())),
  }
}

/** The status and JSON body of a single response from a raw connection. */
export function parseResponse(received: string) {
  const [head = '', body = ''] = received.split('\r\n\r\n', 2)
  return { status: Number(head.split(' ')[1]), head, body: body === '' ? undefined : JSON.parse(body) }
}
