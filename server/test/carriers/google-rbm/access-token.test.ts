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
import { echo, failure, KEYS, startNetwork } from '../../support/network.ts'
import { startSimulator } from '../../support/simulator.ts'
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

describe('no trouble with a token costs a message', async () => {
  const simulator = await startSimulator()
  let seen = 0

  for (const [what, faults] of Object.entries({
    'takes five seconds': { token: { slow: { count: 1, ms: 5_000 } } },
    'is refused once': { api: { tokenRefused: { count: 1 } } },
    'is refused to many at once': { api: { tokenRefused: { count: 20 } } },
    'is good for no time at all': { token: { shortLived: { count: 3, expiresInSeconds: 0 } } },
    'is not given out': { token: { refused: { count: 2, status: 500 } } },
  })) {
    test(`one that ${what}`, async () => {
      const carrier = connect(simulator.rcs)
      await simulator.ask('faults', faults, 'PUT')
      const ids = times(100, () => randomUUID())
      await Promise.all(ids.map((id, index) => sendUntilSent(carrier, `+485001${String(index).padStart(3, '0')}10`, id)))
      const { entries } = await simulator.ask(`ledger?after=${seen}&limit=1000`)
      seen = entries.at(-1).seq
      const accepted = entries.filter(({ kind }: { kind: string }) => kind === 'accepted').map(({ messageId }: any) => messageId)
      assert.deepEqual(accepted.sort(), [...ids].sort())
    })
  }

  test('one that ends while messages go out', async () => {
    const network = await startNetwork()
    const endsAt = new Map<string, number>()
    network.answerTokens(() => {
      const token = randomUUID()
      endsAt.set(`Bearer ${token}`, performance.now() + 20)
      return { body: { access_token: token, expires_in: 0.02 } }
    })
    network.answer((asked) =>
      performance.now() < (endsAt.get(asked.headers.authorization ?? '') ?? 0) ? echo(asked) : failure(401, 'UNAUTHENTICATED'),
    )
    const carrier = connect(network.settings)
    const outcomes = new Set<string>()
    while (endsAt.size < 10) outcomes.add((await send(carrier)).is)
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
    return { network, get, moveTo }
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

  test('that fails ahead of time leaves the old one in use, and is tried again', async () => {
    const { network, get, moveTo } = await startTokens()
    network.answerTokens(() => {
      const number = network.tokens.length
      return number === 2 ? { status: 500, body: 'oops' } : { body: { access_token: `token-${number}`, expires_in: 3600 } }
    })
    assert.equal(await get(), 'token-1')
    moveTo(3400)
    assert.equal(await get(), 'token-1')
    await until('it has failed', () => network.tokens.length === 2)
    moveTo(3410)
    await until('the next is there', async () => (await get()) === 'token-3')
  })

  test('that fails when there is no other is told to the caller, without the answer', async () => {
    const { network, get } = await startTokens()
    network.answerTokens(() => ({ status: 401, body: { error: 'invalid_client', error_description: 'CANARY' } }))
    await assert.rejects(get(), { message: 'no access token: 401 invalid_client' })
    network.answerTokens(() => ({ body: { access_token: '', expires_in: 3600 } }))
    await assert.rejects(get(), { message: 'no access token: 200' })
  })

  test('is not kept from happening by a machine whose clock is off: the network’s own counts', async () => {
    const { network, get } = await startTokens()
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
  })
})
