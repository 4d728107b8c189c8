import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// The leanest network there can be: whatever is asked, it is done. What a connector reaches against it is the connector's own limit.

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
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
