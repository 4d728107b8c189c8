import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { handleErrors } from '../../src/http/error-responses.ts'
import { createLogger, logRequest, servedRequest } from '../../src/http/log.ts'
import { refuseUnknownRoutes } from '../../src/http/routes.ts'
import { createServer } from '../../src/http/server.ts'
import { shortCode } from '../../src/links/codes.ts'
import { createLinks, type ShortLink, visitLink } from '../../src/links/links.ts'
import { linkRoutes } from '../../src/links/routes.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'

const { pool } = await createTestDatabase()
const key = randomBytes(32)
let log = ''
const logger = createLogger('trace', {
  write: (line) => {
    log += line
  },
})
const app = createServer(loadConfig({}), logger)
app.addHook('onResponse', async (request, reply) => logRequest(request.log, servedRequest(request, reply)))
handleErrors(app)
refuseUnknownRoutes(app)
let visitor = '192.0.2.1'
// Visits are 20 ms apart, unless a test stops the clock.
let stepMs = 20
let time = 0
function now(): number {
  time += stepMs
  return time
}
await app.register(linkRoutes, { pool, addressOf: () => visitor, now })
const base = await app.listen({ host: '127.0.0.1', port: 0 })
after(() => app.close())

const PHONE_BROWSER =
  'Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36'
const PERSON = { 'User-Agent': PHONE_BROWSER }

async function newLink(fields: Partial<ShortLink> = {}): Promise<ShortLink> {
  const messageId = randomUUID()
  const code = shortCode(key, messageId, fields.copy ?? 0, 0)
  const link = {
    code,
    accountId: 1,
    messageId,
    copy: 0,
    agentId: 'shop',
    recipient: '+48500100200',
    url: 'https://shop.example/a?b=c#d',
    ...fields,
  }
  await createLinks(pool, [link])
  return link
}

type Visit = { status: number | undefined; headers: IncomingHttpHeaders; body: string }

/** Sends these headers and no others, and does not follow the redirect. */
async function visit(path: string, headers: OutgoingHttpHeaders = PERSON, method = 'GET'): Promise<Visit> {
  const outgoing = request(`${base}${path}`, { method, headers })
  const visited = Promise.withResolvers<Visit>()
  outgoing.on('error', visited.reject)
  outgoing.on('response', (response) => {
    text(response).then((body) => visited.resolve({ status: response.statusCode, headers: response.headers, body }), visited.reject)
  })
  outgoing.end()
  return await visited.promise
}

async function stateOf({ code, messageId }: ShortLink) {
  const { rows } = await pool.query('select clicked_at as "clickedAt", previews, url from short_links where code = $1', [code])
  const actions = await pool.query(
    `select account_id as "accountId", agent_id as "agentId", recipient, kind, channel, url, occurred_at as "occurredAt"
     from recipient_actions where message_id = $1`,
    [messageId],
  )
  return { ...rows[0], actions: actions.rows }
}

