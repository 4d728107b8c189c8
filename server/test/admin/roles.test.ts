import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { recordEvent } from '../../src/events/changes.ts'
import { changePerson, findPerson, removeRole, setRole } from '../../src/people/people.ts'
import type { Role } from '../../src/people/roles.ts'
import { createToken, revokeToken } from '../../src/people/tokens.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { joinGroup } from '../support/groups.ts'
import { keyring } from '../support/keyring.ts'
import { routeUntilDone } from '../support/log.ts'
import { assertError, call, createAssignedAgent, startTestService } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { ADMIN, type Ask, newPerson, owner, pool, SAME_SITE, sessionOf, signedIn } from './shared.ts'

const PHONE = '+48500100200'
const MASKED = '+48•••••••00'

const inAnHour = () => new Date(Date.now() + 3_600_000)

async function newAccount(): Promise<number> {
  return (await createAccount(pool, 'Account', ['rcs', 'sms'])).accountId
}

describe('a viewer', () => {
  test('sees masked phone numbers in lists, messages and reports, where an admin sees whole ones', async () => {
    const accountId = await newAccount()
    const agentId = await createAssignedAgent(pool, accountId)
    const [viewer, admin] = [await signedIn('viewer', accountId), await signedIn('admin', accountId)]
    const base = `/accounts/${accountId}`
    const message = { agentId, recipient: PHONE, message: { inline: TEXT }, clientReferenceId: `order of ${PHONE}` }
    const sent = await admin('POST', `${base}/messages`, message, { 'sec-fetch-site': 'same-origin', 'idempotency-key': 'k' })
    assert.equal(sent.status, 202, JSON.stringify(sent.body))
    await joinGroup(pool, accountId, PHONE, { group: 7 })
    assert.equal((await admin('PUT', `${base}/opt-outs/${PHONE}`, {})).status, 200)
    for (const path of [
      `/messages/${sent.body.messageId}`,
      '/messages',
      '/segments/7/members',
      '/opt-outs',
      `/messages/${sent.body.messageId}/timeline`,
    ]) {
      const [masked, whole] = [await viewer('GET', base + path), await admin('GET', base + path)]
      assert.deepEqual([masked.status, whole.status], [200, 200], path)
      assert.ok(!JSON.stringify(masked.body).includes(PHONE.slice(1)), `${path}: ${JSON.stringify(masked.body)}`)
      assert.deepEqual(JSON.parse(JSON.stringify(whole.body).replaceAll(PHONE, MASKED)), masked.body, path)
    }
  })

  test('sees what was posted to a webhook endpoint with masked numbers, and without a signature', async () => {
    const accountId = await newAccount()
    const { endpointId, secret } = await addEndpoint(pool, { accountId, url: 'https://hooks.example.com/' }, keyring)
    await recordEvent(pool, { accountId, kind: 'message.sent', data: { recipient: PHONE } })
    await routeUntilDone(pool)
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status)
       select endpoint_id, account_id, position, 1, now(), 5, 503 from webhook_deliveries where endpoint_id = $1`,
      [endpointId],
    )
    const [viewer, admin] = [await signedIn('viewer', accountId), await signedIn('admin', accountId)]
    const base = `/accounts/${accountId}/webhook-endpoints/${endpointId}/attempts`
    const { attemptId } = (await viewer('GET', base)).body.items[0]
    const [masked, whole] = [await viewer('GET', `${base}/${attemptId}`), await admin('GET', `${base}/${attemptId}`)]
    assert.equal(JSON.parse(whole.body.request.body).data.recipient, PHONE)
    assert.deepEqual(masked.body, JSON.parse(JSON.stringify(whole.body).replaceAll(PHONE, MASKED)))
    for (const { body } of [masked, whole]) {
      assert.deepEqual(Object.keys(body.request.headers), ['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp'])
      assert.ok(!JSON.stringify(body).includes(secret))
    }
  })

  test('sees masked numbers of six digits, and those in addresses', async () => {
    const accountId = await newAccount()
    await joinGroup(pool, accountId, '+491234', { group: 7, attributes: { page: 'https://example.com/?of=%2b48500100200' } })
    const { body } = await (await signedIn('viewer', accountId))('GET', `/accounts/${accountId}/segments/7/members`)
    assert.deepEqual([body.items[0].phone, body.items[0].attributes.page], ['+49••34', 'https://example.com/?of=%2b48•••••••00'])
  })

  test('sees masked numbers that are written with separators; dates, times, amounts and ids that do not follow such a number stay whole', async () => {
    const accountId = await newAccount()
    const masked = {
      spaces: ['+48 500 100 200', '+48 ••• ••• •00'],
      narrow: ['+48\u00a0500\u202f100\u00a0200', '+48\u00a0•••\u202f•••\u00a0•00'],
      mixed: ['(+48) 500-100.200', '(+48) •••-•••.•00'],
      trunk: ['+49 (0)89/12345-67', '+49 (•)••/•••••-67'],
      address: ['https://example.com/?of=%2B48%20500%20100%20200', 'https://example.com/?of=%2B48%20•••%20•••%20•00'],
      dated: [`${PHONE} 2027-01-31`, `${MASKED} 2027-01-31`],
    }
    const whole = {
      time: '2027-01-31T09:00:00+01:00',
      mailDate: 'Sun, 31 Jan 2027 09:00:00 +0100 (CET)',
      amount: '+1 234.50 PLN',
      id: '0198c0de-0000-7000-8000-000000000009',
      place: '52.229676, 21.012229',
    }
    const columns = Object.entries(masked)
    const attributes = { ...Object.fromEntries(columns.map(([name, [given = '']]) => [name, given])), ...whole }
    await joinGroup(pool, accountId, PHONE, { group: 7, attributes })
    const { body } = await (await signedIn('viewer', accountId))('GET', `/accounts/${accountId}/segments/7/members`)
    assert.deepEqual(body.items[0].attributes, { ...Object.fromEntries(columns.map(([name, [, seen]]) => [name, seen])), ...whole })
  })

  test('looks up at most 30 numbers in a minute, in all accounts; ids and admins are not limited', async () => {
    const [one, two] = [await newAccount(), await newAccount()]
    const { personId } = await newPerson('viewer', [one, two])
    const [{ ask: viewer }, other, admin] = [await sessionOf(personId), await signedIn('viewer', one), await signedIn('admin', one)]
    const numbers = Array.from({ length: 34 }, (_, index) => `%2B485001002${String(index).padStart(2, '0')}`)
    const paths = ['messages?limit=1&recipient=', 'opt-outs?phone=', 'phones/', 'messages?clientReferenceId=order%20of%20']
    const seen = []
    for (const [index, number] of numbers.entries())
      seen.push(await viewer('GET', `/accounts/${index % 2 === 0 ? one : two}/${paths[index % 4]}${number}`))
    const refused = seen.filter(({ status }) => status === 429)
    assert.deepEqual(
      seen.slice(30).map(({ body }) => body.code),
      Array(4).fill('RCS_RATE_LIMITED'),
    )
    assert.equal(refused.length, 4)
    for (const { headers } of refused) assert.ok(Number(headers.get('retry-after')) > 0)
    const phoneId = Buffer.alloc(16).toString('base64url')
    for (const path of ['messages', 'messages?clientReferenceId=spring', `messages/${crypto.randomUUID()}`, `phones/${phoneId}`])
      assert.notEqual((await viewer('GET', `/accounts/${one}/${path}`)).status, 429, path)
    const [recipient] = numbers
    for (const ask of [other, ...Array(31).fill(admin)])
      assert.equal((await ask('GET', `/accounts/${one}/messages?recipient=${recipient}`)).status, 200)
  })

  test('pages by cursors that show no phone number, and cannot make one', async () => {
    const accountId = await newAccount()
    // So large that the response is bytes.
    const attributes = { text: 'x'.repeat(20_000) }
    for (const last of [0, 1, 2]) await joinGroup(pool, accountId, `+4850010020${last}`, { group: 7, attributes })
    const [viewer, admin] = [await signedIn('viewer', accountId), await signedIn('admin', accountId)]
    const list = (ask: Ask, cursor?: string) =>
      ask('GET', `/accounts/${accountId}/segments/7/members?limit=1${cursor === undefined ? '' : `&cursor=${cursor}`}`)
    const pages = [await list(viewer)]
    while (pages.at(-1)?.body.nextCursor) pages.push(await list(viewer, pages.at(-1)?.body.nextCursor))
    const phones = pages.map(({ body }) => body.items[0].phone)
    assert.deepEqual(phones, ['+48•••••••00', '+48•••••••01', '+48•••••••02'])
    const shown = pages.map(({ body }) => Buffer.from(body.nextCursor ?? '', 'base64url').toString())
    assert.doesNotMatch(shown.join(), /500100/)
    const { nextCursor } = (await list(admin)).body
    for (const cursor of [nextCursor, 'x', `${pages[0]?.body.nextCursor}x`])
      assertError(await list(viewer, cursor), 400, 'RCS_INVALID_CURSOR', [['/cursor', 'is not a cursor of this list']])
  })
})

describe('an admin', () => {
  test('adds people of its own accounts, and sees nothing of their other accounts', async () => {
    const [own, second, other] = [await newAccount(), await newAccount(), await newAccount()]
    const elsewhere = await newPerson('admin', [other])
    const admin = await signedIn('admin', own, second)
    await setRole(pool, elsewhere.personId, second, 'viewer')
    const added = await admin('POST', `/accounts/${own}/people`, { email: elsewhere.email.toUpperCase(), name: 'Ignored', role: 'viewer' })
    const { name } = await findPerson(pool, elsewhere)
    assert.deepEqual([added.status, added.body], [201, { ...elsewhere, name, role: 'viewer', hasPassword: false }])
    await removeRole(pool, elsewhere.personId, second)
    const { body } = await admin('GET', `/accounts/${own}/people`)
    assert.ok(!JSON.stringify(body).includes(`"accountId":${other}`))
    assert.deepEqual((await findPerson(pool, elsewhere)).roles, [
      { accountId: own, role: 'viewer' },
      { accountId: other, role: 'admin' },
    ])
  })

  test('cannot change a role by adding the person again, not even their own', async () => {
    const own = await newAccount()
    const { email, personId } = await newPerson('admin', [own])
    const { ask } = await sessionOf(personId)
    const add = (role: string) => ask('POST', `/accounts/${own}/people`, { email: email.toUpperCase(), name: 'Again', role }, SAME_SITE)
    assertError(await add('viewer'), 409, 'RCS_REFUSED', [['', `${email} already has the role admin in this account; change it instead.`]])
    assert.equal((await add('admin')).status, 201, 'a repeated request changes nothing')
    assert.deepEqual((await findPerson(pool, { personId })).roles, [{ accountId: own, role: 'admin' }])
  })

  test('neither sees nor changes an existing person without a role in the own accounts', async () => {
    const [own, other] = [await newAccount(), await newAccount()]
    const [elsewhere, nowhere, operator] = [await newPerson('admin', [other]), await newPerson(undefined), await newPerson('operator')]
    const admin = await signedIn('admin', own)
    await owner.query(`update people set password_hash = 'x', password_account_ids = array[$2::int] where id = $1`, [
      elsewhere.personId,
      other,
    ])
    const { cookie } = await sessionOf(elsewhere.personId)
    for (const { personId, email } of [elsewhere, nowhere, operator]) {
      const before = await findPerson(pool, { personId })
      const reason =
        'A person with this e-mail address exists, without a role in an account of which you are admin; an operator can add them.'
      const refused = await admin('POST', `/accounts/${own}/people`, { email, name: 'Taken', role: 'viewer' })
      assertError(refused, 409, 'RCS_REFUSED', [['', reason]])
      assert.deepEqual(await findPerson(pool, { personId }), before)
    }
    assert.equal((await call(`${ADMIN}/session`, { headers: { cookie } })).status, 200, 'their sessions go on')
    const added = await admin('POST', `/accounts/${own}/people`, { email: `new-${own}@example.com`, name: 'New', role: 'viewer' })
    assert.equal(added.status, 201)
  })

  test('makes links only for people who have no rights elsewhere', async () => {
    const [own, other] = [await newAccount(), await newAccount()]
    const [mine, elsewhere, operator, both] = [
      await newPerson('viewer', [own]),
      await newPerson('viewer', [own, other]),
      await newPerson('operator'),
      await newPerson('admin', [own, other]),
    ]
    await setRole(pool, operator.personId, own, 'viewer')
    const admin = await signedIn('admin', own)
    const link = (personId: number, ask = admin) => ask('POST', `/accounts/${own}/people/${personId}/link`)
    assert.equal((await link(mine.personId)).status, 201)
    for (const { personId } of [elsewhere, operator]) assert.equal((await link(personId)).body.code, 'RCS_REFUSED')
    const [{ personId: foreign }, nobody] = [await newPerson('viewer', [other]), 999_999]
    const reasons = [await link(foreign), await link(nobody)].map(({ status, body }) => [status, body.details[0].reason])
    const expected = [foreign, nobody].map((personId) => [404, `There is no person ${personId} with a role in account ${own}.`])
    assert.deepEqual(reasons, expected, 'an admin does not learn who exists')
    const { ask } = await sessionOf(both.personId)
    assert.equal((await link(elsewhere.personId, ask)).status, 201)
  })

  test('gets no rights that a person is given elsewhere, by a link made before', async () => {
    const [own, other] = [await newAccount(), await newAccount()]
    const [admin, operator] = [await signedIn('admin', own), await signedIn('operator')]
    const setUp = (token: string) =>
      call(`${ADMIN}/setup`, { method: 'POST', headers: SAME_SITE, body: { token, password: 'known to the admin' } })
    const gains = [
      (personId: number) => operator('PATCH', `/people/${personId}`, { isOperator: true }),
      (personId: number) => operator('PUT', `/people/${personId}/roles/${other}`, { role: 'viewer' }),
    ]
    for (const gain of gains) {
      const [invited, settled] = [await newPerson('viewer', [own]), await newPerson('viewer', [own])]
      const link = async ({ personId }: { personId: number }) =>
        (await admin('POST', `/accounts/${own}/people/${personId}/link`)).body.token
      const unused = await link(invited)
      const { status, headers } = await setUp(await link(settled))
      const cookie = headers.get('set-cookie')?.split(';')[0] as string
      assert.equal((await admin('PUT', `/accounts/${own}/people/${settled.personId}`, { role: 'admin' })).body.hasPassword, true)
      const read = () => call(`${ADMIN}/session`, { headers: { cookie } })
      assert.deepEqual([status, (await read()).status], [200, 200])
      for (const { personId } of [invited, settled]) assert.equal((await gain(personId)).body.hasPassword, false)
      assert.deepEqual([(await setUp(unused)).status, (await read()).status], [410, 401])
      const { token } = (await operator('POST', `/people/${settled.personId}/link`)).body
      assert.equal((await setUp(token)).status, 200)
      assert.equal((await gain(settled.personId)).body.hasPassword, true)
    }
  })

  test('loses the account with the next request after the role is taken away', async () => {
    const accountId = await newAccount()
    const { personId } = await newPerson('admin', [accountId])
    const { ask } = await sessionOf(personId)
    assert.equal((await ask('GET', `/accounts/${accountId}`)).status, 200)
    await removeRole(pool, personId, accountId)
    assert.equal((await ask('GET', `/accounts/${accountId}`)).body.code, 'RCS_ACCOUNT_NOT_FOUND')
  })

  test('reads and prepares in a suspended account, but does not send', async () => {
    const accountId = await newAccount()
    const [admin, operator] = [await signedIn('admin', accountId), await signedIn('operator')]
    await operator('POST', `/accounts/${accountId}/suspend`)
    assert.equal((await admin('GET', `/accounts/${accountId}/templates`)).status, 200)
    const created = await admin('POST', `/accounts/${accountId}/templates`, { name: 'T', status: 'DRAFT', message: TEXT })
    assert.equal(created.status, 201)
    assert.equal((await admin('POST', `/accounts/${accountId}/messages`, {})).body.code, 'RCS_ACCOUNT_SUSPENDED')
  })

  test('stops what waits in a suspended account, and starts nothing again', async () => {
    const accountId = await newAccount()
    const agentId = await createAssignedAgent(pool, accountId)
    const [admin, operator] = [await signedIn('admin', accountId), await signedIn('operator')]
    const base = `/accounts/${accountId}`
    await joinGroup(pool, accountId, PHONE, { group: 7 })
    const send = async (path: string, body: object) =>
      (await admin('POST', base + path, { agentId, message: { inline: TEXT }, ...body }, { ...SAME_SITE, 'idempotency-key': 'k' })).body
    const { messageId } = await send('/messages', { recipient: PHONE })
    const { campaignId } = await send('/campaigns', { name: 'C', segmentIds: [7] })
    await owner.query(`update campaigns set status = 'RUNNING', started_at = now() where id = $1`, [campaignId])
    await operator('POST', `${base}/suspend`)
    const move = (action: string, body?: object) => admin('POST', `${base}/campaigns/${campaignId}/${action}`, body)
    assert.equal((await move('pause')).body.status, 'PAUSED')
    for (const ask of [admin, operator])
      assert.equal((await ask('POST', `${base}/campaigns/${campaignId}/resume`)).body.code, 'RCS_ACCOUNT_SUSPENDED')
    assert.equal((await move('cancel')).body.status, 'CANCELLED')
    assert.equal((await admin('POST', `${base}/messages/${messageId}/cancel`)).body.status, 'FAILED')
    await owner.query('update campaigns set withdrawn_at = now() where id = $1', [campaignId])
    assert.equal((await move('retry', {})).body.code, 'RCS_ACCOUNT_SUSPENDED')
    await operator('POST', `${base}/resume`)
    await operator('PATCH', base, { modules: ['sms'] })
    assert.equal((await move('retry', {})).body.code, 'RCS_MODULE_NOT_AVAILABLE')
  })
})

test('of two operators who disable each other at once, one stays', async () => {
  const database = await createTestDatabase()
  const people = []
  for (const email of ['one@example.com', 'two@example.com']) {
    const { rows } = await database.pool.query<{ id: number }>(
      `insert into people (email, name, is_operator) values ($1, 'Operator', true) returning id`,
      [email],
    )
    people.push(rows[0]?.id as number)
  }
  const results = await Promise.allSettled(people.map((personId) => changePerson(database.pool, personId, { isDisabled: true })))
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

describe('a token', () => {
  const ask = (secret: string, path: string) => call(ADMIN + path, { authorization: `Bearer ${secret}` })

  test('is refused on every node when it has expired or was revoked', async () => {
    const node = await startTestService({ HERALD_DATABASE_URL: pool.options.connectionString as string }, { roles: ['api'] })
    const { secret, tokenId } = await createToken(pool, { name: 'program', role: 'operator', accountIds: [], expiresAt: inAnHour() })
    assert.match(secret, /^ho_[\w-]{43}$/)
    assert.equal((await ask(secret, '/people')).status, 200)
    await owner.query(`update admin_tokens set expires_at = now() - interval '1 ms' where id = $1`, [tokenId])
    for (const base of [ADMIN, `${node.url}/admin/v1`])
      assertError(await call(`${base}/people`, { authorization: `Bearer ${secret}` }), 401, 'RCS_UNAUTHORIZED')
    await owner.query(`update admin_tokens set expires_at = now() + interval '1 hour' where id = $1`, [tokenId])
    assert.equal((await ask(secret, '/people')).status, 200)
    await revokeToken(pool, tokenId)
    assert.equal((await ask(secret, '/people')).status, 401)
  })

  test('makes no token that outlives it', async () => {
    const expiresAt = inAnHour()
    const { secret } = await createToken(pool, { name: 'program', role: 'operator', accountIds: [], expiresAt })
    const make = (until: Date) =>
      call(`${ADMIN}/tokens`, {
        method: 'POST',
        authorization: `Bearer ${secret}`,
        body: { name: 'another', role: 'operator', expiresAt: until.toISOString() },
      })
    assert.equal((await make(expiresAt)).status, 201)
    const reason = `must not be after ${expiresAt.toISOString()}, when the token that makes it expires`
    assertError(await make(new Date(expiresAt.getTime() + 1)), 400, 'RCS_INVALID_REQUEST', [['/expiresAt', reason]])
  })

  test('makes neither operators nor links, which would outlive it', async () => {
    const accountId = await newAccount()
    const { personId } = await newPerson('viewer', [accountId])
    const { secret } = await createToken(pool, { name: 'program', role: 'operator', accountIds: [], expiresAt: inAnHour() })
    const reason = 'The request needs the session of a person; a token has none.'
    const send = (method: string, path: string, body: object) => call(ADMIN + path, { method, authorization: `Bearer ${secret}`, body })
    for (const [method, path, body] of [
      ['POST', '/people', { email: 'second@example.com', name: 'Second', isOperator: true }],
      ['PATCH', `/people/${personId}`, { isOperator: true }],
      ['POST', `/people/${personId}/link`, {}],
      ['POST', `/accounts/${accountId}/people/${personId}/link`, {}],
    ] as const) {
      assertError(await send(method, path, body), 403, 'RCS_ROLE', [['', reason]])
    }
    assert.equal((await send('PATCH', `/people/${personId}`, { isOperator: false, name: 'Other' })).status, 200)
    assert.equal((await send('POST', '/people', { email: 'second@example.com', name: 'Second' })).status, 201)
  })

  test('takes precedence over a session in the same request, and is refused if it is wrong', async () => {
    const accountId = await newAccount()
    const { secret } = await createToken(pool, { name: 'reader', role: 'viewer', accountIds: [accountId], expiresAt: inAnHour() })
    const { cookie } = await sessionOf((await newPerson('operator')).personId)
    const get = (authorization: string, path: string) => call(ADMIN + path, { headers: { authorization, cookie } })
    assert.equal((await get(`Bearer ${secret}`, `/accounts/${accountId}`)).status, 200)
    assert.equal((await get(`Bearer ${secret}`, '/people')).body.code, 'RCS_ROLE')
    for (const wrong of [secret.slice(0, -1), secret.slice(3), 'hk_a:hs_b', ''])
      assert.equal((await get(`Bearer ${wrong}`, '/people')).status, 401, wrong)
    assert.equal((await get('Basic abc', '/people')).status, 401)
  })
})

/** Sends requests with a new token. */
async function tokenOf(role: Role, ...accountIds: number[]): Promise<Ask> {
  const { secret } = await createToken(pool, { name: role, role, accountIds, expiresAt: inAnHour() })
  return (method, path, body, headers) => call(ADMIN + path, { method, body, headers: { ...headers, authorization: `Bearer ${secret}` } })
}

describe('an operator', () => {
  test('disables and enables webhook endpoints as the operator; only an operator can enable what one disabled', async () => {
    const accountId = await newAccount()
    const [admin, operator] = [await signedIn('admin', accountId), await signedIn('operator')]
    const byToken = await tokenOf('operator')
    const { endpointId } = await addEndpoint(pool, { accountId, url: 'https://hooks.example.com/operators' }, keyring)
    const path = `/accounts/${accountId}/webhook-endpoints/${endpointId}`
    const set = async (ask: Ask, status: string) => {
      const { body } = await ask('PATCH', path, { status })
      return body.code ?? [body.status, body.disabledBecause]
    }
    for (const ask of [operator, byToken]) {
      assert.deepEqual(await set(admin, 'DISABLED'), ['DISABLED', 'CALLER'])
      assert.deepEqual(await set(ask, 'ACTIVE'), ['ACTIVE', undefined])
      assert.deepEqual(await set(ask, 'DISABLED'), ['DISABLED', 'OPERATOR'])
      assert.equal(await set(admin, 'ACTIVE'), 'RCS_WEBHOOK_ENDPOINT_STATE')
      assert.deepEqual(await set(ask, 'ACTIVE'), ['ACTIVE', undefined])
    }
  })
})

test('the Location of what was created under /admin/v1 leads to it there', async () => {
  const accountId = await newAccount()
  const agentId = await createAssignedAgent(pool, accountId)
  await joinGroup(pool, accountId, PHONE, { group: 7 })
  const ask = await tokenOf('admin', accountId)
  const inline = { agentId, message: { inline: TEXT } }
  for (const [path, body] of [
    ['templates', { name: 'A', message: TEXT }],
    ['messages', { ...inline, recipient: PHONE }],
    ['campaigns', { ...inline, name: 'A', segmentIds: [7] }],
    ['webhook-endpoints', { url: 'http://127.0.0.1:9/' }],
  ] as const) {
    const list = `/admin/v1/accounts/${accountId}/${path}/`
    const { status, headers, body: created } = await ask('POST', `/accounts/${accountId}/${path}`, body, { 'idempotency-key': path })
    const location = headers.get('location') ?? ''
    assert.ok(status < 300 && location.startsWith(list), `${status} ${location} ${JSON.stringify(created)}`)
    assert.equal((await ask('GET', location.slice('/admin/v1'.length))).status, 200, location)
  }
})
