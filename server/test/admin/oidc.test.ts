import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import { type Executor, transaction } from '../../src/db/pool.ts'
import { type Flow, newFlow } from '../../src/oidc/flow.ts'
import { createLink, redeemLink } from '../../src/people/links.ts'
import { recognizePerson } from '../../src/people/oidc.ts'
import { changePerson, createPerson, findPerson, setRole } from '../../src/people/people.ts'
import { confirmByProvider } from '../../src/people/sessions.ts'
import { whileOthersCommit } from '../delivery/locks.ts'
import { openBrowser, type Page } from '../support/browser.ts'
import { createTestDatabase } from '../support/database.ts'
import { CLIENT, startProvider } from '../support/openid.ts'
import { call, startTestService } from '../support/service.ts'

const { pool, url: HERALD_DATABASE_URL } = await createTestDatabase()
const shop = await createAccount(pool, 'Shop', MODULES)
const cafe = await createAccount(pool, 'Café', MODULES)
const provider = await startProvider()
const oidc = {
  HERALD_OIDC_ISSUER: provider.issuer,
  HERALD_OIDC_CLIENT_ID: CLIENT.id,
  HERALD_OIDC_CLIENT_SECRET: CLIENT.secret,
  HERALD_OIDC_SCOPES: 'openid email profile groups',
  HERALD_OIDC_ROLES: `ops=operator,shop-admins=admin:${shop.accountId},readers=viewer:${shop.accountId},cafe=viewer:${cafe.accountId},ghosts=admin:9999`,
}
const herald = await startTestService({ HERALD_DATABASE_URL, ...oidc, HERALD_TRUST_PROXY: '127.0.0.1' }, { roles: ['api'] })
const api = `${herald.url}/admin/v1`

let people = 0
/** A new person at the provider. */
function enrol(groups: string[], other: object = {}) {
  people += 1
  const sub = `person${people}`
  const account = { email: `${sub}@example.com`, email_verified: true, name: `Person ${people}`, groups, ...other }
  provider.accounts[sub] = account
  return { sub, account, email: account.email }
}

type Browser = ReturnType<typeof openBrowser>
const signIn = (browser: Browser) => browser.open(`${api}/oidc/start`)
const upToCallback = async (browser: Browser, path = 'start') => (await browser.open(`${api}/oidc/${path}`, /\/oidc\/callback/)).url
/** Comes back from the provider. */
const comeBack = (browser: Browser, callback: string) => browser.open(callback, undefined, provider.issuer)

async function sessionOf(browser: Browser) {
  const { status, text } = await browser.request(`${api}/session`, { accept: 'application/json' })
  return status === 200 ? JSON.parse(text) : undefined
}

function assertSignedIn({ status, url, text }: Page) {
  assert.deepEqual([status, url], [302, `${herald.url}/console`], text)
}

async function assertRefused(page: Page, browser: Browser, reason: RegExp, status = 403) {
  assert.equal(page.status, status, page.text)
  assert.match(page.text, reason)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.equal(await sessionOf(browser), undefined)
}

const entriesOf = async (personId: number) =>
  (await pool.query(`select * from audit_log where actor_id = $1 order by id`, [personId])).rows as Record<string, any>[]

type Lose = (tx: Executor) => Promise<unknown>

describe('Herald without its OpenID provider', () => {
  test('starts, and refuses sign-ins with 503 until the provider is there', async () => {
    const browser = openBrowser('person1')
    await assertRefused(await signIn(browser), browser, /OpenID provider .* does not respond as it should/, 503)
    const asProgram = await browser.request(`${api}/oidc/start`, { accept: 'application/json' })
    assert.deepEqual([asProgram.status, JSON.parse(asProgram.text).code], [503, 'RCS_UNAVAILABLE'])
    assert.match(herald.log(), /"reason":"the metadata of the OpenID provider: [^"]+".*the OpenID provider is not available/)
  })
})

