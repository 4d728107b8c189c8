import assert from 'node:assert/strict'
import { randomUUID, verify } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { createAccessTokens } from '../../../src/carriers/google-rbm/access-token.ts'
import { createHttp } from '../../../src/carriers/google-rbm/http.ts'
import { echo, failure, KEYS, startNetwork } from '../../support/network.ts'
import { until } from '../../support/until.ts'
import { send, start, times } from './support.ts'

test('sends every message if tokens expire between messages, or are revoked before their expiry', async () => {
  const { network, carrier } = await start()
  const uses = new Map<string, number>()
  network.respondToTokenRequestsWith(() => {
    const token = randomUUID()
    uses.set(`Bearer ${token}`, 7)
    return { body: { access_token: token, expires_in: 0.02 } }
  })
  network.respondWith((request) => {
    const { authorization = '' } = request.headers
    const left = uses.get(authorization) ?? 0
    uses.set(authorization, left - 1)
    return left > 0 ? echo(request) : failure(401, 'UNAUTHENTICATED')
  })
  const outcomes = new Set<string>()
  while (uses.size < 10) outcomes.add((await send(carrier)).is)
  assert.deepEqual([...outcomes], ['sent'])
})

test('concurrent callers share one request for a token', async () => {
  const { network, carrier } = await start(50)
  const outcomes = await Promise.all(times(200, () => send(carrier)))
  assert.ok(outcomes.every(({ is }) => is === 'sent'))
  assert.equal(network.tokens.length, 1)
  assert.ok(network.requests.every(({ headers }) => headers.authorization === 'Bearer a-token'))
})

