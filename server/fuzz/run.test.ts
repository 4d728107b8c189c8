import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createCheck } from './check.ts'
import type { ApiDocument, Operation } from './document.ts'
import { createGenerator, type FuzzRequest } from './generate.ts'
import { growthOf, MAX_GROWTH_BYTES, MIN_REQUESTS } from './memory.ts'
import { describeFindings, tableOf } from './report.ts'
import { run, type Tally } from './run.ts'
import { createSender } from './wire.ts'
import type { World } from './world.ts'

// A small server with deliberate faults stands in for the service: the fuzzer must find each of them, and nothing else.

const DEADLINE_MS = 20_000
/** For responses that never come. */
const SHORT_DEADLINE_MS = 200
const HANGS = ['silent', 'half']
const ERROR = { required: ['statusCode', 'code', 'message', 'requestId'], properties: { code: { type: 'string' } } }
const DOCUMENT = { servers: [{ url: '' }], paths: {}, components: { schemas: { Error: ERROR } } } as unknown as ApiDocument
const WORLD = { keys: { own: 'Bearer a:hs_secret', other: 'Bearer b:c', withoutModule: 'Bearer d:e' } } as World

type Handler = (request: IncomingMessage, response: ServerResponse) => void

function respond(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = { 'x-request-id': 'r' }): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

const error = (statusCode: number, more = {}) => ({ statusCode, code: 'X', message: 'X', requestId: 'r', ...more })

/** By path: what the server does there. `problem`: what the fuzzer must report, undefined if nothing is wrong. */
const CASES: Record<string, { what: string; handler: Handler; problem?: RegExp }> = {
  healthy: { what: 'passes a documented response', handler: (_request, response) => respond(response, 200, {}) },
  refused: { what: 'passes a documented error', handler: (_request, response) => respond(response, 404, error(404)) },
  failing: {
    what: 'reports a status of 500',
    handler: (_request, response) => respond(response, 500, error(500)),
    problem: /^status 500$/m,
  },
  undocumented: {
    what: 'reports a status that is not documented',
    handler: (_request, response) => respond(response, 418, error(418)),
    problem: /status 418 is not documented for undocumented/,
  },
  silent: { what: 'reports a request without a response', handler: () => {}, problem: /hang: no response after/ },
  half: {
    what: 'reports a response that never ends',
    handler: (_request, response) => void response.writeHead(200, { 'content-length': '100', 'x-request-id': 'r' }).write('half'),
    problem: /hang: no response after/,
  },
  closed: {
    what: 'reports a connection that is closed instead of a response',
    handler: (request) => request.socket.destroy(),
    problem: /the connection ended without a response/,
  },
  stack: {
    what: 'reports a stack trace in a body',
    handler: (_request, response) => respond(response, 404, error(404, { details: 'x\n    at f (/server/src/a.ts:1:2)' })),
    problem: /the body shows internals/,
  },
  statement: {
    what: 'reports the words of PostgreSQL in an error',
    handler: (_request, response) => respond(response, 404, error(404, { details: 'syntax error at or near "x"' })),
    problem: /the body shows internals: syntax error at or near/,
  },
  secret: {
    what: 'reports a secret in a body',
    handler: (_request, response) => respond(response, 200, { authorization: 'hs_secret' }),
    problem: /the body holds a secret/,
  },
  nameless: {
    what: 'reports a response without X-Request-Id',
    handler: (_request, response) => respond(response, 200, {}, {}),
    problem: /X-Request-Id is missing/,
  },
  formless: {
    what: 'reports an error whose body has another form',
    handler: (_request, response) => respond(response, 404, { error: 'not found' }),
    problem: /does not match its schema/,
  },
  otherId: {
    what: 'reports an error whose requestId is not that of the header',
    handler: (_request, response) => respond(response, 404, error(404, { requestId: 'other' })),
    problem: /requestId is not X-Request-Id/,
  },
}

