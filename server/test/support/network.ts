import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after } from 'node:test'
import type { GoogleRbmSettings } from '../../src/carriers/google-rbm/settings.ts'

// A network that responds as a test wants, for responses that the simulator never sends.

export type NetworkRequest = { method: string; path: string; headers: IncomingHttpHeaders; body: string }
export type NetworkResponse = { status?: number; headers?: Record<string, string>; body?: unknown }
/** Undefined: the handler writes the response itself or never responds. */
type Handler = (request: NetworkRequest, response: ServerResponse) => Promise<NetworkResponse | undefined> | NetworkResponse | undefined

export type TestNetwork = {
  settings: GoogleRbmSettings
  /** The requests, in order; requests for a token are `tokens`. */
  requests: NetworkRequest[]
  tokens: NetworkRequest[]
  /** It responds so from now on. */
  respondWith: (handler: Handler) => void
  respondToTokenRequestsWith: (handler: Handler) => void
}

// Any RSA key will do, and one of 2,048 bits takes a quarter of a second to make.
export const KEYS = generateKeyPairSync('rsa', { modulusLength: 1024 })

export async function startNetwork(connections = 10): Promise<TestNetwork> {
  const requests: NetworkRequest[] = []
  const tokens: NetworkRequest[] = []
  let handler: Handler = echo
  let tokenHandler: Handler = () => ({ body: { access_token: 'a-token', expires_in: 3600 } })
  // Google closes idle connections after 240 s. Node's default of 5 s can pass within a test on a busy machine, whose next request then fails.
  const server = createServer({ keepAliveTimeout: 240_000 }, async (request, response) => {
    const { method = '', url: path = '', headers } = request
    const one = { method, path, headers, body: await text(request) }
    const isToken = path === '/token'
    ;(isToken ? tokens : requests).push(one)
    const given = await (isToken ? tokenHandler : handler)(one, response)
    if (given === undefined) return
    const { status = 200, headers: extra = {}, body = {} } = given
    response.writeHead(status, { 'content-type': 'application/json', ...extra })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const serviceAccount = {
    client_email: 'herald@example.com',
    private_key: KEYS.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    private_key_id: 'key-1',
    token_uri: `${address}/token`,
  }
  return {
    settings: {
      name: 'network',
      address,
      serviceAccount,
      webhookToken: 'w'.repeat(16),
      connections,
      messagesPerSecond: undefined,
      messagesPerSecondPerAgent: undefined,
    },
    requests,
    tokens,
    respondWith: (next) => {
      handler = next
    },
    respondToTokenRequestsWith: (next) => {
      tokenHandler = next
    },
  }
}

/** The response of the network to a message that it accepts. */
export function echo({ path, body }: NetworkRequest): NetworkResponse {
  const { pathname, searchParams } = new URL(path, 'http://network')
  return { body: { name: `${pathname.slice('/v1/'.length)}/${searchParams.get('messageId')}`, ...JSON.parse(body || '{}') } }
}

export function failure(code: number, status: string, headers: Record<string, string> = {}): NetworkResponse {
  return { status: code, headers, body: { error: { code, status, message: `It is ${status}.` } } }
}
