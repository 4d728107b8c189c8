import assert from 'node:assert/strict'
import { test } from 'node:test'
import document from '../../openapi.json' with { type: 'json' }
import { type ApiDocument, documentedOperations, OUTSIDE } from './document.ts'
import { CREDENTIALS, createGenerator, type FuzzRequest, KINDS } from './generate.ts'
import type { World } from './world.ts'

const DOCUMENT = document as unknown as ApiDocument
const OPERATIONS = [...documentedOperations(DOCUMENT), ...OUTSIDE]
const COUNT = OPERATIONS.length * KINDS.length * 6

function createWorld(): World {
  const ids = { templates: [1, 2], messages: ['0198c0de-0000-7000-8000-000000000001'], campaigns: ['0198c0de-0000-7000-8000-000000000002'] }
  return {
    now: Date.UTC(2026, 0, 31),
    agentId: 'agent-1',
    changedAgentId: 'agent-2',
    groups: [1],
    credentials: { own: 'Bearer hk_own:hs_own', other: 'Bearer hk_other:hs_other', withoutModule: 'Bearer hk_bare:hs_bare' },
    webhookToken: 'token',
    own: ids,
    other: structuredClone(ids),
    cursors: new Map(),
  }
}

function requestsOf(seed: number, count = COUNT): FuzzRequest[] {
  const generate = createGenerator(seed, DOCUMENT, OPERATIONS, createWorld())
  return Array.from({ length: count }, (_, number) => generate(number))
}

test('the generator makes the same requests from the same seed, and others from another', () => {
  assert.deepEqual(requestsOf(7), requestsOf(7))
  const others = requestsOf(8)
  const equal = requestsOf(7).filter(({ bytes }, number) => bytes.equals(others[number]?.bytes as Buffer))
  assert.ok(equal.length < COUNT / 10, `${equal.length} of ${COUNT} are equal`)
})

test('a request depends on its number alone, not on the requests before it', () => {
  const generate = createGenerator(7, DOCUMENT, OPERATIONS, createWorld())
  assert.deepEqual(generate(345), requestsOf(7, 346)[345])
})

test('the generator covers every operation with every kind, with and without credentials', () => {
  const requests = requestsOf(7)
  const cells = new Set(requests.map(({ operation, kind }) => `${operation.id} ${kind}`))
  assert.equal(cells.size, OPERATIONS.length * KINDS.length)
  assert.deepEqual(new Set(requests.map(({ credentials }) => credentials)), new Set(CREDENTIALS))
  const named = Object.entries(DOCUMENT.paths).flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId))
  assert.deepEqual(new Set(named).difference(new Set(OPERATIONS.map(({ id }) => id))), new Set())
})

test('a valid request has a body that is JSON, and its length', () => {
  const valid = requestsOf(7).filter(({ kind, bytes }) => kind === 'valid' && bytes.includes('Content-Length'))
  assert.ok(valid.length > 0)
  for (const { bytes } of valid) {
    const [head = '', ...body] = bytes.toString().split('\r\n\r\n')
    const text = body.join('\r\n\r\n')
    JSON.parse(text)
    assert.match(head, new RegExp(`Content-Length: ${Buffer.byteLength(text)}$`))
  }
})
