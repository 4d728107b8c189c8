import assert from 'node:assert/strict'
import { test } from 'node:test'
import v1 from '../../openapi.json' with { type: 'json' }
import admin from '../../openapi-admin.json' with { type: 'json' }
import { CREDENTIALS } from './credentials.ts'
import { type ApiDocument, documentedOperations, EXCLUDED, operationsOf } from './document.ts'
import { createGenerator, type FuzzRequest, KINDS } from './generate.ts'
import type { World } from './world.ts'

const DOCUMENTS = [v1 as unknown as ApiDocument, admin as unknown as ApiDocument] as const
const OPERATIONS = operationsOf(...DOCUMENTS)
const COUNT = OPERATIONS.length * KINDS.length * 6

function createWorld(): World {
  const ids = {
    accountId: 1,
    templates: [1, 2],
    messages: ['0198c0de-0000-7000-8000-000000000001'],
    campaigns: ['0198c0de-0000-7000-8000-000000000002'],
    keys: ['hk_1'],
    endpoints: [1],
    autoReplies: [1],
  }
  const victims = {
    accountId: 3,
    agentId: 'agent-2',
    assignedAgentId: 'agent-3',
    people: [7],
    tokens: [8],
    sessions: ['s'],
    segments: [101],
    phones: ['+48509000001'],
  }
  return {
    now: Date.UTC(2026, 0, 31),
    agentId: 'agent-1',
    groups: [1],
    keys: { own: 'Bearer hk_own:hs_own', other: 'Bearer hk_other:hs_other', withoutModule: 'Bearer hk_bare:hs_bare' },
    tokens: { operator: 'Bearer ho_operator', admin: 'Bearer ho_admin', viewer: 'Bearer ho_viewer', other: 'Bearer ho_other' },
    operatorId: 1,
    cookies: ['herald-local=secret'],
    email: 'operator@example.com',
    password: 'a password',
    webhookToken: 'token',
    own: ids,
    other: { ...structuredClone(ids), accountId: 2, keys: ['hk_2'] },
    victims,
    phones: ['+48500100200'],
    phoneIds: ['phone-1'],
    links: [],
    cursors: new Map(),
  }
}

function requestsOf(seed: number): FuzzRequest[] {
  const generate = createGenerator(seed, OPERATIONS, createWorld())
  return Array.from({ length: COUNT }, (_, number) => generate(number))
}

const REQUESTS = requestsOf(7)

test('the generator makes the same requests from the same seed, and others from another', () => {
  assert.deepEqual(REQUESTS, requestsOf(7))
  const others = requestsOf(8)
  const equal = REQUESTS.filter(({ bytes }, number) => bytes.equals(others[number]?.bytes as Buffer))
  assert.ok(equal.length < COUNT / 10, `${equal.length} of ${COUNT} are equal`)
})

test('a request depends on its number alone, not on the requests before it', () => {
  const generate = createGenerator(7, OPERATIONS, createWorld())
  assert.deepEqual(generate(345), REQUESTS[345])
})

test('the generator covers every operation with every kind, with and without credentials', () => {
  const cells = new Set(REQUESTS.map(({ operation, kind }) => `${operation.id} ${kind}`))
  assert.equal(cells.size, OPERATIONS.length * KINDS.length)
  assert.deepEqual(new Set(REQUESTS.map(({ credentials }) => credentials)), new Set(CREDENTIALS))
  const documented = DOCUMENTS.flatMap(documentedOperations).map(({ id }) => id)
  assert.deepEqual(new Set(documented).difference(new Set(OPERATIONS.map(({ id }) => id))), new Set(Object.keys(EXCLUDED)))
})

/** Valid requests of one operation. */
function requestsTo(id: string, count: number): FuzzRequest[] {
  const index = OPERATIONS.findIndex((operation) => operation.id === id)
  const generate = createGenerator(7, OPERATIONS, createWorld())
  return Array.from({ length: count }, (_, n) => generate(n * OPERATIONS.length * KINDS.length + index))
}

test('a request that ends something names a victim', () => {
  const expected = {
    suspendAccount: /^POST \/admin\/v1\/accounts\/3\/suspend /,
    changePerson: /^PATCH \/admin\/v1\/people\/7 /,
    revokeToken: /^POST \/admin\/v1\/tokens\/8\/revoke /,
    unassignAgent: /^DELETE \/admin\/v1\/accounts\/[12]\/assignments\/agent-3 /,
    deleteSegment: /^DELETE \/admin\/v1\/accounts\/[12]\/segments\/101 /,
    eraseRecipientEverywhere: /^POST \/admin\/v1\/recipients\/%2B48509000001\/erase /,
  }
  for (const [id, line] of Object.entries(expected))
    for (const { bytes } of requestsTo(`admin/${id}`, 20)) assert.match(bytes.toString(), line)
})

test('a request knows the account of its path, and that nobody may read what belongs to another account', () => {
  const requests = requestsTo('admin/readKey', 400)
  const owners = new Map(requests.map(({ bytes, owner }) => [bytes.toString().split(' ')[1], owner]))
  const expected = { '1/keys/hk_1': 'own', '2/keys/hk_2': 'other', '1/keys/hk_2': 'nobody', '2/keys/hk_1': 'nobody' }
  for (const [path, owner] of owners) assert.equal(owner, expected[path?.replace('/admin/v1/accounts/', '') as keyof typeof expected])
  assert.equal(owners.size, 4)
})

test('a request with the session of a person is same-site exactly if it comes from a page', () => {
  const requests = REQUESTS.filter(({ kind, operation }) => kind === 'valid' && !operation.isPublic)
  for (const { bytes, credentials } of requests) {
    const head = bytes.toString().split('\r\n\r\n')[0] as string
    if (credentials === 'page' || credentials === 'crossSite')
      assert.equal(head.includes('Sec-Fetch-Site: same-origin'), credentials === 'page')
  }
})

test('a valid request has a body that is JSON, and its length', () => {
  const valid = REQUESTS.filter(({ kind, bytes }) => kind === 'valid' && bytes.includes('Content-Length'))
  assert.ok(valid.length > 0)
  for (const { bytes } of valid) {
    const [head = '', ...body] = bytes.toString().split('\r\n\r\n')
    const text = body.join('\r\n\r\n')
    JSON.parse(text)
    assert.match(head, new RegExp(`Content-Length: ${Buffer.byteLength(text)}$`))
  }
})
