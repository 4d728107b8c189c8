import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { ApiError } from '../../src/errors.ts'
import { fetchImage, MAX_IMAGE_BYTES } from '../../src/media/fetch-image.ts'
import { createSlots } from '../../src/media/slots.ts'
import { createToken } from '../../src/people/tokens.ts'
import type { WebhookHosts } from '../../src/public-host.ts'
import { createConnector } from '../../src/webhooks/address.ts'
import { assertError, call, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { ADMIN, env, newPerson, pool, SAME_SITE, sessionOf } from './shared.ts'

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const FILES: Record<string, Buffer> = {
  'image/png': PNG,
  'image/jpeg': Buffer.from('ffd8ffe000104a464946', 'hex'),
  'image/gif': Buffer.from('GIF89a…'),
  'image/webp': Buffer.from('RIFF\x10\0\0\0WEBPVP8L'),
}

/** A host of files. It counts its requests. */
async function serve(listener: RequestListener) {
  const requests: { path: string; headers: Record<string, unknown> }[] = []
  const server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers })
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** `/type/TYPE` is a file of this type; `/to?URL` redirects; `/STATUS` has this status. */
const host = await serve((request, response) => {
  const [, kind = '', type = ''] = /^\/([^/?]*)[/?]?(.*)$/.exec(request.url ?? '') ?? []
  if (kind === 'type') response.writeHead(200, { 'content-type': `${type}; charset=binary` }).end(FILES[type] ?? '<svg/>')
  else if (kind === 'to') response.writeHead(302, { location: decodeURIComponent(type) }).end()
  else if (kind === 'silent') response.writeHead(200, { 'content-type': 'image/png' }).write(PNG)
  else if (kind === 'cut') response.writeHead(200, { 'content-length': '99' }).write(PNG, () => response.destroy())
  else if (kind === 'size')
    response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.concat([PNG, Buffer.alloc(Number(type) - PNG.length)]))
  else if (kind === 'lie') response.writeHead(200, { 'content-type': 'image/png' }).end(FILES[type] ?? '<script>')
  else response.writeHead(Number(kind), { 'content-type': 'image/png' }).end(PNG)
})
const to = (url: string) => `${host.url}/to?${encodeURIComponent(url)}`

const { accountId } = await createAccount(pool, 'Media', ['rcs'])
const viewer = await sessionOf((await newPerson('viewer', [accountId])).personId)
const mediaPath = (url: string) => `/media?url=${encodeURIComponent(url)}`

// The host of the tests is on this machine.
const open = await startTestService({ ...env, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }, { roles: ['api'] })
const OPEN = `${open.url}/admin/v1`
const get = ({ cookie }: { cookie: string }, path: string, api = OPEN) => call(api + path, { headers: { cookie } })

for (const [type, bytes] of Object.entries(FILES)) {
  test(`an ${type} is returned with headers that let a browser take it only for an image`, async () => {
    const response = await fetch(OPEN + mediaPath(`${host.url}/type/${type}#part`), { headers: { cookie: viewer.cookie } })
    assert.equal(response.status, 200)
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes)
    const header = (name: string) => response.headers.get(name)
    assert.deepEqual(['content-type', 'content-length', 'x-content-type-options', 'content-security-policy', 'cache-control'].map(header), [
      type,
      String(bytes.length),
      'nosniff',
      "default-src 'none'; sandbox",
      'private, max-age=300',
    ])
  })
}

