import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fastify } from 'fastify'
import { generateFiles } from '../../scripts/generate.ts'
import { ERRORS } from '../../src/errors.ts'
import { serveDocument } from '../../src/http/openapi.ts'
import { createTestDatabase } from '../support/database.ts'
import { call, startTestService } from '../support/service.ts'

const files = await generateFiles()
const document = JSON.parse(files['openapi.json'] as string)

for (const [path, text] of Object.entries(files)) {
  test(`${path} is what "npm run generate" writes`, () => {
    assert.equal(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'), text)
  })
}

test('GET /v1/openapi.json returns the document of the repository', async () => {
  const { url: HERALD_DATABASE_URL } = await createTestDatabase()
  const { url } = await startTestService({ HERALD_DATABASE_URL })
  const { body, headers } = await call(`${url}/v1/openapi.json`)
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  assert.deepEqual(body, document)
})

test('a document is serialized once for all requests', async () => {
  const app = fastify()
  let made = 0
  serveDocument(app, () => ({ made: ++made }))
  for (let index = 0; index < 3; index += 1) assert.equal((await app.inject('/openapi.json')).body, '{"made":1}')
  await app.close()
})

test('every operation has an id, a summary, a tag, a success response, and errors of the documented form', () => {
  const ids = new Set<string>()
  for (const [path, operations] of Object.entries<Record<string, any>>(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const name = `${method} ${path}`
      assert.ok(operation.operationId && operation.summary && operation.tags?.length === 1, name)
      assert.ok(!ids.has(operation.operationId), name)
      ids.add(operation.operationId)
      const statuses = Object.keys(operation.responses)
      assert.ok(
        statuses.some((status) => status.startsWith('2')),
        name,
      )
      for (const status of ['400', '401', '403', '429', '500', '503']) assert.ok(statuses.includes(status), `${name} ${status}`)
      for (const status of statuses.filter((each) => Number(each) >= 400)) {
        const { description, content } = operation.responses[status]
        assert.deepEqual(content['application/json'].schema, { $ref: '#/components/schemas/Error' })
        for (const [, code] of description.matchAll(/`(RCS_\w+)`/g)) {
          assert.equal(ERRORS[code as keyof typeof ERRORS].status, Number(status))
        }
      }
    }
  }
})

test('every list with a cursor declares the error of a wrong cursor', () => {
  for (const from of [document, JSON.parse(files['openapi-admin.json'] as string)]) {
    const operations = Object.values<object>(from.paths).flatMap((path) => Object.values<any>(path))
    const lists = operations.filter(({ parameters = [] }) => parameters.some(({ name }: { name: string }) => name === 'cursor'))
    assert.ok(lists.length >= 9, `${lists.length}`)
    for (const { operationId, responses } of lists) assert.match(responses[400].description, /`RCS_INVALID_CURSOR`/, operationId)
  }
})

test('the requests that a quota or the state of an endpoint can refuse say so', () => {
  const { paths } = document
  for (const operation of [paths['/segments/{segmentId}/members'].post, paths['/segments/{segmentId}/import'].put])
    assert.match(operation.responses[429].description, /`RCS_QUOTA_EXCEEDED`/)
  assert.match(paths['/webhook-endpoints/{id}'].patch.responses[409].description, /`RCS_WEBHOOK_ENDPOINT_STATE`/)
})

test('only coordinates and rates are numbers that need not be whole', () => {
  const names = new Set<string>()
  function walk(schema: unknown, name: string): void {
    if (typeof schema !== 'object' || schema === null) return
    const { type } = schema as { type?: unknown }
    if ([type].flat().includes('number')) names.add(name)
    for (const [key, value] of Object.entries(schema)) walk(value, /^(anyOf|oneOf|items|schema|\d+)$/.test(key) ? name : key)
  }
  walk(document, '')
  assert.deepEqual(names, new Set(['latitude', 'longitude', 'deliveryRate', 'readRate', 'clickRate']))
})

test('every number in a request has a minimum and a maximum', () => {
  // The consents of a member are checked with the member: only that member is rejected.
  const unlimited = new Set<string>(['consents'])
  function walk(given: any, name: string, from: typeof document): void {
    const schema = given.$ref === undefined ? given : from.components.schemas[given.$ref.split('/').at(-1)]
    const isNumber = [schema.type].flat().some((type) => type === 'integer' || type === 'number')
    const isLimited = schema.enum !== undefined || (schema.minimum !== undefined && schema.maximum !== undefined)
    assert.ok(!isNumber || isLimited || unlimited.has(name), `${name}: ${JSON.stringify(schema)}`)
    for (const [key, value] of Object.entries(schema.properties ?? {})) walk(value, key, from)
    for (const part of [schema.items, schema.anyOf, schema.oneOf, schema.allOf].flat()) if (part !== undefined) walk(part, name, from)
  }
  for (const from of [document, JSON.parse(files['openapi-admin.json'] as string)]) {
    for (const { parameters = [], requestBody } of Object.values<object>(from.paths).flatMap((path) => Object.values(path))) {
      for (const { in: place, name, schema } of parameters) if (place === 'query') walk(schema, name, from)
      for (const { schema } of Object.values<any>(requestBody?.content ?? {})) walk(schema, '', from)
    }
  }
})

test('every reference in the document has a target', () => {
  for (const [, pointer] of (files['openapi.json'] as string).matchAll(/"\$ref": "#\/([^"]+)"/g)) {
    const target = (pointer as string).split('/').reduce((value, key) => value?.[key], document)
    assert.ok(target, String(pointer))
  }
})

test('every schema in the document is a valid JSON Schema', () => {
  const validator = new Ajv2020()
  const schemas: object[] = Object.values(document.components.schemas)
  JSON.stringify(document, (key, value) => {
    if (key === 'schema') schemas.push(value)
    return value
  })
  assert.ok(schemas.length > 100, `${schemas.length}`)
  for (const schema of schemas) assert.ok(validator.validateSchema(schema), JSON.stringify({ schema, errors: validator.errors }))
  assert.ok(!validator.validateSchema({ type: 'sting' }))
})
