import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { sessionSecret } from '../../src/admin/cookie.ts'
import { isPassword } from '../../src/people/passwords.ts'
import { changePerson } from '../../src/people/people.ts'
import { cpuMs } from '../support/cpu.ts'
import { assertError, call, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { ADMIN, env, newAddress, newPerson, owner, PASSWORD, pool, SAME_SITE, sessionOf, withPassword } from './shared.ts'

/** Another node, behind a proxy: a request can say where it comes from. */
const node = await startTestService(env)
const proxied = `${node.url}/admin/v1`

const from = (address: string, protocol = 'https') => ({ ...SAME_SITE, 'x-forwarded-for': address, 'x-forwarded-proto': protocol })

function signIn(email: string, password: string, address = newAddress()) {
  return call(`${proxied}/session`, { method: 'POST', headers: from(address), body: { email, password } })
}

const WRONG = [['', 'The e-mail address or the password is wrong.']] as const

describe('POST /admin/v1/session', () => {
  test('opens a session with a cookie that scripts and other sites cannot use', async () => {
    const { email, personId } = await withPassword()
    const { status, body, headers } = await signIn(` ${email.toUpperCase()} `, PASSWORD)
    assert.deepEqual([status, body.personId, body.email, body.isOperator, body.isConfirmed], [200, personId, email, true, true])
    assert.match(headers.get('set-cookie') ?? '', /^__Host-herald=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    assert.equal(headers.get('cache-control'), 'no-store')
    const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';')
    const { rows } = await pool.query('select address, user_agent from sessions where person_id = $1', [personId])
    assert.equal(rows.length, 1)
    assert.ok(!JSON.stringify(rows).includes(cookie.split('=')[1] as string))
    const read = await call(`${proxied}/session`, { headers: { ...from(newAddress()), cookie } })
    assert.deepEqual([read.status, read.body.sessionId], [200, body.sessionId])
  })

  test('sets a cookie of another name on plain HTTP, on loopback only', async () => {
    const { email } = await withPassword()
    const { status, headers } = await call(`${ADMIN}/session`, { method: 'POST', headers: SAME_SITE, body: { email, password: PASSWORD } })
    assert.equal(status, 200)
    assert.match(headers.get('set-cookie') ?? '', /^herald-local=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    const remote = { method: 'POST', headers: from(newAddress(), 'http'), body: { email, password: PASSWORD } }
    assertError(await call(`${proxied}/session`, remote), 403, 'RCS_INSECURE_CONNECTION', [
      ['', 'Use HTTPS. If a proxy ends it, set HERALD_TRUST_PROXY to its address, and let it send X-Forwarded-Proto.'],
    ])
  })

  test('a cookie is a session only over HTTPS, or on the machine itself under the other name', async () => {
    const { cookie, ask } = await sessionOf((await newPerson('operator')).personId)
    const secret = cookie.split('=')[1]
    const read = async (name: string, headers: Record<string, string>) =>
      (await call(`${proxied}/session`, { headers: { ...headers, cookie: `${name}=${secret}` } })).status
    assert.deepEqual([await read('__Host-herald', from(newAddress())), await read('herald-local', SAME_SITE)], [200, 200])
    assert.deepEqual([await read('__Host-herald', SAME_SITE), await read('herald-local', from(newAddress()))], [401, 401])
    for (const name of ['herald-local', '__Host-herald']) assert.equal(await read(name, from(newAddress(), 'http')), 401, name)
    const confirm = { method: 'POST', headers: { ...from(newAddress(), 'http'), cookie }, body: { password: PASSWORD } }
    assert.equal((await call(`${proxied}/session/confirm`, confirm)).status, 401)
    assert.equal((await ask('GET', '/session')).status, 200)
  })

  test('refuses plain HTTP through a proxy that is not trusted, although the proxy is on this machine', async () => {
    const { email, personId } = await withPassword()
    const { cookie } = await sessionOf(personId)
    const untrusting = await startTestService({ ...env, HERALD_TRUST_PROXY: '' }, { roles: ['api'] })
    const { port } = new URL(untrusting.url)
    /** With a Host of its own, which fetch does not send. */
    const send = async (headers: Record<string, string>, path = '/session', body?: object) => {
      const options = { port, host: '127.0.0.1', path: `/admin/v1${path}`, method: body === undefined ? 'GET' : 'POST' }
      const sent = request({ ...options, headers: { ...SAME_SITE, 'content-type': 'application/json', ...headers } })
      sent.end(body && JSON.stringify(body))
      const [response] = await once(sent, 'response')
      return { status: response.statusCode, body: (await json(response)) as any, cookies: response.headers['set-cookie'] }
    }
    const [forwarded, host, reason] = [{ 'x-forwarded-for': '203.0.113.9' }, `localhost:${port}`, /HERALD_TRUST_PROXY/]
    const remote: [Record<string, string>, RegExp][] = [
      [{ host, ...forwarded }, reason],
      [{ host, 'x-forwarded-proto': 'http' }, reason],
      [{ host, forwarded: 'for=203.0.113.9' }, reason],
      [{ host, origin: 'https://herald.example.com' }, reason],
      [{ host: 'herald.example.com' }, /at localhost, not at herald\.example\.com/],
    ]
    for (const [headers, why] of remote) {
      const refused = await send(headers, '/session', { email, password: PASSWORD })
      assert.deepEqual([refused.status, refused.body.code, refused.cookies], [403, 'RCS_INSECURE_CONNECTION', undefined])
      assert.match(refused.body.details[0].reason, why)
      if (headers.origin === undefined) assert.equal((await send({ ...headers, cookie })).status, 401)
    }
    for (const local of ['localhost', `localhost:${port}`, '127.0.0.1:9000', `[::1]:${port}`]) {
      assert.equal((await send({ host: local, origin: `http://${local}` }, '/session', { email, password: PASSWORD })).status, 200, local)
      assert.equal((await send({ host: local, cookie })).status, 200, local)
    }
  })

  test('gives the same response for an unknown name, a disabled person, a missing password and a wrong password', async () => {
    const [known, disabled, without] = [await withPassword(), await withPassword(), await newPerson('operator')]
    await changePerson(pool, disabled.personId, { isDisabled: true })
    for (const [email, password] of [
      [known.email, `${PASSWORD}!`],
      [disabled.email, PASSWORD],
      [without.email, PASSWORD],
      ['nobody@example.com', PASSWORD],
    ] as const) {
      const response = await signIn(email, password)
      assertError(response, 401, 'RCS_UNAUTHORIZED', WRONG)
      assert.equal(response.headers.get('set-cookie'), null)
    }
  })

  test('sends every 401 with a Bearer challenge, for which a browser opens no dialog', async () => {
    const headers = from(newAddress())
    const { ask } = await sessionOf((await withPassword()).personId)
    for (const response of [
      await signIn('nobody@example.com', 'wrong'),
      await ask('POST', '/session/confirm', { password: 'wrong' }),
      await call(`${ADMIN}/session`, { headers }),
      await call(`${ADMIN}/people`, { headers, authorization: 'Bearer ho_guess' }),
      await call(`${ADMIN}/nowhere`, { headers }),
    ])
      assert.deepEqual([response.status, response.headers.get('www-authenticate')], [401, 'Bearer'])
  })

  test('refuses the eleventh wrong attempt from an address within 15 minutes, also of concurrent attempts', async () => {
    const address = newAddress()
    const tries = await Promise.all(Array.from({ length: 20 }, (_, index) => signIn(`nobody-${index}@example.com`, 'x', address)))
    assert.deepEqual(tries.map(({ status }) => status).sort(), [...Array(10).fill(401), ...Array(10).fill(429)])
    const { email } = await withPassword()
    const refused = await signIn(email, PASSWORD, address)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(refused.status === 429 && seconds > 890 && seconds <= 900, `${refused.status} ${seconds}`)
    assert.equal((await signIn(email, PASSWORD)).status, 200, 'another address')
    await owner.query(`update sign_in_tries set tried_at = now() - interval '14 minutes' where address = $1`, [address])
    assert.equal((await signIn(email, PASSWORD, address)).status, 429)
    await owner.query(`update sign_in_tries set tried_at = now() - interval '15 minutes 1 ms' where address = $1`, [address])
    assert.equal((await signIn(email, PASSWORD, address)).status, 200)
  })

  test('does not count correct attempts', async () => {
    const { email } = await withPassword()
    const address = newAddress()
    for (let index = 0; index < 12; index += 1) assert.equal((await signIn(email, PASSWORD, address)).status, 200)
  })

  test('allows an office behind one address 600 correct attempts a minute, and still only ten wrong ones', async () => {
    const { email } = await withPassword()
    const address = newAddress()
    const wrong = async (index: number) => (await signIn(`nobody-${index}@office.example`, 'x', address)).status
    for (let index = 0; index < 9; index += 1) assert.equal(await wrong(index), 401)
    for (let index = 0; index < 31; index += 1) {
      const { status, headers } = await signIn(email, PASSWORD, address)
      assert.deepEqual([status, headers.get('ratelimit-policy')], [200, '"sign-in";q=600;w=60'])
    }
    assert.deepEqual([await wrong(9), await wrong(10), (await signIn(email, PASSWORD, address)).status], [401, 429, 429])
  })

  test('refuses an attempt for a second only while ten others, which may be right, are in progress', async () => {
    const { email } = await withPassword()
    const address = newAddress()
    await owner.query(`insert into sign_in_tries (address, name_hash) select $1, '' from generate_series(1, 10)`, [address])
    const { status, headers } = await signIn(email, PASSWORD, address)
    assert.deepEqual([status, headers.get('retry-after')], [429, '1'])
    // As of a process that was killed.
    await owner.query(`update sign_in_tries set tried_at = now() - interval '30 seconds 1 ms' where address = $1`, [address])
    assert.equal((await signIn(email, PASSWORD, address)).status, 200)
  })

  test('gives no result for a check that took so long that its attempt might no longer count', async () => {
    const { email } = await withPassword()
    for (const [password, address] of [
      [PASSWORD, newAddress()],
      ['wrong', newAddress()],
    ] as const) {
      // The attempt waits for the delay of its name.
      await owner.query(
        `insert into sign_in_tries (address, name_hash, has_failed) select 'other', sha256($1::bytea), true from generate_series(1, 8)`,
        [email],
      )
      const slow = signIn(email, password, address)
      const age = `update sign_in_tries set tried_at = now() - interval '21 seconds' where address = $1`
      await until('the attempt is in progress', async () => (await owner.query(age, [address])).rowCount === 1)
      assertError(await slow, 503, 'RCS_UNAVAILABLE', [['', 'The check of the password took too long; try again.']])
      assert.equal((await owner.query('select from sign_in_tries where address = $1', [address])).rowCount, 0)
    }
  })

  test('delays attempts for a name that failed often, known or not, but locks nobody out', async () => {
    const { email } = await withPassword()
    for (const name of [email, 'unknown@example.com']) {
      for (let index = 0; index < 4; index += 1) await signIn(name, 'wrong')
      const before = performance.now()
      const { status } = await signIn(name, PASSWORD)
      assert.ok(performance.now() - before >= 490, name)
      assert.equal(status, name === email ? 200 : 401)
    }
  })

  test('refuses other sites, and bodies that a form can send', async () => {
    const { email } = await withPassword()
    const body = { email, password: PASSWORD }
    const post = (headers: Record<string, string>, text: unknown = body) =>
      call(`${ADMIN}/session`, { method: 'POST', headers, body: text })
    for (const headers of [
      {},
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: 'http://evil.example' },
      { origin: 'null' },
    ]) {
      assert.equal((await post(headers as never)).body.code, 'RCS_CROSS_SITE', JSON.stringify(headers))
    }
    assert.equal((await post({ origin: new URL(ADMIN).origin })).status, 200)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      assert.equal((await post({ ...SAME_SITE, 'content-type': type }, JSON.stringify(body))).status, 415, type)
    }
  })
})

