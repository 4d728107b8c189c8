import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createFirstLink, createLink, redeemLink } from '../../src/people/links.ts'
import { changePerson, createPerson, setRole } from '../../src/people/people.ts'
import { listSessions, openSession } from '../../src/people/sessions.ts'
import { checkPassword } from '../../src/people/sign-in.ts'
import { whileOthersCommit } from '../delivery/locks.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertError, call, startTestService } from '../support/service.ts'
import { ADMIN, newAddress, newPerson, owner, PASSWORD, pool, SAME_SITE, sessionOf, withPassword } from './shared.ts'

describe('a one-time link', () => {
  const setUp = (base: string, body: unknown) => call(`${base}/setup`, { method: 'POST', headers: SAME_SITE, body })

  test('of the first start makes one operator, also if two links are used at once', async () => {
    const empty = await createTestDatabase()
    const { url } = await startTestService({ HERALD_DATABASE_URL: empty.url })
    const tokens = [await createFirstLink(empty.pool), await createFirstLink(empty.pool)]
    const given = { password: PASSWORD, name: 'First' }
    const isRequired = (...fields: string[]) => fields.map((field) => [`/${field}`, 'is required'] as const)
    for (const [body, details] of [
      [{ password: PASSWORD }, isRequired('email', 'name')],
      [given, isRequired('email')],
      [{ password: 'short' }, [['/password', 'must have 12 to 256 characters'], ...isRequired('email', 'name')] as const],
    ] as const) {
      assertError(await setUp(`${url}/admin/v1`, { token: tokens[0], ...body }), 400, 'RCS_INVALID_REQUEST', details)
      assert.equal((await setUp(`${url}/admin/v1`, { token: 'guess', ...body })).status, 410)
    }
    const made = await Promise.all(
      tokens.map((token, index) => setUp(`${url}/admin/v1`, { token, ...given, email: `op-${index}@example.com` })),
    )
    assert.deepEqual(made.map(({ status }) => status).sort(), [200, 410])
    assert.equal((await empty.pool.query('select from people where is_operator')).rowCount, 1)
    assert.equal(await createFirstLink(empty.pool), undefined)
  })

  test('of the first start works until there is an operator, even if there are other people', async () => {
    const empty = await createTestDatabase()
    const { url } = await startTestService({ HERALD_DATABASE_URL: empty.url })
    const token = await createFirstLink(empty.pool)
    assert.match(token ?? '', /^first-[\w-]{43}$/, 'the console knows it from the link of a person')
    const { accountId } = await createAccount(empty.pool, 'Shop', ['rcs'])
    const { personId } = await createPerson(empty.pool, { email: 'v@example.com', name: 'Viewer' })
    await setRole(empty.pool, personId, accountId, 'viewer')
    const isSetUp = async () => (await call(`${url}/admin/v1/sign-in-options`)).body.isSetUp
    assert.deepEqual([await isSetUp(), typeof (await createFirstLink(empty.pool))], [false, 'string'])
    const { token: ofViewer } = await createLink(empty.pool, personId)
    assert.equal((await setUp(`${url}/admin/v1`, { token: ofViewer, password: PASSWORD })).body.isOperator, false)
    const given = { token, password: PASSWORD, name: 'First' }
    assertError(await setUp(`${url}/admin/v1`, { ...given, email: 'V@example.com' }), 400, 'RCS_INVALID_REQUEST', [
      ['/email', 'belongs to a person who is not an operator; give another address'],
    ])
    const { status, body } = await setUp(`${url}/admin/v1`, { ...given, email: 'op@example.com' })
    assert.deepEqual([status, body.isOperator, await isSetUp(), await createFirstLink(empty.pool)], [200, true, true, undefined])
  })

  test('of the first start ends when a command makes an operator', async () => {
    const empty = await createTestDatabase()
    const token = (await createFirstLink(empty.pool)) as string
    await createPerson(empty.pool, { email: 'op@example.com', name: 'Operator', isOperator: true })
    const given = { secret: token, password: PASSWORD, email: 'first@example.com', name: 'First' }
    await assert.rejects(redeemLink(empty.pool, given), { code: 'RCS_LINK_GONE' })
  })

  test('of a person refuses an address and a name', async () => {
    const { personId } = await newPerson('operator')
    const { token } = await createLink(pool, personId)
    const body = { token, password: PASSWORD, email: 'other@example.com', name: 'Other' }
    const reason = 'must be absent: the person of this link has one'
    assertError(await setUp(ADMIN, body), 400, 'RCS_INVALID_REQUEST', [
      ['/email', reason],
      ['/name', reason],
    ])
    assert.equal((await setUp(ADMIN, { token, password: PASSWORD })).status, 200)
  })

  test('ends when its person is disabled; a disabled person gets no new link', async () => {
    const [{ personId }, other] = [await withPassword(), await withPassword()]
    const { token } = await createLink(pool, personId)
    await changePerson(pool, personId, { isDisabled: true })
    const { ask } = await sessionOf(other.personId)
    assert.equal((await ask('POST', `/people/${personId}/link`)).body.code, 'RCS_REFUSED')
    await changePerson(pool, personId, { isDisabled: false })
    assert.equal((await setUp(ADMIN, { token, password: PASSWORD })).status, 410)
    assert.equal((await ask('POST', `/people/${personId}/link`)).status, 201)
  })

  test('ends also a session that is being opened with the old password', async () => {
    const { personId, email } = await withPassword()
    const client = { address: newAddress(), userAgent: 'test' }
    const checked = await checkPassword(pool, email, PASSWORD, client.address)
    const { token } = await createLink(pool, personId)
    // The session is stored, but not yet committed, when the link is used.
    await whileOthersCommit(
      pool,
      (tx) => openSession(tx, personId, client, checked),
      () => redeemLink(pool, { secret: token, password: 'another password' }),
    )
    assert.deepEqual(await listSessions(pool, personId), [])
    await assert.rejects(openSession(pool, personId, client, checked), { code: 'RCS_UNAUTHORIZED' })
  })

  test('opens no session if the person got further rights since, which end the password', async () => {
    const { accountId } = await createAccount(pool, 'Own', ['rcs'])
    const { accountId: further } = await createAccount(pool, 'Further', ['rcs'])
    const { personId } = await newPerson('viewer', [accountId])
    const { token } = await createLink(pool, personId, [accountId])
    const redeemed = await redeemLink(pool, { secret: token, password: 'known to the admin' })
    await setRole(pool, personId, further, 'admin')
    await assert.rejects(openSession(pool, personId, { address: newAddress(), userAgent: 'test' }, redeemed), { code: 'RCS_UNAUTHORIZED' })
  })

  test('sets the password of its person once, ends their sessions, and is stored as a hash', async () => {
    const { personId } = await newPerson('operator')
    const { ask } = await sessionOf(personId)
    const replaced = await createLink(pool, personId)
    const { token } = await createLink(pool, personId)
    assert.equal((await setUp(ADMIN, { token: replaced.token, password: PASSWORD })).status, 410)
    for (const password of ['x'.repeat(11), 'x'.repeat(257)]) assert.equal((await setUp(ADMIN, { token, password })).status, 400)
    assert.equal((await setUp(ADMIN, { token, password: 'żółty słoń'.padEnd(12, 'ó') })).status, 200)
    assert.equal((await ask('GET', '/session')).status, 401)
    const entries = await pool.query(`select actor_id as actor, after from audit_log where action = 'setUp' and subject = $1`, [
      `${personId}`,
    ])
    assert.deepEqual(entries.rows, [{ actor: personId, after: { password: '(secret)', isFirstOperator: false } }])
    assert.equal((await setUp(ADMIN, { token, password: PASSWORD })).status, 410)
    const { token: late } = await createLink(pool, personId)
    const { rows } = await pool.query('select l::text as row from people_links l')
    assert.ok(!JSON.stringify(rows).includes(late))
    await owner.query(`update people_links set expires_at = now() - interval '1 ms' where person_id = $1`, [personId])
    assert.equal((await setUp(ADMIN, { token: late, password: PASSWORD })).status, 410)
  })
})
