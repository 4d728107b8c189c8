import { createServer } from 'node:http'
import { listen } from './listen.ts'

// A minimal RCS network that accepts every request: what a connector reaches with it is the connector's own limit.

const server = createServer((request, response) => {
  request.resume()
  request.once('end', () => {
    response.setHeader('content-type', 'application/json')
    if (request.url === '/token') {
      response.end('{"access_token":"t","expires_in":3600}')
      return
    }
    const [path = '', query = ''] = (request.url ?? '').split('?')
    const id = /messageId=([^&]*)/.exec(query)?.[1]
    response.end(`{"name":"${path.slice('/v1/'.length)}/${id}"}`)
  })
})
listen(server)