describe('a session', () => {
  test('is useless on every node after sign-out', async () => {
    const { personId } = await withPassword()
    const { ask, cookie } = await sessionOf(personId)
    const { ask: other } = await sessionOf(personId)
    const out = await ask('DELETE', '/session')
    assert.deepEqual([out.status, out.headers.get('set-cookie')], [204, 'herald-local=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict'])
    for (const base of [ADMIN, proxied]) assertError(await call(`${base}/session`, { headers: { cookie } }), 401, 'RCS_UNAUTHORIZED')
    assert.equal((await other('GET', '/session')).status, 200)
  })

  test('can be listed and ended by its person only', async () => {
    const { personId } = await withPassword()
    const [first, second] = [await sessionOf(personId), await sessionOf(personId)]
    const { body } = await first.ask('GET', '/sessions')
    assert.equal(body.items.length, 2)
    const { body: own } = await first.ask('GET', '/session')
    const otherId = body.items.find(({ sessionId }: any) => sessionId !== own.sessionId).sessionId
    const stranger = await sessionOf((await withPassword()).personId)
    assert.equal((await stranger.ask('DELETE', `/sessions/${otherId}`)).body.code, 'RCS_SESSION_NOT_FOUND')
    assert.equal((await first.ask('DELETE', `/sessions/${otherId}`)).status, 204)
    assert.equal((await second.ask('GET', '/session', undefined, from(newAddress()))).status, 401)
    const entries = await pool.query(`select actor_id as actor, subject, before, after from audit_log where action = 'endSession'`)
    const { lastUsedAt: _, ...listed } = body.items.find(({ sessionId }: any) => sessionId === otherId)
    const [{ before: session, ...entry } = assert.fail(), ...others] = entries.rows
    const { lastUsedAt: __, ...before } = session
    assert.deepEqual([entry, before, others], [{ actor: personId, subject: otherId, after: null }, { personId, ...listed }, []])
  })

  test('can be listed and ended by operators who gave the password, with one entry', async () => {
    const { personId } = await newPerson('viewer')
    const theirs = await sessionOf(personId)
    const operator = await withPassword()
    const { ask } = await sessionOf(operator.personId)
    const path = `/people/${personId}/sessions`
    const { body } = await ask('GET', path)
    assert.deepEqual([body.items.length, body.nextCursor], [1, null])
    assert.equal((await ask('GET', '/people/2000000000/sessions')).body.code, 'RCS_NOT_FOUND')
    const [{ sessionId }] = body.items
    await pool.query(`update sessions set confirmed_at = now() - interval '10 minutes 1 ms' where person_id = $1`, [operator.personId])
    assert.equal((await ask('DELETE', `${path}/${sessionId}`)).body.code, 'RCS_PASSWORD_REQUIRED')
    assert.equal((await ask('POST', '/session/confirm', { password: PASSWORD })).status, 204)
    assert.equal((await ask('DELETE', `/people/${operator.personId}/sessions/${sessionId}`)).body.code, 'RCS_SESSION_NOT_FOUND')
    assert.equal((await ask('DELETE', `${path}/${sessionId}`)).status, 204)
    assert.equal((await theirs.ask('GET', '/session', undefined, from(newAddress()))).status, 401)
    assert.equal((await ask('DELETE', `${path}/${sessionId}`)).body.code, 'RCS_SESSION_NOT_FOUND')
    const { rows } = await pool.query(
      `select actor_id as actor, subject, before ->> 'sessionId' as ended, after from audit_log where action = 'endPersonSession'`,
    )
    assert.deepEqual(rows, [{ actor: operator.personId, subject: `${personId} ${sessionId}`, ended: sessionId, after: null }])
  })

  test('changes the password of its person, and ends their other sessions', async () => {
    const { personId, email } = await withPassword()
    const [own, other] = [await sessionOf(personId), await sessionOf(personId)]
    const stranger = await sessionOf((await withPassword()).personId)
    await pool.query('update people set password_account_ids = array[1] where id = $1', [personId])
    const address = newAddress()
    const change = (currentPassword: string, newPassword: string) =>
      own.ask('POST', '/session/password', { currentPassword, newPassword }, from(address))
    const next = 'another horse battery'
    assertError(await change(PASSWORD, 'short'), 400, 'RCS_INVALID_REQUEST', [['/newPassword', 'must have 12 to 256 characters']])
    assertError(await change('wrong', next), 401, 'RCS_UNAUTHORIZED', [['', 'The e-mail address or the password is wrong.']])
    assert.equal((await change(PASSWORD, next)).status, 204)
    assert.deepEqual(
      [
        (await own.ask('GET', '/session')).status,
        (await other.ask('GET', '/session', undefined, from(newAddress()))).status,
        (await stranger.ask('GET', '/session')).status,
      ],
      [200, 401, 200],
    )
    assert.deepEqual([(await signIn(email, PASSWORD)).status, (await signIn(email, next)).status], [401, 200])
    const { rows } = await pool.query(`select subject, before, after from audit_log where action = 'changePassword' and actor_id = $1`, [
      personId,
    ])
    assert.deepEqual(rows, [{ subject: `${personId}`, before: null, after: { password: '(secret)' } }])
    // The admin who made the link may know the earlier password, and have made this change.
    const { rows: people } = await pool.query('select password_account_ids as ids from people where id = $1', [personId])
    assert.deepEqual(people, [{ ids: [1] }])
    await owner.query(`insert into sign_in_tries (address, name_hash, has_failed) select $1, '', true from generate_series(1, 10)`, [
      address,
    ])
    assert.equal((await change(next, PASSWORD)).body.code, 'RCS_RATE_LIMITED')
  })

  // The columns round to milliseconds, so what has ended has ended for one more.
  test('ends after 12 hours without use, after 7 days, and when its person is disabled', async () => {
    const { personId } = await withPassword()
    for (const [column, allowed, ended] of [
      ['last_used_at', '11:59:00', '12:00:00.001'],
      ['created_at', '6 23:59:00', '7 00:00:00.001'],
    ] as const) {
      const { ask } = await sessionOf(personId)
      const age = (interval: string) =>
        pool.query(`update sessions set ${column} = now() - interval '${interval}' where person_id = $1`, [personId])
      await age(allowed)
      assert.equal((await ask('GET', '/session', undefined, from(newAddress()))).status, 200, column)
      await age(ended)
      assert.equal((await ask('GET', '/session', undefined, from(newAddress()))).status, 401, column)
    }
    const { ask } = await sessionOf(personId)
    await changePerson(pool, personId, { isDisabled: true })
    assert.equal((await ask('GET', '/session', undefined, from(newAddress()))).status, 401)
  })

  test('is not renewed by requests that no person caused', async () => {
    const { personId } = await withPassword()
    const { ask } = await sessionOf(personId)
    const age = (interval: string) =>
      pool.query(`update sessions set last_used_at = now() - interval '${interval}' where person_id = $1`, [personId])
    const isRenewed = async () =>
      (await pool.query(`select last_used_at > now() - interval '1 hour' as is from sessions where person_id = $1`, [personId])).rows[0].is
    const background = { ...from(newAddress()), 'x-herald-background': 'true' }
    await age('11:00:00')
    assert.equal((await ask('GET', '/session', undefined, background)).status, 200)
    assert.equal((await ask('GET', '/accounts', undefined, background)).status, 200)
    assert.equal((await ask('GET', '/sign-in-options')).body.isSignedIn, true)
    // Browsers send these without headers of the console.
    assert.equal((await ask('GET', '/stream?cursor=wrong&accountId=2147483647')).body.code, 'RCS_ACCOUNT_NOT_FOUND')
    assert.equal((await ask('GET', '/media?url=wrong')).status, 400)
    assert.equal(await isRenewed(), false)
    await age('12:00:00.001')
    assert.equal((await ask('GET', '/session', undefined, background)).status, 401)
    await age('11:00:00')
    assert.equal((await ask('GET', '/session')).status, 200)
    assert.equal(await isRenewed(), true)
  })

  test('counts as confirmed for ten minutes after the password was given again', async () => {
    const { personId } = await withPassword()
    const { ask } = await sessionOf(personId)
    await pool.query(`update sessions set confirmed_at = now() - interval '10 minutes 1 ms' where person_id = $1`, [personId])
    const change = () => ask('POST', '/people', { email: `new-${personId}@example.com`, name: 'New' })
    assertError(await change(), 403, 'RCS_PASSWORD_REQUIRED')
    assert.equal((await ask('POST', '/session/confirm', { password: 'wrong' })).status, 401)
    assertError(await change(), 403, 'RCS_PASSWORD_REQUIRED')
    assert.equal((await ask('POST', '/session/confirm', { password: PASSWORD })).status, 204)
    assert.equal((await change()).status, 201)
  })
})