const server = createServer((request, response) => {
  request.resume()
  CASES[request.url?.slice(1) ?? '']?.handler(request, response)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

/** Sends one valid request to the path of that name. */
async function fuzzOne(name: string): Promise<Tally> {
  const responses = new Map([200, 404].map((status) => [status, undefined]))
  const operation: Operation = {
    id: name,
    method: 'GET',
    path: `/${name}`,
    document: DOCUMENT,
    isPublic: true,
    parameters: [],
    body: undefined,
    example: undefined,
    responses,
  }
  const sender = createSender(port, HANGS.includes(name) ? SHORT_DEADLINE_MS : DEADLINE_MS)
  const generate = createGenerator(1, [operation], WORLD)
  const tally = await run({ parts: [[0]], generate, sender, check: createCheck([DOCUMENT], ['hs_secret']), lanes: 2 })
  sender.close()
  return tally
}

for (const [name, { what, problem }] of Object.entries(CASES)) {
  test(`the fuzzer ${what}`, async () => {
    const { findings, sent } = await fuzzOne(name)
    assert.equal(sent, 1)
    if (problem === undefined) return assert.deepEqual(findings, [])
    assert.equal(findings.length, 1)
    assert.match(findings[0]?.problems.join('\n') ?? '', problem)
    return
  })
}

test('the fuzzer prints a finding with its seed, its number and its bytes', async () => {
  const tally = await fuzzOne('failing')
  const text = describeFindings(tally.findings, 42)
  assert.match(text, /FAILED failing: status 500 \(1 of this kind\)/)
  assert.match(text, /--seed 42 --number 0/)
  assert.match(text, /GET \/failing HTTP\/1\.1\\r\\n/)
  assert.match(tableOf(tally), /^operation +500\nfailing +1$/)
})

test('the fuzzer passes a connection that ends without a response to a raw request, and reports a hang', async () => {
  const check = createCheck([DOCUMENT], [])
  const request = { isRaw: true, isIntact: false, method: 'GET', operation: { id: 'x' } } as FuzzRequest
  const none = { status: undefined, headers: new Map(), body: Buffer.alloc(0), json: undefined, tookMs: 1, isHang: false }
  assert.deepEqual(check(request, none), [])
  assert.equal(check(request, { ...none, isHang: true }).length, 1)
})

const OK = { status: 200, headers: new Map([['x-request-id', 'r']]), body: Buffer.alloc(0), json: undefined, tookMs: 1, isHang: false }

function requestTo(path: string, more: Partial<FuzzRequest>): FuzzRequest {
  const operation = { id: 'readThing', path, document: DOCUMENT, isPublic: false, responses: new Map([[200, undefined]]) }
  const bytes = Buffer.from(`GET ${path} HTTP/1.1`)
  return { operation, isRaw: false, isIntact: true, method: 'GET', owner: 'own', bytes, ...more } as FuzzRequest
}

test('the fuzzer reports a success with wrong credentials, or with those of another account', () => {
  const check = createCheck([DOCUMENT], [])
  const FOREIGN = 'status 200 for what belongs to another account'
  const cases: [path: string, request: Partial<FuzzRequest>, problem?: string][] = [
    ['/v1/things/1', { credentials: 'own' }],
    ['/v1/things/1', { credentials: 'other' }, FOREIGN],
    ['/v1/things/1', { credentials: 'none' }, 'status 200 without right credentials'],
    ['/v1/things/1', { credentials: 'wrong' }, 'status 200 without right credentials'],
    ['/v1/things/1', { credentials: 'broken' }, 'status 200 without right credentials'],
    ['/', { credentials: 'none' }],
    ['/admin/v1/accounts/1', { credentials: 'admin' }],
    ['/admin/v1/accounts/1', { credentials: 'viewer' }],
    ['/admin/v1/accounts/1', { credentials: 'operator' }],
    ['/admin/v1/accounts/1', { credentials: 'other' }, FOREIGN],
    ['/admin/v1/accounts/1', { credentials: 'operator', owner: 'operator' }],
    ['/admin/v1/accounts/1', { credentials: 'admin', owner: 'operator' }, FOREIGN],
    ['/admin/v1/accounts/1', { credentials: 'operator', owner: 'nobody' }, FOREIGN],
    ['/admin/v1/accounts/1', { credentials: 'page', method: 'POST' }],
    ['/admin/v1/accounts/1', { credentials: 'crossSite' }],
    ['/admin/v1/accounts/1', { credentials: 'crossSite', method: 'POST' }, 'status 200 for a change that may come from another site'],
  ]
  for (const [path, request, problem] of cases)
    assert.deepEqual(check(requestTo(path, request), OK), problem === undefined ? [] : [problem], JSON.stringify([path, request]))
})

test('the fuzzer reports a whole phone number for a viewer, also in a cursor', () => {
  const check = createCheck([DOCUMENT], [])
  const respondWith = (json: object, credentials: 'viewer' | 'admin' = 'viewer') =>
    check(requestTo('/admin/v1/accounts/1/things', { credentials }), { ...OK, json, body: Buffer.from(JSON.stringify(json)) })
  const cursorOf = (phone: string) => ({ nextCursor: Buffer.from(JSON.stringify(['x', phone])).toString('base64url') })
  assert.deepEqual(respondWith({ phone: '+48•••••••••00' }), [])
  assert.deepEqual(respondWith(cursorOf('x')), [])
  assert.deepEqual(respondWith({ phone: '+48500100200' }, 'admin'), [])
  for (const json of [{ phone: '+48500100200' }, { phone: '48500100200' }, { uri: 'tel:%2B48500100200' }, cursorOf('+48500100200')])
    assert.deepEqual(respondWith(json), ['a whole phone number for a viewer'], JSON.stringify(json))
})

test('the fuzzer reports memory that grows by more than the bound', () => {
  const samples = (last: number) => [
    { share: 0.1, bytes: 0 },
    { share: 0.3, bytes: 100 },
    { share: 0.9, bytes: last },
  ]
  assert.equal(growthOf(samples(100 + MAX_GROWTH_BYTES), MIN_REQUESTS)?.isFlat, true)
  assert.equal(growthOf(samples(101 + MAX_GROWTH_BYTES), MIN_REQUESTS)?.isFlat, false)
  assert.equal(growthOf(samples(100), MIN_REQUESTS - 1), undefined)
})