describe('a short link', () => {
  test('redirects to its target without a referrer', async () => {
    const { code, url } = await newLink()
    const { status, headers, body } = await visit(`/l/${code}`)
    assert.deepEqual([status, headers.location, body], [302, url, ''])
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['x-robots-tag'], 'noindex')
  })

  test('redirects to its target whatever the visitor adds', async () => {
    const { code, url } = await newLink()
    const evil = 'https://evil.example/'
    for (const query of [
      `?url=${evil}`,
      `?location=${evil}&next=${evil}&code=${evil}`,
      '?',
      '?%0d%0aLocation:%20x',
      `?${'x'.repeat(5_000)}`,
    ]) {
      assert.equal((await visit(`/l/${code}${query}`)).headers.location, url, query)
    }
    const forged = { ...PERSON, Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Referer: evil, 'X-Original-URL': evil }
    assert.equal((await visit(`/l/${code}`, forged)).headers.location, url)
  })

  const addresses: [string, string][] = [
    ['https://shop.example/żółć?q=ą b', 'https://shop.example/%C5%BC%C3%B3%C5%82%C4%87?q=%C4%85%20b'],
    ['http://żabka.example', 'http://xn--abka-99a.example/'],
    ['https://shop.example/a%20b?x=%C4%85', 'https://shop.example/a%20b?x=%C4%85'],
    ['https://shop.example/\u{1F600}|^', 'https://shop.example/%F0%9F%98%80%7C%5E'],
    ['https://shop.example/\r\nSet-Cookie: a=b\r\n\r\n<script>', 'https://shop.example/Set-Cookie:%20a=b%3Cscript%3E'],
  ]
  for (const [stored, location] of addresses) {
    test(`encodes its target for a header: ${JSON.stringify(stored)}`, async () => {
      const { headers, status } = await visit(`/l/${(await newLink({ url: stored })).code}`)
      assert.deepEqual([status, headers.location, headers['set-cookie']], [302, location, undefined])
    })
  }

  for (const url of ['javascript:alert(1)', '//evil.example', 'ftp://shop.example', 'https://', 'http://a b/']) {
    test(`is a 404 for an invalid target: ${url}`, async () => {
      const { status, headers } = await visit(`/l/${(await newLink({ url })).code}`)
      assert.deepEqual([status, headers.location], [404, undefined])
    })
  }

  test('stays unchanged when it is created again, concurrently and in any order', async () => {
    const links = await Promise.all(Array.from({ length: 20 }, () => newLink()))
    await visitLink(pool, (links[0] as ShortLink).code, false)
    const before = await Promise.all(links.map(stateOf))
    const changed = links.map((link) => ({ ...link, url: 'https://other.example/' }))
    await Promise.all(Array.from({ length: 20 }, (_, turn) => createLinks(pool, turn % 2 === 0 ? changed : changed.toReversed())))
    assert.deepEqual(await Promise.all(links.map(stateOf)), before)
    await createLinks(pool, [])
  })

  test('is created once by concurrent calls in any order', async () => {
    const links = Array.from({ length: 50 }, (_, index) => {
      const messageId = randomUUID()
      return {
        code: shortCode(key, messageId, 0, index),
        accountId: 1,
        messageId,
        copy: 0,
        agentId: 'shop',
        recipient: '+48500100200',
        url: 'https://a.example',
      }
    })
    await Promise.all(
      Array.from({ length: 8 }, (_, turn) => createLinks(pool, [...links.slice(turn * 5), ...links.slice(0, turn * 5)].reverse())),
    )
    const { rows } = await pool.query('select count(*) from short_links where code = any ($1)', [links.map(({ code }) => code)])
    assert.equal(rows[0].count, links.length)
  })
})