test('guesses of a link, of a session and of a token are refused after 30 a minute from an address', async () => {
  const guesses: [string, number, Parameters<typeof call>[1]][] = [
    ['/setup', 410, { method: 'POST', body: { token: 'guess', password: PASSWORD } }],
    ['/session', 401, { headers: { cookie: '__Host-herald=guess' } }],
    ['/people', 401, { authorization: 'Bearer ho_guess' }],
  ]
  for (const [path, status, options] of guesses) {
    const headers = { ...from(newAddress()), ...options?.headers }
    const statuses: number[] = []
    for (let asked = 0; asked < 60 && statuses.length < 31; asked += 1) {
      const response = await call(proxied + path, { ...options, headers })
      // On a busy machine, a statement may take longer than Herald allows. The guess counted only if the response has the limit.
      if (response.status !== 503) statuses.push(response.status)
      else if (response.headers.has('ratelimit')) statuses.push(status)
    }
    assert.deepEqual(statuses, [...Array(30).fill(status), 429], path)
  }
})

test('two passwords are checked at once, 50 wait, and a sign-in beyond them gets 503 and does not count', async () => {
  const check = () => isPassword('nobody@example.com', 'wrong password', undefined)
  let isFull = true
  const fill = async () => {
    while (isFull) await check()
  }
  const checks = Array.from({ length: 52 }, fill)
  await assert.rejects(check(), { code: 'RCS_UNAVAILABLE' })
  const address = newAddress()
  const logged = node.log().length
  const refused = await signIn('nobody@example.com', 'wrong password', address)
  isFull = false
  await Promise.all(checks)
  assertError(refused, 503, 'RCS_UNAVAILABLE', [['', 'Too many passwords are being checked; try again later.']])
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.doesNotMatch(node.log().slice(logged), /the database is out of reach/)
  assert.equal((await pool.query('select from sign_in_tries where address = $1', [address])).rowCount, 0)
  assertError(await signIn('nobody@example.com', 'wrong password', address), 401, 'RCS_UNAUTHORIZED')
})