test('the host learns nothing about the person, and gets no credentials', async () => {
  await get(viewer, mediaPath(`${host.url}/type/image/png?who`))
  const { headers } = host.requests.findLast(({ path }) => path === '/type/image/png?who') ?? assert.fail('no request')
  assert.deepEqual(new Set(Object.keys(headers)), new Set(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']))
})

test('a token may fetch images; a person without a role and an anonymous request may not', async () => {
  const { secret } = await createToken(pool, {
    name: 'images',
    role: 'viewer',
    accountIds: [accountId],
    expiresAt: new Date(Date.now() + 60_000),
  })
  const path = OPEN + mediaPath(`${host.url}/type/image/png`)
  assert.equal((await call(path, { authorization: `Bearer ${secret}` })).status, 200)
  const nobody = await sessionOf((await newPerson(undefined)).personId)
  assert.deepEqual((await get(nobody, mediaPath(host.url))).body.code, 'RCS_ROLE')
  assert.equal((await call(path, { headers: SAME_SITE })).body.code, 'RCS_UNAUTHORIZED')
})

const CLOSED = 'http://127.0.0.1:1/'
const TYPES = 'image/png, image/jpeg, image/gif, image/webp'
const LOOPBACK =
  'The URL must have a host of the public internet, unlike localhost; for development, HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it.'
const REFUSED: [what: string, url: string, status: number, code: string, reason: string | RegExp][] = [
  ['a missing file', `${host.url}/404`, 422, 'STATUS', 'The host responds with status 404 instead of 200.'],
  ['a partial file', `${host.url}/206`, 422, 'STATUS', 'The host responds with status 206 instead of 200.'],
  ['SVG', `${host.url}/type/image/svg+xml`, 422, 'NOT_IMAGE', `The file is image/svg+xml by its Content-Type; only ${TYPES} are shown.`],
  ['a page', `${host.url}/type/text/html`, 422, 'NOT_IMAGE', `The file is text/html by its Content-Type; only ${TYPES} are shown.`],
  [
    'a page that says it is an image',
    `${host.url}/lie/x`,
    422,
    'NOT_IMAGE',
    'The file is image/png by its Content-Type, but no image by its first bytes.',
  ],
  [
    'a JPEG that says it is PNG',
    `${host.url}/lie/image/jpeg`,
    422,
    'NOT_IMAGE',
    'The file is image/png by its Content-Type, but image/jpeg by its first bytes.',
  ],
  ['a file of one byte too many', `${host.url}/size/${MAX_IMAGE_BYTES + 1}`, 422, 'TOO_LARGE', 'The file is over 5 MiB.'],
  [
    'a file that is cut off',
    `${host.url}/cut`,
    422,
    'UNREACHABLE',
    "The file can't be fetched: the connection was closed before a response.",
  ],
  ['a closed port', CLOSED, 422, 'UNREACHABLE', "The file can't be fetched: the connection was refused."],
  [
    'a redirect without an end',
    to(`${host.url}/to?${encodeURIComponent(to(to(to(to(host.url)))))}`),
    422,
    'UNREACHABLE',
    'The URL redirects more than 3 times.',
  ],
  ['a text that is no URL', 'picture', 400, 'URL_REFUSED', 'The URL must be a URL, such as https://example.com/a.jpg.'],
  ['another scheme', 'file:///etc/passwd', 400, 'URL_REFUSED', /^The URL must begin with https:/],
  ['plain HTTP off this machine', 'http://example.com/a.png', 400, 'URL_REFUSED', 'The URL must begin with https://.'],
  ['this machine', `http://localhost:${new URL(host.url).port}/`, 400, 'URL_REFUSED', LOOPBACK],
  ['a private address', 'https://10.0.0.1/', 400, 'URL_REFUSED', /must have a host of the public internet, unlike 10\.0\.0\.1/],
  ['a metadata service', 'https://[::ffff:169.254.169.254]/', 400, 'URL_REFUSED', /must have a host of the public internet/],
  [
    'a redirect to another scheme',
    to('file:///etc/passwd'),
    400,
    'URL_REFUSED',
    /^The URL redirects to another one, which must begin with/,
  ],
]
for (const [what, url, status, code, reason] of REFUSED) {
  test(`${what} is refused with ${code}`, async () => {
    // A service as it is in a trial, except for the host of the tests and a redirect.
    const api = url.startsWith(host.url) || url === CLOSED ? OPEN : ADMIN
    const response = await get(viewer, mediaPath(url), api)
    const given: string = response.body.details?.[0].reason
    if (typeof reason !== 'string') assert.match(given, reason)
    assertError(response, status, `RCS_MEDIA_${code}`, [['/url', typeof reason === 'string' ? reason : given]])
  })
}

test('a file of exactly 5 MiB, and one behind three redirects, is returned', async () => {
  const response = await fetch(OPEN + mediaPath(`${host.url}/size/${MAX_IMAGE_BYTES}`), { headers: { cookie: viewer.cookie } })
  assert.equal((await response.arrayBuffer()).byteLength, MAX_IMAGE_BYTES)
  assert.equal((await get(viewer, mediaPath(to(to(to('/type/image/png')))))).status, 200)
})

/** The code and the reason of the refusal. */
async function refusalOf(url: string, options: { hosts: WebhookHosts; addresses?: string[][]; timeoutMs?: number }): Promise<string[]> {
  const { hosts, addresses = [['127.0.0.1']], timeoutMs = 60_000 } = options
  let lookups = 0
  const lookup = async () => (addresses[Math.min(lookups++, addresses.length - 1)] ?? []).map((address) => ({ address, family: 4 }))
  const error = await fetchImage(url, { hosts, connector: createConnector({ hosts, lookup }), timeoutMs }).then(
    () => assert.fail('it was fetched'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ApiError, String(error))
  return [error.code, error.details?.[0]?.reason ?? '']
}

test('a public name that resolves to a private address is never connected to, at the first look-up or a later one', async () => {
  const before = host.requests.length
  const { port } = new URL(host.url)
  const refused = ['RCS_MEDIA_URL_REFUSED', "The file can't be fetched: inside.example.com resolves to an address that is not public."]
  const inside = `https://inside.example.com:${port}/type/image/png`
  assert.deepEqual(await refusalOf(inside, { hosts: 'public' }), refused)
  assert.deepEqual(await refusalOf(inside, { hosts: 'loopback' }), refused)
  assert.deepEqual(await refusalOf(to(inside), { hosts: 'loopback' }), refused)
  // Each look-up has another result: the second one must not be reached without a check.
  assert.deepEqual(await refusalOf(to(inside), { hosts: 'loopback', addresses: [['93.184.215.14', '127.0.0.1'], ['127.0.0.1']] }), refused)
  assert.equal(host.requests.length - before, 2, 'only the redirects')
})

test('a redirect to a private address is refused', async () => {
  const [code, reason] = await refusalOf(to('https://10.0.0.1/'), { hosts: 'loopback' })
  assert.equal(code, 'RCS_MEDIA_URL_REFUSED')
  assert.match(reason ?? '', /^The URL redirects to another one, which must have a host of/)
})

test('a trial refuses this machine before it connects, although webhooks may go there', async () => {
  const before = host.requests.length
  const { body } = await get(viewer, mediaPath(`${host.url}/type/image/png`), ADMIN)
  assert.equal(body.code, 'RCS_MEDIA_URL_REFUSED')
  assert.equal(host.requests.length, before)
})

test('a host of this machine is refused unless private addresses are allowed', async () => {
  const [code] = await refusalOf(`${host.url.replace('http', 'https')}/type/image/png`, { hosts: 'public' })
  assert.equal(code, 'RCS_MEDIA_URL_REFUSED')
})

test('a fetch fails after the timeout if the host stops sending', async () => {
  const expected = ['RCS_MEDIA_UNREACHABLE', "The file can't be fetched: no response within 0.3 s."]
  assert.deepEqual(await refusalOf(`${host.url}/silent`, { hosts: 'loopback', timeoutMs: 300 }), expected)
})

test('a person fetches three images at once; other people do not wait for them', async () => {
  const waiting: (() => void)[] = []
  const slow = await serve((_request, response) => {
    waiting.push(() => response.writeHead(200, { 'content-type': 'image/png' }).end(PNG))
  })
  const other = await sessionOf((await newPerson('viewer', [accountId])).personId)
  const responses = Array.from({ length: 5 }, (_, index) => get(viewer, mediaPath(`${slow.url}/${index}`)))
  await until('three arrive', () => waiting.length === 3)
  assert.equal((await get(other, mediaPath(`${host.url}/type/image/png`))).status, 200)
  assert.equal(waiting.length, 3)
  for (let index = 0; index < 5; index += 1) {
    await until('the next one arrives', () => waiting.length > index)
    waiting[index]?.()
  }
  assert.deepEqual(
    (await Promise.all(responses)).map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
})

test('clients that disconnect do not get more slots: their fetches end', async () => {
  let [open, most] = [0, 0]
  const silent = await serve((_request, response) => {
    open += 1
    most = Math.max(most, open)
    response.writeHead(200, { 'content-type': 'image/png' }).write(PNG)
    response.once('close', () => {
      open -= 1
    })
  })
  const client = new AbortController()
  const requests = Array.from({ length: 12 }, (_, index) =>
    fetch(OPEN + mediaPath(`${silent.url}/${index}`), { headers: { cookie: viewer.cookie }, signal: client.signal }).catch(() => {}),
  )
  await until('three arrive', () => open === 3)
  client.abort()
  await Promise.all(requests)
  await until('all fetches have ended', () => open === 0)
  // A request of the same person gets a slot, and comes after all that waited.
  assert.equal((await get(viewer, mediaPath(`${host.url}/type/image/png`))).status, 200)
  assert.deepEqual([open, most], [0, 3])
})

test('slots are limited in total, and so are waiting requests, in total and for each owner', async () => {
  const take = createSlots({ total: 2, perOwner: 1, waiting: 3, waitingPerOwner: 1 })
  const first = await take('a')
  const second = await take('b')
  const started: string[] = []
  const [third, fourth] = ['c', 'a'].map((owner) => take(owner).then(() => started.push(owner)))
  assert.equal(await take('a'), undefined)
  void take('d')
  assert.equal(await take('e'), undefined)
  second?.()
  await third
  first?.()
  first?.()
  await fourth
  assert.deepEqual(started, ['c', 'a'])
})
