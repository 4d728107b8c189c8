import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertError, type ErrorDetails } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'
import { log, newCaller } from './templates-service.ts'

describe('POST /templates', () => {
  test('responds 201 with the template and Location, with defaults for status and basic', async () => {
    const { create, read } = await newCaller()
    const { status, headers, body } = await create({ name: 'Welcome', message: TEXT })
    assert.equal(status, 201)
    const { id, createdAt } = body
    assert.ok(Number.isInteger(id) && id > 0)
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(body, { id, name: 'Welcome', basic: false, status: 'DRAFT', message: TEXT, createdAt, updatedAt: createdAt })
    assert.equal(headers.get('location'), `/v1/templates/${id}`)
    assert.deepEqual((await read(id)).body, body)
  })

  test('keeps every field', async () => {
    const { create, read } = await newCaller()
    const sent = {
      name: 'Ż'.repeat(200),
      description: '😀'.repeat(1000),
      basic: false,
      status: 'APPROVED',
      message: {
        data: { title: 'Title', imageUrl: 'https://example.com/a.jpg', height: 'TALL', orientation: 'VERTICAL' },
        buttons: [
          { type: 'url', id: 'a', url: 'https://example.com', text: 'Open' },
          {
            id: 'b',
            type: 'calendar',
            text: 'Note',
            title: 'Visit',
            startTime: '2026-12-01T10:00:00+01:00',
            endTime: '2026-12-01T10:00:00Z',
          },
          { id: 'c', type: 'location', text: 'Map', latitude: 52.229676, longitude: 21.012229, label: '' },
        ],
        type: 'CARD',
      },
    }
    const { status, body } = await create(sent)
    assert.equal(status, 201)
    const { id, createdAt, updatedAt, ...kept } = (await read(body.id)).body
    assert.deepEqual(kept, sent)
    assert.equal(JSON.stringify(kept.message), JSON.stringify(sent.message), 'in the same order too')
  })

  test('treats null as absent, at any depth', async () => {
    const { create } = await newCaller()
    const { status, body } = await create({
      name: 'X',
      description: null,
      basic: null,
      status: null,
      message: { ...TEXT, buttons: null, data: null },
    })
    assert.equal(status, 201)
    assert.deepEqual([body.message, body.status, body.basic, 'description' in body], [TEXT, 'DRAFT', false, false])
  })

  test('accepts a Basic text of 160 bytes and rejects one of 161', async () => {
    const { create } = await newCaller()
    assert.equal((await create({ name: 'X', basic: true, message: { type: 'MESSAGE', content: 'ą'.repeat(80) } })).status, 201)
    const { status, body } = await create({ name: 'X', basic: true, message: { type: 'MESSAGE', content: `${'ą'.repeat(80)}a` } })
    assert.deepEqual([status, body.code], [400, 'RCS_INVALID_MESSAGE'])
    assert.deepEqual(body.details, [{ path: '/message/content', reason: 'has 161 bytes in UTF-8; Basic mode allows 160' }])
  })

  const invalid: [body: unknown, code: string, details: ErrorDetails][] = [
    [{ message: TEXT }, 'RCS_INVALID_REQUEST', [['/name', 'is required']]],
    [{ name: '', message: TEXT }, 'RCS_INVALID_REQUEST', [['/name', 'must not be empty']]],
    [{ name: 'x'.repeat(201), message: TEXT }, 'RCS_INVALID_REQUEST', [['/name', 'must have at most 200 characters']]],
    [
      { name: 'X', description: 'x'.repeat(1001), message: TEXT },
      'RCS_INVALID_REQUEST',
      [['/description', 'must have at most 1000 characters']],
    ],
    [{ name: 'X', basic: 'true', message: TEXT }, 'RCS_INVALID_REQUEST', [['/basic', 'must be true or false']]],
    [{ name: 'X', status: 'REJECTED', message: TEXT }, 'RCS_INVALID_REQUEST', [['/status', 'must be one of DRAFT, APPROVED']]],
    [{ name: 'X', status: 'approved', message: TEXT }, 'RCS_INVALID_REQUEST', [['/status', 'must be one of DRAFT, APPROVED']]],
    [{ name: 'X', id: 5, message: TEXT }, 'RCS_INVALID_REQUEST', [['/id', 'is not known here; is it misspelt?']]],
    [{ name: 'a\0', message: TEXT }, 'RCS_INVALID_REQUEST', [['/name', 'must not contain the character NUL']]],
    [{ name: 'X' }, 'RCS_INVALID_MESSAGE', [['/message', 'is required']]],
    [{ name: 'X', message: 'Hello' }, 'RCS_INVALID_MESSAGE', [['/message', 'must be an object']]],
    [
      { name: 'X', message: { inline: TEXT } },
      'RCS_INVALID_MESSAGE',
      [
        ['/message/inline', 'is not known here; is it misspelt?'],
        ['/message/type', 'is required'],
      ],
    ],
    [
      { name: 'X', message: { type: 'MESSAGE', content: 'a\0' } },
      'RCS_INVALID_MESSAGE',
      [['/message/content', 'must not contain the character NUL']],
    ],
    [
      { description: 5, message: { ...TEXT, data: { x: 1 }, buttons: [{ id: 'a', type: 'url', text: '' }] } },
      'RCS_INVALID_MESSAGE',
      [
        ['/name', 'is required'],
        ['/description', 'must be a string'],
        ['/message/buttons/0/url', 'is required'],
        ['/message/buttons/0/text', 'must not be empty'],
        ['/message/data', 'must be empty or absent'],
      ],
    ],
    [[], 'RCS_INVALID_REQUEST', [['', 'must be an object']]],
  ]
  for (const [body, code, details] of invalid) {
    test(`rejects ${JSON.stringify(body).slice(0, 100)} and stores nothing`, async () => {
      const { create, list } = await newCaller()
      assertError(await create(body), 400, code, details)
      assert.deepEqual((await list()).body.items, [])
    })
  }

  test('responds 404 with the path of a button that sends a missing template or one of another account', async () => {
    const { create, created, list } = await newCaller()
    const foreign = await (await newCaller()).created()
    const own = await created()
    for (const missing of [foreign, foreign + 1_000, 2 ** 31, 2 ** 53 - 1]) {
      const { status, body } = await create({ name: 'X', message: sending(own, missing) })
      assert.deepEqual([status, body.code], [404, 'RCS_TEMPLATE_NOT_FOUND'])
      assert.deepEqual(body.details, [{ path: '/message/buttons/1/templateId', reason: 'names no template of this account' }])
    }
    const cards = [{ title: 'A' }, { title: 'B', buttons: sending(foreign).buttons }]
    const { body } = await create({ name: 'X', message: { type: 'CAROUSEL', data: { cards } } })
    assert.deepEqual(body.details, [{ path: '/message/data/cards/1/buttons/0/templateId', reason: 'names no template of this account' }])
    assert.equal((await list()).body.items.length, 1)
    assert.equal((await create({ name: 'X', message: sending(own, own) })).status, 201, 'two buttons may send the same one')
  })

  test('logs no text or name', () => {
    assert.doesNotMatch(log(), /Hello|Welcome|example\.com/)
  })
})
