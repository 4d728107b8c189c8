import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// Takes every event that it is sent, and the challenge before them.

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => {
    // The challenge is the one that comes without a signature.
    if (request.headers['x-goog-signature'] === undefined) response.end(JSON.parse(Buffer.concat(chunks).toString()).secret)
    else response.end()
  })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
