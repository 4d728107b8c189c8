import { createServer } from 'node:http'
import { listen } from './listen.ts'

// A carrier webhook that accepts the challenge, and every receipt after it.

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => {
    // Only the challenge has no signature.
    if (request.headers['x-goog-signature'] === undefined) response.end(JSON.parse(Buffer.concat(chunks).toString()).secret)
    else response.end()
  })
})
listen(server)