describe('a click', () => {
  test('counts for the first visit of a person only', async () => {
    const link = await newLink()
    const { code, accountId, agentId, recipient, url } = link
    const visits = await Promise.all(Array.from({ length: 20 }, () => visit(`/l/${code}`)))
    assert.deepEqual(new Set(visits.map(({ headers }) => headers.location)), new Set([url]))
    const state = await stateOf(link)
    assert.deepEqual(state, {
      clickedAt: state.actions[0]?.occurredAt,
      previews: 0,
      url,
      actions: [{ accountId, agentId, recipient, kind: 'clicked', channel: 'sms', url, occurredAt: state.clickedAt }],
    })
    await visit(`/l/${code}`)
    assert.deepEqual(await stateOf(link), state)
  })

  test('in an SMS to a test number is no action', async () => {
    const link = await newLink({ copy: 3 })
    assert.equal((await visit(`/l/${link.code}`)).status, 302)
    const { clickedAt, actions } = await stateOf(link)
    assert.ok(clickedAt instanceof Date)
    assert.deepEqual(actions, [])
  })

  const people: [string, string][] = [
    ['Samsung', PHONE_BROWSER],
    [
      'Safari',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1',
    ],
    [
      'Chrome on a Cubot',
      'Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36',
    ],
    ['Firefox', 'Mozilla/5.0 (Android 14; Mobile; rv:125.0) Gecko/125.0 Firefox/125.0'],
    [
      'an app',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/455.0]',
    ],
  ]
  test('counts for every common browser', async () => {
    for (const [name, userAgent] of people) {
      const link = await newLink()
      await visit(`/l/${link.code}`, { 'User-Agent': userAgent, 'Sec-Purpose': '', Purpose: 'other' })
      const { previews, actions } = await stateOf(link)
      assert.deepEqual([previews, actions.length], [0, 1], name)
    }
  })

  const robots: [string, OutgoingHttpHeaders, string?][] = [
    ['no User-Agent', {}],
    ['an empty User-Agent', { 'User-Agent': ' ' }],
    ['HEAD', PERSON, 'HEAD'],
    ['Sec-Purpose', { ...PERSON, 'Sec-Purpose': 'prefetch;prerender' }],
    ['Purpose', { ...PERSON, Purpose: 'prefetch' }],
    ['X-Purpose', { ...PERSON, 'X-Purpose': 'preview' }],
    ['X-Moz', { ...PERSON, 'X-Moz': 'Prefetch' }],
    ['Googlebot', { 'User-Agent': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)' }],
    ['WhatsApp', { 'User-Agent': 'WhatsApp/2.23.20.0' }],
    [
      'Messages on an iPhone',
      {
        'User-Agent':
          'Mozilla/5.0 (Macintosh) AppleWebKit/601.2.4 Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0',
      },
    ],
    ['Slack', { 'User-Agent': 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)' }],
    ['curl', { 'User-Agent': 'curl/8.5.0' }],
  ]
  test('does not count for a robot, which is redirected and counted as a preview', async () => {
    for (const [name, headers, method] of robots) {
      const link = await newLink()
      for (let times = 0; times < 2; times += 1) {
        const { status, headers: received } = await visit(`/l/${link.code}`, headers, method)
        assert.deepEqual([status, received.location], [302, link.url], name)
      }
      assert.deepEqual(await stateOf(link), { clickedAt: null, previews: 2, url: link.url, actions: [] }, name)
      await visit(`/l/${link.code}`)
      const { previews, actions } = await stateOf(link)
      assert.deepEqual([previews, actions.length], [2, 1], name)
    }
  })

  test('is classified fast for any User-Agent', async () => {
    const { code } = await newLink()
    for (const piece of ['a', 'a ', '1.', 'a/1', '.1111111111', 'x/1.0', '@a-', ';a', 'Mozilla/5.0 (']) {
      const before = process.cpuUsage()
      assert.equal((await visit(`/l/${code}`, { 'User-Agent': piece.repeat(12_000 / piece.length) })).status, 302)
      const { user, system } = process.cpuUsage(before)
      assert.ok(user + system < 1_000_000, piece)
    }
  })
})

describe('an unknown short link', () => {
  test('is the same readable 404 page for an unknown and an invalid code', async () => {
    const unknown = await visit(`/l/${shortCode(key, randomUUID(), 0, 0)}`)
    assert.equal(unknown.status, 404)
    assert.equal(unknown.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(unknown.headers['content-security-policy'], "default-src 'none'")
    assert.equal(unknown.headers['cache-control'], 'no-store')
    assert.match(unknown.body, /<h1>This link leads nowhere<\/h1>/)
    assert.doesNotMatch(unknown.body, /<script|style|http/i)
    const { code } = await newLink()
    for (const malformed of [
      code.slice(1),
      `${code}a`,
      `${code}%00`,
      `${code}%0a`,
      `%20${code}`,
      'ą',
      "'%20or%201=1",
      '%',
      '..%2f..',
      '',
    ]) {
      const { status, headers, body } = await visit(`/l/${malformed}`)
      const { date, ...same } = headers
      const { date: _, ...expected } = unknown.headers
      assert.deepEqual({ status, headers: same, body }, { status: 404, headers: expected, body: unknown.body }, malformed)
    }
  })

  test('has the same headers for HEAD, and allows no other method', async () => {
    const { status, headers, body } = await visit('/l/unknown', PERSON, 'HEAD')
    assert.deepEqual([status, headers['content-security-policy'], body], [404, "default-src 'none'", ''])
    const post = await visit('/l/unknown', PERSON, 'POST')
    assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD'])
  })
})

test('limits the unknown codes of an address, and still redirects its known codes', async () => {
  visitor = '192.0.2.7'
  const { code, url } = await newLink()
  const unknown = () => visit(`/l/${shortCode(key, randomUUID(), 0, 0)}`)
  for (let tried = 0; tried < 30; tried += 1) assert.equal((await unknown()).status, 404)
  const refused = await unknown()
  assert.deepEqual([refused.status, refused.headers['content-type']], [429, 'text/html; charset=utf-8'])
  assert.ok(Number(refused.headers['retry-after']) > 0)
  const known = await visit(`/l/${code}`)
  assert.deepEqual([known.status, known.headers.location], [302, url])
  visitor = '192.0.2.8'
  assert.equal((await unknown()).status, 404, 'another address is not affected')
})

test('limits an address to 100 visits in a second', async () => {
  visitor = '192.0.2.9'
  const { code } = await newLink()
  stepMs = 0
  const visits = await Promise.all(Array.from({ length: 150 }, () => visit(`/l/${code}`)))
  stepMs = 20
  assert.equal(visits.filter(({ status }) => status === 302).length, 100)
  assert.equal(visits.filter(({ status }) => status === 429).length, 50)
  visitor = '192.0.2.1'
})

test('logs every visit without its code and its target', async () => {
  const { code } = await newLink({ url: 'https://canary.example/' })
  log = ''
  await visit(`/l/${code}?canary`, { ...PERSON, Referer: 'https://canary.example' })
  await visit(`/l/${code}x`)
  await ownerOf(pool).query(`alter table recipient_actions add constraint no_canary check (recipient <> '+48500100299')`)
  const broken = await newLink({ recipient: '+48500100299', url: 'https://canary.example/' })
  assert.equal((await visit(`/l/${broken.code}`)).status, 500)
  assert.equal(log.match(/"route":"\/l\/:code"/g)?.length, 3)
  for (const secret of [code, broken.code, 'canary.example', '?canary', '48500100299']) assert.ok(!log.includes(secret), secret)
})
