import assert from 'node:assert/strict'
import { randomUUID, verify } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RcsCarrier } from '../../../src/carriers/carrier.ts'
import { createAccessTokens } from '../../../src/carriers/google-rbm/access-token.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import { createHttp } from '../../../src/carriers/google-rbm/http.ts'
import type { GoogleRbmSettings } from '../../../src/carriers/google-rbm/settings.ts'
import { createLogger } from '../../../src/http/log.ts'
import { echo, failure, KEYS, startNetwork, type TestNetwork } from '../../support/network.ts'
import { startSimulator, type TestSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'

function connect(settings: GoogleRbmSettings): RcsCarrier {
  const carrier = createGoogleRbm(settings, { postbackKey: Buffer.alloc(32), logger: createLogger('silent') })
  after(() => carrier.close())
  return carrier
}

async function send(carrier: RcsCarrier, recipient = '+48500100110', messageId: string = randomUUID()) {
  const content = { type: 'MESSAGE', content: 'Hello' } as const
  const expiresAt = new Date(Date.now() + 3_600_000)
  return await carrier.send({ messageId, agentId: 'agent', recipient, content, traffic: 'TRANSACTION', expiresAt })
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** As whoever delivers does: what is to be tried again is, after the time that the carrier asks for. */
async function sendUntilSent(carrier: RcsCarrier, recipient: string, messageId: string): Promise<void> {
  for (;;) {
    const outcome = await send(carrier, recipient, messageId)
    if (outcome.is === 'sent') return
    await sleep('afterMs' in outcome ? outcome.afterMs : assert.fail(outcome.is))
  }
}

describe('no trouble with a token costs a message', { concurrency: true }, () => {
  /** All of them arrive. Returns how far the simulator's ledger goes then. */
  async function sendHundred(simulator: TestSimulator, faults: object, seen = 0): Promise<number> {
    const carrier = connect(simulator.rcs)
    await simulator.ask('faults', faults, 'PUT')
    const ids = times(100, () => randomUUID())
    await Promise.all(ids.map((id, index) => sendUntilSent(carrier, `+485001${String(index).padStart(3, '0')}10`, id)))
    const { entries } = await simulator.ask(`ledger?after=${seen}&limit=1000`)
    const accepted = entries.filter(({ kind }: { kind: string }) => kind === 'accepted').map(({ messageId }: any) => messageId)
    assert.deepEqual(accepted.sort(), [...ids].sort())
    return entries.at(-1).seq
  }

  // Beside the others, with a network of its own, so that they need not wait for it.
  test('one that takes five seconds', async () => {
    await sendHundred(await startSimulator(), { token: { slow: { count: 1, ms: 5_000 } } })
  })

  test('one that is refused, is good for no time at all, or is not given out', async (t) => {
    const simulator = await startSimulator()
    let seen = 0
    for (const [what, faults] of Object.entries({
      'is refused once': { api: { tokenRefused: { count: 1 } } },
      'is refused to many at once': { api: { tokenRefused: { count: 20 } } },
      'is good for no time at all': { token: { shortLived: { count: 3, expiresInSeconds: 0 } } },
      'is not given out': { token: { refused: { count: 2, status: 500 } } },
    })) {
      await t.test(`one that ${what}`, async () => {
        seen = await sendHundred(simulator, faults, seen)
      })
    }
  })

  test('one that ends while messages go out, by its time or before', async () => {
    const network = await startNetwork()
    const uses = new Map<string, number>()
    network.answerTokens(() => {
      const token = randomUUID()
      uses.set(`Bearer ${token}`, 7)
      return { body: { access_token: token, expires_in: 0.02 } }
    })
    network.answer((asked) => {
      const { authorization = '' } = asked.headers
      const left = uses.get(authorization) ?? 0
      uses.set(authorization, left - 1)
      return left > 0 ? echo(asked) : failure(401, 'UNAUTHENTICATED')
    })
    const carrier = connect(network.settings)
    const outcomes = new Set<string>()
    while (uses.size < 10) outcomes.add((await send(carrier)).is)
    assert.deepEqual([...outcomes], ['sent'])
  })
})

test('many callers share one request for a token', async () => {
  const network = await startNetwork(50)
  const carrier = connect(network.settings)
  const outcomes = await Promise.all(times(200, () => send(carrier)))
  assert.ok(outcomes.every(({ is }) => is === 'sent'))
  assert.equal(network.tokens.length, 1)
  assert.ok(network.asked.every(({ headers }) => headers.authorization === 'Bearer a-token'))
})

test('it is asked for as Google wants it: a signed assertion of the service account, in a form', async () => {
  const network = await startNetwork()
  await send(connect(network.settings))
  const [asked] = network.tokens
  assert.equal(asked?.headers['content-type'], 'application/x-www-form-urlencoded')
  const form = new URLSearchParams(asked?.body)
  assert.equal(form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [header = '', claims = '', signature = ''] = form.get('assertion')?.split('.') ?? []
  assert.ok(verify('RSA-SHA256', Buffer.from(`${header}.${claims}`), KEYS.publicKey, Buffer.from(signature, 'base64url')))
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  const { iat, exp, ...rest } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  assert.deepEqual(rest, {
    iss: 'herald@example.com',
    scope: 'https://www.googleapis.com/auth/rcsbusinessmessaging',
    aud: network.settings.serviceAccount.token_uri,
  })
  assert.ok(Math.abs(iat * 1000 - Date.now()) < 60_000)
  assert.equal(exp, iat + 3600)
})

describe('renewal', () => {
  async function startTokens() {
    const network = await startNetwork()
    const http = createHttp(network.settings.address, 1)
    after(() => http.close())
    let now = 0
    const tokens = createAccessTokens(network.settings.serviceAccount, http, () => now)
    const get = async () => tokens.current() ?? (await tokens.renew())
    function moveTo(seconds: number): void {
      now = seconds * 1000
    }
    /** Whatever was asked for before is answered then: there is one connection, and no request overtakes another. */
    async function tokensAskedFor(): Promise<number> {
      await http.call({ method: 'GET', path: '/v1' })
      return network.tokens.length
    }
    return { network, tokens, get, moveTo, tokensAskedFor }
  }

  function numbered(network: TestNetwork, expiresInSeconds: unknown): void {
    network.answerTokens(() => ({ body: { access_token: `token-${network.tokens.length}`, expires_in: expiresInSeconds } }))
  }

  test('happens five minutes ahead, while the old one is still given out', async () => {
    const { network, get, moveTo } = await startTokens()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    network.answerTokens(async () => {
      const number = network.tokens.length
      if (number === 2) await held
      return { body: { access_token: `token-${number}`, expires_in: 3600 } }
    })
    assert.equal(await get(), 'token-1')
    moveTo(3299)
    assert.equal(await get(), 'token-1')
    assert.equal(network.tokens.length, 1)
    moveTo(3301)
    assert.equal(await get(), 'token-1')
    await until('the new one is asked for', () => network.tokens.length === 2)
    assert.equal(await get(), 'token-1')
    release()
    await until('the new one is there', async () => (await get()) === 'token-2')
    assert.equal(network.tokens.length, 2)
  })

  test('of a short life happens a tenth of it ahead', async () => {
    const { network, tokens, get, moveTo, tokensAskedFor } = await startTokens()
    numbered(network, 60)
    assert.equal(await get(), 'token-1')
    moveTo(53.9)
    assert.equal(await get(), 'token-1')
    assert.equal(await tokensAskedFor(), 1)
    moveTo(54)
    assert.equal(tokens.current(), 'token-1')
    assert.equal(await tokensAskedFor(), 2)
    assert.equal(tokens.current(), 'token-2')
  })

  test('that fails ahead of time leaves the old one in use, and is tried again every five seconds until that one ends', async () => {
    const { network, tokens, get, moveTo, tokensAskedFor } = await startTokens()
    numbered(network, 3600)
    assert.equal(await get(), 'token-1')
    network.answerTokens(() => ({ status: 500, body: 'oops' }))
    moveTo(3400)
    for (const [failures, seconds] of [3400, 3405, 3410].entries()) {
      moveTo(seconds)
      assert.equal(tokens.current(), 'token-1')
      assert.equal(await tokensAskedFor(), failures + 2)
      moveTo(seconds + 4.9)
      for (let index = 0; index < 3; index += 1) assert.equal(tokens.current(), 'token-1')
      assert.equal(await tokensAskedFor(), failures + 2)
    }
    numbered(network, 3600)
    moveTo(3599.9)
    assert.equal(tokens.current(), 'token-1')
    assert.equal(await tokensAskedFor(), 5)
    assert.equal(tokens.current(), 'token-5')
  })

  test('is waited for where the old one has ended', async () => {
    const { network, tokens, get, moveTo } = await startTokens()
    for (const [lifetime, endsAt] of [
      [60, 60],
      ['60', 3660],
      [undefined, 7260],
      [-1, 10860],
    ] as const) {
      numbered(network, lifetime)
      const token = await get()
      moveTo(endsAt - 0.001)
      network.answerTokens(() => ({ status: 500 }))
      assert.equal(tokens.current(), token)
      await assert.rejects(tokens.renew())
      moveTo(endsAt)
      assert.equal(tokens.current(), undefined)
    }
  })

  test('is not undone by one who hears late that the old one was refused', async () => {
    const { network, tokens, get } = await startTokens()
    numbered(network, 3600)
    assert.equal(await get(), 'token-1')
    tokens.discard('token-1')
    assert.equal(tokens.current(), undefined)
    assert.equal(await get(), 'token-2')
    tokens.discard('token-1')
    assert.equal(tokens.current(), 'token-2')
  })

  test('brings no token where it is one that no header can hold', async () => {
    const { network, tokens, get } = await startTokens()
    for (const access_token of ['a\nb', 'a\r\nx-evil: 1', 'a b', 'a\0', 'a\x7f', 'tokén', '📦', 7, null, ['a'], undefined]) {
      network.answerTokens(() => ({ body: { access_token, expires_in: 3600 } }))
      await assert.rejects(get(), { message: 'no access token: 200' })
      assert.equal(tokens.current(), undefined)
    }
    network.answerTokens(() => ({ status: 201, body: { access_token: 'a-token', expires_in: 3600 } }))
    await assert.rejects(get(), { message: 'no access token: 201' })
  })

  test('that fails when there is no other is told to the caller, without the answer', async () => {
    const { network, get } = await startTokens()
    network.answerTokens(() => ({ status: 401, body: { error: 'invalid_client', error_description: 'CANARY' } }))
    await assert.rejects(get(), { message: 'no access token: 401 invalid_client' })
    network.answerTokens(() => ({ body: { access_token: '', expires_in: 3600 } }))
    await assert.rejects(get(), { message: 'no access token: 200' })
  })

  test('is not kept from happening by a machine whose clock is off: the network’s own counts', async () => {
    const { network, tokens, get } = await startTokens()
    const offsetMs = -2 * 3_600_000
    network.answerTokens(({ body }, response) => {
      const claims = new URLSearchParams(body).get('assertion')?.split('.')[1] ?? ''
      const { iat } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      const theirs = Date.now() + offsetMs
      response.setHeader('date', new Date(theirs).toUTCString())
      return Math.abs(iat * 1000 - theirs) < 60_000
        ? { body: { access_token: 'in-time', expires_in: 3600 } }
        : { status: 400, body: { error: 'invalid_grant' } }
    })
    assert.equal(await get(), 'in-time')
    assert.equal(network.tokens.length, 2)
    // It is known from then on.
    await tokens.renew()
    assert.equal(network.tokens.length, 3)
  })

  for (const [what, error, date] of [
    ['another error than that of a wrong time', 'invalid_client', new Date(Date.now() - 7_200_000).toUTCString()],
    ['a network whose time is ours', 'invalid_grant', new Date().toUTCString()],
    ['a network that tells no time', 'invalid_grant', undefined],
    ['a network that tells nonsense', 'invalid_grant', 'yesterday'],
  ] as const) {
    test(`is not tried a second time for ${what}`, async () => {
      const { network, get } = await startTokens()
      network.answerTokens((_, response) => {
        response.sendDate = false
        return { status: 400, headers: { ...(date !== undefined && { date }) }, body: { error } }
      })
      await assert.rejects(get(), { message: `no access token: 400 ${error}` })
      assert.equal(network.tokens.length, 1)
    })
  }
})