describe('a sign-in with the OpenID provider', () => {
  before(() => provider.register(herald.url))

  test('creates the person with the roles of the claims, and opens a session', async () => {
    const { sub, email } = enrol(['shop-admins', 'cafe', 'readers', 'other', 'ghosts'])
    const browser = openBrowser(sub)
    const page = await signIn(browser)
    assertSignedIn(page)
    const [cookie] = page.headers.getSetCookie().filter((each) => each.startsWith('herald-local='))
    assert.match(String(cookie), /^herald-local=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    assert.deepEqual(browser.cookies(herald.url), ['herald-local'], 'the cookie of the flow is gone')
    const session = await sessionOf(browser)
    const roles = [
      { accountId: shop.accountId, role: 'admin' },
      { accountId: cafe.accountId, role: 'viewer' },
    ]
    const { personId, isOperator, hasPassword, isConfirmed, name } = session
    assert.deepEqual([session.email, session.roles, isOperator, hasPassword, isConfirmed], [email, roles, false, false, false])
    const [entry, ...rest] = await entriesOf(personId)
    assert.deepEqual(rest, [])
    assert.deepEqual(
      [entry?.action, entry?.actor_name, entry?.address, entry?.subject],
      ['signInWithOidc', email, browser.address, `${personId}`],
    )
    assert.deepEqual([entry?.before, entry?.after.roles, entry?.after.subject, name], [null, roles, sub, 'Person 1'])
    assert.match(herald.log(), /"accountId":9999.*names an account that does not exist/)
  })

  test('finds the person by the subject the second time, even if name and address have changed, and leaves no entry', async () => {
    const { sub, account, email } = enrol(['readers'])
    assertSignedIn(await signIn(openBrowser(sub)))
    Object.assign(account, { email: 'other@example.com', email_verified: false })
    const browser = openBrowser(sub)
    assertSignedIn(await signIn(browser))
    const session = await sessionOf(browser)
    assert.equal(session.email, email)
    assert.equal((await entriesOf(session.personId)).length, 1)
  })

  test('sets the roles to those of changed groups, for earlier sessions too, and records it', async () => {
    const { sub, account } = enrol(['shop-admins'])
    const [first, second] = [openBrowser(sub), openBrowser(sub)]
    assertSignedIn(await signIn(first))
    account.groups = ['cafe']
    assertSignedIn(await signIn(second))
    const { roles, personId } = await sessionOf(first)
    assert.deepEqual(roles, [{ accountId: cafe.accountId, role: 'viewer' }])
    const entry = (await entriesOf(personId))[1]
    assert.deepEqual([entry?.before.roles.length, entry?.after.roles], [1, roles])
    account.groups = []
    const third = openBrowser(sub)
    await assertRefused(await signIn(third), third, /None of the groups .* has a role in Herald/)
    assert.deepEqual((await sessionOf(first)).roles, [], 'a person without a group has no role left')
    assert.equal((await entriesOf(personId)).length, 3)
  })

  test('links an existing person by the verified address', async () => {
    const { sub, email } = enrol(['readers'])
    const { personId } = await createPerson(pool, { email: email.toUpperCase(), name: 'Known' })
    await setRole(pool, personId, cafe.accountId, 'admin')
    const browser = openBrowser(sub)
    assertSignedIn(await signIn(browser))
    const session = await sessionOf(browser)
    assert.deepEqual([session.personId, session.roles], [personId, [{ accountId: shop.accountId, role: 'viewer' }]])
    assert.deepEqual(
      (await entriesOf(personId)).map(({ before: known }) => known.name),
      ['Known'],
    )
  })

  test('creates one person if the same new person signs in twice at once', async () => {
    const { sub, email } = enrol(['readers'])
    const pages = await Promise.all([1, 2, 3, 4].map(() => signIn(openBrowser(sub))))
    for (const page of pages) assertSignedIn(page)
    assert.equal((await entriesOf((await findPerson(pool, { email })).personId)).length, 1)
  })

  test('refuses and changes nothing without a role, a verified address, or if the address is that of another person', async () => {
    const { email: taken } = enrol(['readers'])
    assertSignedIn(await signIn(openBrowser(`person${people}`)))
    const refused: [object, RegExp][] = [
      [{ groups: [] }, /None of the groups/],
      [{ groups: ['ghosts'] }, /None of the groups/],
      [{ groups: { ops: true } }, /None of the groups/],
      [{ email_verified: false }, /e-mail address is verified/],
      [{ email_verified: 'true' }, /e-mail address is verified/],
      [{ email: undefined }, /e-mail address is verified/],
      [{ email: 'nobody' }, /e-mail address is verified/],
      [{ email: taken }, /belongs to another person/],
    ]
    const count = async () =>
      (await pool.query(`select (select count(*) from people) as people, (select count(*) from audit_log) as entries`)).rows
    const earlier = await count()
    for (const [claims, reason] of refused) {
      const browser = openBrowser(enrol(['readers'], claims).sub)
      await assertRefused(await signIn(browser), browser, reason)
    }
    assert.deepEqual(await count(), earlier)
  })

  test('refuses a disabled person, also under another address; a person who is enabled again is linked by the address', async () => {
    const { sub, account, email } = enrol(['readers'])
    const browser = openBrowser(sub)
    assertSignedIn(await signIn(browser))
    const { personId } = await sessionOf(browser)
    await changePerson(pool, personId, { isDisabled: true })
    await assertRefused(await signIn(browser), browser, /is disabled in Herald/)
    account.email = 'moved@example.com'
    await assertRefused(await signIn(browser), browser, /is disabled in Herald/)
    await changePerson(pool, personId, { isDisabled: false })
    const { sub: successor } = enrol(['readers'], { email })
    const other = openBrowser(successor)
    assertSignedIn(await signIn(other))
    assert.equal((await sessionOf(other)).personId, personId)
  })

  test('keeps the last operator, and takes the role from any other', async () => {
    const [first, second] = [enrol(['ops']), enrol(['ops'])]
    const [one, two] = [openBrowser(first.sub), openBrowser(second.sub)]
    assertSignedIn(await signIn(one))
    assertSignedIn(await signIn(two))
    first.account.groups = second.account.groups = ['readers']
    assertSignedIn(await signIn(one))
    assertSignedIn(await signIn(two))
    assert.deepEqual([(await sessionOf(one)).isOperator, (await sessionOf(two)).isOperator], [false, true])
    assert.match(herald.log(), /kept the last operator/)
    const { personId } = await sessionOf(two)
    second.account.groups = []
    const again = openBrowser(second.sub)
    await assertRefused(await signIn(again), again, /None of the groups/)
    assert.equal((await findPerson(pool, { personId })).isOperator, true)
  })

  test('keeps one of two operators who lose the role at once', async () => {
    await pool.query('update people set is_operator = false')
    const two = [enrol(['ops']), enrol(['ops'])]
    for (const { sub } of two) assertSignedIn(await signIn(openBrowser(sub)))
    const identity = { issuer: provider.issuer, email: undefined, name: '', isOperator: false, roles: [] }
    const [first, second] = two.map(
      ({ sub: subject }) =>
        (tx: Executor) =>
          recognizePerson(tx, { ...identity, subject }),
    ) as [Lose, Lose]
    await whileOthersCommit(pool, first, () => transaction(pool, second))
    assert.equal((await pool.query('select from people where is_operator')).rowCount, 1)
  })

  test('ends the password of a person that an admin may know, if the person gets rights beyond the account', async () => {
    for (const [group, isKept] of [
      ['readers', true],
      ['cafe', false],
      ['ops', false],
    ] as const) {
      const { sub, email } = enrol([group])
      const { personId } = await createPerson(pool, { email, name: 'Invited' })
      await setRole(pool, personId, shop.accountId, 'viewer')
      const { token } = await createLink(pool, personId, [shop.accountId])
      await redeemLink(pool, { secret: token, password: 'known to the admin' })
      const browser = openBrowser(sub)
      assertSignedIn(await signIn(browser))
      assert.equal((await sessionOf(browser)).hasPassword, isKept, group)
    }
  })

  test('works in several tabs at once, and forgets the oldest of many', async () => {
    const browser = openBrowser(enrol(['readers']).sub)
    const callbacks: string[] = []
    for (let tab = 0; tab < 7; tab += 1) callbacks.push(await upToCallback(browser))
    assert.equal(browser.cookies(herald.url).length, 5)
    await assertRefused(await comeBack(browser, callbacks[0] as string), browser, /has not begun this sign-in/)
    for (const callback of callbacks.slice(2)) assertSignedIn(await comeBack(browser, callback))
    assert.deepEqual(browser.cookies(herald.url), ['herald-local'])
  })

  test('can be repeated after a sign-out, which ends the session', async () => {
    const browser = openBrowser(enrol(['readers']).sub)
    assertSignedIn(await signIn(browser))
    const stolen = browser.jar(herald.url).get('herald-local')?.value
    const { status } = await browser.request(`${api}/session`, { method: 'DELETE' })
    assert.deepEqual([status, browser.cookies(herald.url)], [204, []])
    browser.jar(herald.url).set('herald-local', { value: String(stolen), isStrict: true })
    assert.equal(await sessionOf(browser), undefined)
    assertSignedIn(await signIn(browser))
    assert.ok(await sessionOf(browser))
  })
})

describe('the way back from the OpenID provider', () => {
  /** How a callback is changed on its way, and who opens it. */
  const forged: Record<string, (callback: URL) => void> = {
    'with another state': (url) => url.searchParams.set('state', 'A'.repeat(43)),
    'with a state that differs at its end': (url) => url.searchParams.set('state', `${url.searchParams.get('state')?.slice(0, -2)}__`),
    'without a state': (url) => url.searchParams.delete('state'),
    'with two states': (url) => url.searchParams.append('state', 'x'),
    'without a code': (url) => url.searchParams.delete('code'),
    'with another code': (url) => url.searchParams.set('code', 'x'),
    'of another issuer': (url) => url.searchParams.set('iss', 'https://evil.example'),
    'with an error': (url) => url.searchParams.set('error', '<b>denied'),
  }
  for (const [name, forge] of Object.entries(forged)) {
    test(`is refused ${name}`, async () => {
      const browser = openBrowser(enrol(['readers']).sub)
      const callback = new URL(await upToCallback(browser))
      forge(callback)
      const page = await comeBack(browser, callback.href)
      await assertRefused(page, browser, /The sign-in failed/, page.status === 400 ? 400 : 403)
      assert.doesNotMatch(page.text, /<b>/)
    })
  }

  test('is refused in another browser, with the code of another flow, and a second time', async () => {
    const [mine, theirs] = [openBrowser(enrol(['readers']).sub), openBrowser(enrol(['readers']).sub)]
    const callback = await upToCallback(mine)
    await assertRefused(await comeBack(theirs, callback), theirs, /has not begun this sign-in/)
    const mixed = new URL(await upToCallback(theirs))
    mixed.searchParams.set('code', new URL(callback).searchParams.get('code') as string)
    await assertRefused(await comeBack(theirs, mixed.href), theirs, /the code is not valid/)

    const [browser, again] = [openBrowser(enrol(['readers']).sub), openBrowser()]
    const once = await upToCallback(browser)
    const kept = [...browser.jar(herald.url)]
    assertSignedIn(await comeBack(browser, once))
    for (const [cookie, value] of kept) again.jar(herald.url).set(cookie, value)
    await assertRefused(await comeBack(again, once), again, /the code is not valid/)
    await assertRefused(await comeBack(again, once), again, /has not begun this sign-in/)
  })

  test('is refused above 600 a minute from an address, without a request to the provider; requests without a flow do not count', async () => {
    const visitor = openBrowser()
    const comeBackWith = async (flow: Flow, hasCookie: boolean) => {
      if (hasCookie) visitor.jar(herald.url).set(`herald-local-oidc-${flow.state.slice(0, 16)}`, { value: flow.secret, isStrict: false })
      return await visitor.request(`${api}/oidc/callback?state=${flow.state}&code=x&iss=${provider.issuer}`)
    }
    let asked = 0
    provider.intercept((request) => {
      if (request.url === '/token') asked += 1
      return false
    })
    await comeBackWith(newFlow(), false)
    assert.equal(asked, 0)
    for (let index = 0; index < 600; index += 1) await assertRefused(await comeBackWith(newFlow(), true), visitor, /the code is not valid/)
    const page = await comeBackWith(newFlow(), true)
    provider.intercept(undefined)
    await assertRefused(page, visitor, /At most 600 requests in 60 s; try again in \d+ s\./, 429)
    assert.match(page.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(asked, 600)
    assert.equal(visitor.cookies(herald.url).length, 1, 'the flow can be completed later')
  })

  test('is refused if the person cancels at the provider', async () => {
    const browser = openBrowser()
    await assertRefused(await signIn(browser), browser, /the provider responded with access_denied/)
  })

  test('is refused with the token of another flow, or one that was changed on the way', async () => {
    const { sub } = enrol(['readers'])
    provider.intercept((request) => {
      request.url = request.url?.replace(/nonce=[^&]+/, 'nonce=another')
      return false
    })
    const browser = openBrowser(sub)
    await assertRefused(await signIn(browser), browser, /response of the provider is not valid: .*nonce/)
    const { sub: victim } = enrol(['ops'])
    provider.intercept((request, response) => {
      if (request.url === '/token') asSubject(response, victim)
      return false
    })
    await assertRefused(await signIn(browser), browser, /response of the provider is not valid: .*signature/)
    provider.intercept(undefined)
    assertSignedIn(await signIn(browser))
  })

  const faults: [string, Parameters<typeof provider.intercept>[0]][] = [
    ['closes the connection', (request) => request.url === '/token' && request.socket.destroy() !== undefined],
    ['never responds', (request) => request.url === '/token'],
    ['sends without end', (request, response) => request.url === '/token' && pour(response)],
    ['fails', (request, response) => request.url === '/token' && response.writeHead(500).end() !== undefined],
    ['refuses the client', (request, response) => request.url === '/token' && refuse(response)],
    [
      'redirects elsewhere',
      (request, response) => request.url === '/token' && response.writeHead(307, { location: '/' }).end() !== undefined,
    ],
  ]
  for (const [name, fault] of faults) {
    test(`is a 503 if the provider ${name}, and works when it is back`, async () => {
      const { sub } = enrol(['readers'])
      const browser = openBrowser(sub)
      const callback = await upToCallback(browser)
      provider.intercept(fault)
      const [page, alive] = await Promise.all([comeBack(browser, callback), fetch(`${herald.url}/healthz`)])
      provider.intercept(undefined)
      await assertRefused(page, browser, /The sign-in failed/, 503)
      assert.equal(alive.status, 200)
      assertSignedIn(await signIn(browser))
    })
  }
})

describe('a step that needs the password again', () => {
  const link = async (browser: Browser, personId: number) =>
    (await browser.request(`${api}/people/${personId}/link`, { method: 'POST', accept: 'application/json' })).status
  const forget = (personId: number) =>
    pool.query(`update sessions set confirmed_at = now() - interval '11 minutes' where person_id = $1`, [personId])

  test('is allowed after the person has signed in at the provider again', async () => {
    const browser = openBrowser(enrol(['ops']).sub)
    assertSignedIn(await signIn(browser))
    const { personId, sessionId } = await sessionOf(browser)
    assert.equal(await link(browser, personId), 403, 'the provider does not say when it asked')
    const prompts = provider.prompts()
    assertSignedIn(await browser.open(`${api}/oidc/confirm`))
    assert.equal(provider.prompts(), prompts + 1)
    assert.equal(await link(browser, personId), 201)
    assert.equal((await sessionOf(browser)).sessionId, sessionId, 'no other session was opened')
    await forget(personId)
    assert.equal(await link(browser, personId), 403)
  })

  test('is refused after a sign-in for which the provider did not ask for the password', async () => {
    const { sub } = enrol(['ops'])
    const browser = openBrowser(sub)
    assertSignedIn(await signIn(browser))
    const { personId } = await sessionOf(browser)
    await forget(personId)
    // As a provider that does not know max_age does.
    provider.intercept((request) => {
      request.url = request.url?.replace(/&(prompt|max_age)=[^&]*/g, '')
      return false
    })
    const confirmed = await browser.open(`${api}/oidc/confirm`)
    provider.intercept(undefined)
    assert.match(confirmed.text, /has not asked for your password again/)
    assertSignedIn(await signIn(browser))
    const { isConfirmed, sessionId } = await sessionOf(browser)
    assert.deepEqual([isConfirmed, await link(browser, personId)], [false, 403])
    const confirmedBefore = (minutes: number) => confirmByProvider(pool, sessionId, personId, new Date(Date.now() - minutes * 60_000))
    assert.deepEqual([await confirmedBefore(11), await confirmedBefore(9), await confirmedBefore(11)], [false, true, false])
    assert.equal((await sessionOf(browser)).isConfirmed, true, 'an older time takes nothing away')
  })

  test('is refused if somebody else signs in at the provider, or the session has ended', async () => {
    const [mine, other] = [enrol(['ops']), enrol(['ops'])]
    const browser = openBrowser(mine.sub)
    assertSignedIn(await signIn(browser))
    const { personId } = await sessionOf(browser)
    await forget(personId)
    const stranger = openBrowser(other.sub)
    for (const [name, cookie] of browser.jar(herald.url)) stranger.jar(herald.url).set(name, cookie)
    assert.match((await stranger.open(`${api}/oidc/confirm`)).text, /Your session has ended, or is not that of/)
    assert.equal(await link(browser, personId), 403)
    const callback = await upToCallback(browser, 'confirm')
    await browser.request(`${api}/session`, { method: 'DELETE' })
    await assertRefused(await comeBack(browser, callback), browser, /Your session has ended/)
    assert.equal((await browser.open(`${api}/oidc/confirm`)).status, 401)
  })
})

describe('the settings of single sign-on', () => {
  test('offer only passwords if they are unset', async () => {
    const { url } = await startTestService({ HERALD_DATABASE_URL }, { roles: ['api'] })
    const methodsOf = async (base: string) => (await call(`${base}/admin/v1/sign-in-options`)).body.methods
    assert.deepEqual(await methodsOf(url), ['password'])
    assert.deepEqual(await methodsOf(herald.url), ['password', 'oidc'])
    for (const path of ['start', 'callback?state=x&code=y']) assert.equal((await fetch(`${url}/admin/v1/oidc/${path}`)).status, 404, path)
  })

  test('take the secret from a file, claims from the token, and the client authentication that the provider has', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'herald-oidc-')), 'secret')
    after(() => rmSync(dirname(file), { recursive: true }))
    writeFileSync(file, `${CLIENT.secret}\n`, { mode: 0o644 })
    const other = await startProvider({ claimsInToken: true, method: 'client_secret_basic' })
    other.accounts.somebody = { email: 'somebody@example.com', email_verified: true, groups: ['cn=ops,dc=example'] }
    const { url, log } = await startTestService(
      {
        HERALD_DATABASE_URL,
        ...oidc,
        HERALD_OIDC_ISSUER: other.issuer,
        HERALD_OIDC_CLIENT_SECRET: '',
        HERALD_OIDC_CLIENT_SECRET_FILE: file,
        HERALD_OIDC_ROLES: 'cn=ops%2Cdc=example=operator',
        HERALD_TRUST_PROXY: '127.0.0.1',
      },
      { roles: ['api'] },
    )
    other.register(url)
    const browser = openBrowser('somebody')
    const page = await browser.open(`${url}/admin/v1/oidc/start`)
    assert.equal(page.url, `${url}/console`, page.text)
    assert.match(log(), /a file with secrets is readable by other users/)
    const { isOperator } = JSON.parse((await browser.request(`${url}/admin/v1/session`)).text)
    assert.equal(isOperator, true)
  })

  test('take an address only from the source that says that it is verified', async () => {
    const other = await startProvider({ claimsInToken: true })
    const settings = { HERALD_DATABASE_URL, ...oidc, HERALD_OIDC_ISSUER: other.issuer, HERALD_TRUST_PROXY: '127.0.0.1' }
    const { url } = await startTestService(settings, { roles: ['api'] })
    other.register(url)
    other.accounts.stranger = { email: 'claimed@example.com' } as never
    const claims = { sub: 'stranger', email: 'verified@example.com', email_verified: true, groups: ['readers'] }
    const respond = (response: ServerResponse) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(claims))
    other.intercept((request, response) => request.url === '/me' && respond(response) !== undefined)
    const browser = openBrowser('stranger')
    await browser.open(`${url}/admin/v1/oidc/start`)
    assert.equal(JSON.parse((await browser.request(`${url}/admin/v1/session`)).text).email, 'verified@example.com')
  })

  test('send nobody over plain HTTP from another machine', async () => {
    const { url } = await startTestService({ HERALD_DATABASE_URL, ...oidc, HERALD_TRUST_PROXY: '127.0.0.1' }, { roles: ['api'] })
    const start = (headers: Record<string, string>) => fetch(`${url}/admin/v1/oidc/start`, { headers, redirect: 'manual' })
    assert.equal((await start({ 'x-forwarded-for': '192.0.2.1' })).status, 403)
    const secure = await start({ 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'https' })
    assert.match(
      secure.headers.getSetCookie()[0] ?? '',
      /^__Host-herald-oidc-[\w-]{16}=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
  })
})

test('the log never has the client secret', () => assert.doesNotMatch(herald.log(), /CANARY/))

/** Changes the subject of the token in a response. */
function asSubject(response: ServerResponse, sub: string): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse
  response.end = ((body: string) => {
    const tokens = JSON.parse(body)
    const [header, payload, signature] = tokens.id_token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const changed = Buffer.from(JSON.stringify({ ...claims, sub })).toString('base64url')
    response.removeHeader('content-length')
    return end(JSON.stringify({ ...tokens, id_token: [header, changed, signature].join('.') }))
  }) as never
}

function pour(response: ServerResponse): true {
  response.setHeader('content-type', 'application/json')
  const timer = setInterval(() => response.write(' '.repeat(65_536)), 1)
  response.once('close', () => clearInterval(timer))
  return true
}

function refuse(response: ServerResponse): true {
  response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'invalid_client' }))
  return true
}