test('limits public documents per address as in /v1, and reads before a sign-in by a limit of their own', async () => {
  const limited = await startTestService({ ...env, HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '3' }, { roles: ['api'] })
  const statuses = async (path: string, headers: Record<string, string>) => {
    const responses = []
    for (let index = 0; index < 4; index += 1) responses.push(await call(`${limited.url}/admin/v1${path}`, { headers }))
    return responses.map(({ status, headers }) => `${status} ${headers.get('ratelimit-policy')}`)
  }
  const headers = from(newAddress())
  const documents = await statuses('/openapi.json', headers)
  assert.deepEqual(documents, [...Array(3).fill('200 "default";q=3;w=60'), '429 "default";q=3;w=60'])
  assert.deepEqual(await statuses('/sign-in-options', headers), Array(4).fill('200 "sign-in-reads";q=3000;w=60'))
})

test('a HEAD of a public operation is allowed to every site, and does not count as a sign-in', async () => {
  const { email } = await withPassword()
  const address = newAddress()
  const headers = { ...from(address), 'sec-fetch-site': 'cross-site' }
  for (const path of ['/openapi.json', '/sign-in-options'])
    assert.equal((await fetch(proxied + path, { method: 'HEAD', headers })).status, 200, path)
  const { status, headers: received } = await signIn(email, PASSWORD, address)
  assert.deepEqual([status, /r=(\d+)/.exec(received.get('ratelimit') ?? '')?.[1]], [200, '599'])
})

test('a cookie header of 16 kB of spaces is read within 100 ms of CPU time', async () => {
  const request = {
    protocol: 'http',
    ip: '127.0.0.1',
    hostname: 'localhost',
    headers: { cookie: `a=${' '.repeat(16_000)}x; herald-local = no; herald-local= a=b ` },
  }
  assert.equal(sessionSecret(request as FastifyRequest), ' a=b')
  // It takes 0.1 ms; a regular expression took 3 s.
  assert.ok(cpuMs(() => sessionSecret(request as FastifyRequest)) < 100)
})