test('requests a token with a signed assertion of the service account, in a form', async () => {
  const { network, carrier } = await start()
  await send(carrier)
  const [request] = network.tokens
  assert.equal(request?.headers['content-type'], 'application/x-www-form-urlencoded')
  const form = new URLSearchParams(request?.body)
  assert.equal(form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [header = '', claims = '', signature = ''] = form.get('assertion')?.split('.') ?? []
  assert.ok(verify('RSA-SHA256', Buffer.from(`${header}.${claims}`), KEYS.publicKey, Buffer.from(signature, 'base64url')))
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  const { iat, exp, ...rest } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const scope = 'https://www.googleapis.com/auth/rcsbusinessmessaging'
  assert.deepEqual(rest, { iss: 'herald@example.com', scope, aud: network.settings.serviceAccount.token_uri })
  assert.ok(Math.abs(iat * 1000 - Date.now()) < 60_000)
  assert.equal(exp, iat + 3600)
})

describe('renewal of a token', () => {
  async function startTokens() {
    const network = await startNetwork()
    const http = createHttp(network.settings.address, 1)
    after(() => http.close())
    let now = 0
    const tokens = createAccessTokens(network.settings.serviceAccount, http, () => now)
    return {
      network,
      tokens,
      get: async () => tokens.current() ?? (await tokens.renew()),
      moveTo: (seconds: number) => {
        now = seconds * 1000
      },
      /** Issues token-1, token-2 and so on. */
      issue: (expires_in: unknown) =>
        network.respondToTokenRequestsWith(() => ({ body: { access_token: `token-${network.tokens.length}`, expires_in } })),
      /** There is one connection, so earlier requests are complete after this call. */
      requests: async () => {
        await http.call({ method: 'GET', path: '/v1' })
        return network.tokens.length
      },
    }
  }

  test('begins five minutes before the expiry, while the old one stays in use', async () => {
    const { network, get, moveTo } = await startTokens()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.respondToTokenRequestsWith(async () => {
      const number = network.tokens.length
      if (number === 2) await held
      return { body: { access_token: `token-${number}`, expires_in: 3600 } }
    })
    for (const seconds of [0, 3299]) {
      moveTo(seconds)
      assert.equal(await get(), 'token-1')
      assert.equal(network.tokens.length, 1)
    }
    moveTo(3301)
    assert.equal(await get(), 'token-1')
    await until('the new one is requested', () => network.tokens.length === 2)
    assert.equal(await get(), 'token-1')
    release()
    await until('the new one is there', async () => (await get()) === 'token-2')
    assert.equal(network.tokens.length, 2)
  })

  test('begins a tenth of a short life before the expiry', async () => {
    const { tokens, get, moveTo, issue, requests } = await startTokens()
    issue(60)
    assert.equal(await get(), 'token-1')
    moveTo(53.9)
    assert.equal(await get(), 'token-1')
    assert.equal(await requests(), 1)
    moveTo(54)
    assert.equal(tokens.current(), 'token-1')
    assert.equal(await requests(), 2)
    assert.equal(tokens.current(), 'token-2')
  })

  test('is retried every five seconds if it fails, and the old one stays in use until it expires', async () => {
    const { network, tokens, get, moveTo, issue, requests } = await startTokens()
    issue(3600)
    assert.equal(await get(), 'token-1')
    network.respondToTokenRequestsWith(() => ({ status: 500, body: 'oops' }))
    for (const [failures, seconds] of [3400, 3405, 3410].entries()) {
      for (const at of [seconds, seconds + 4.9]) {
        moveTo(at)
        for (let index = 0; index < 3; index += 1) assert.equal(tokens.current(), 'token-1')
        assert.equal(await requests(), failures + 2)
      }
    }
    issue(3600)
    moveTo(3599.9)
    assert.equal(tokens.current(), 'token-1')
    assert.equal(await requests(), 5)
    assert.equal(tokens.current(), 'token-5')
  })

  test('is awaited once the old one has expired, by default after an hour', async () => {
    const { network, tokens, get, moveTo, issue } = await startTokens()
    for (const [lifetime, expiresAt] of [
      [60, 60],
      ['60', 3660],
      [undefined, 7260],
      [-1, 10860],
    ] as const) {
      issue(lifetime)
      const token = await get()
      moveTo(expiresAt - 0.001)
      network.respondToTokenRequestsWith(() => ({ status: 500 }))
      assert.equal(tokens.current(), token)
      await assert.rejects(tokens.renew())
      moveTo(expiresAt)
      assert.equal(tokens.current(), undefined)
    }
  })

  test('follows the first refusal of a token, and not a later refusal of the same one', async () => {
    const { tokens, get, issue } = await startTokens()
    issue(3600)
    assert.equal(await get(), 'token-1')
    tokens.discard('token-1')
    assert.equal(tokens.current(), undefined)
    assert.equal(await get(), 'token-2')
    tokens.discard('token-1')
    assert.equal(tokens.current(), 'token-2')
  })

  test('fails without quoting the response if that has no token, or one that no header can hold', async () => {
    const { network, tokens, get } = await startTokens()
    const invalid = ['', 'a\nb', 'a\r\nx-evil: 1', 'a b', 'a\0', 'a\x7f', 'tokén', '📦', 7, null, ['a'], undefined]
    for (const [response, message] of [
      ...invalid.map((access_token) => [{ body: { access_token, expires_in: 3600 } }, 'no access token: 200'] as const),
      [{ status: 201, body: { access_token: 'a-token', expires_in: 3600 } }, 'no access token: 201'],
      [{ status: 401, body: { error: 'invalid_client', error_description: 'CANARY' } }, 'no access token: 401 invalid_client'],
    ] as const) {
      network.respondToTokenRequestsWith(() => response)
      await assert.rejects(get(), { message })
      assert.equal(tokens.current(), undefined)
    }
  })

  test('uses the network’s clock if this machine’s clock is wrong', async () => {
    const { network, tokens, get } = await startTokens()
    network.respondToTokenRequestsWith(({ body }, response) => {
      const claims = new URLSearchParams(body).get('assertion')?.split('.')[1] ?? ''
      const { iat } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      const theirs = Date.now() - 2 * 3_600_000
      response.setHeader('date', new Date(theirs).toUTCString())
      return Math.abs(iat * 1000 - theirs) < 60_000
        ? { body: { access_token: 'in-time', expires_in: 3600 } }
        : { status: 400, body: { error: 'invalid_grant' } }
    })
    assert.equal(await get(), 'in-time')
    assert.equal(network.tokens.length, 2)
    // The difference is known from then on.
    await tokens.renew()
    assert.equal(network.tokens.length, 3)
  })

  const clock = (offsetMs: number) => new Date(Date.now() + offsetMs).toUTCString()
  for (const [what, error, dateOf] of [
    ['for another error than that of a wrong time', 'invalid_client', () => clock(-7_200_000)],
    ['if the network has our time', 'invalid_grant', () => clock(0)],
    ['if the network sends no time', 'invalid_grant', () => undefined],
    ['if the network sends no valid time', 'invalid_grant', () => 'yesterday'],
  ] as const) {
    test(`takes one request ${what}`, async () => {
      const { network, get } = await startTokens()
      network.respondToTokenRequestsWith((_, response) => {
        response.sendDate = false
        const date = dateOf()
        return { status: 400, headers: { ...(date !== undefined && { date }) }, body: { error } }
      })
      await assert.rejects(get(), { message: `no access token: 400 ${error}` })
      assert.equal(network.tokens.length, 1)
    })
  }
})
