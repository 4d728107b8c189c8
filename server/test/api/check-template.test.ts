import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { call } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'
import { newCaller, url } from './templates-service.ts'

describe('POST /templates/check', () => {
  test('returns the facts of a valid template, and stores nothing', async () => {
    const { check, list } = await newCaller()
    const { status, body } = await check({
      name: 'X',
      description: 'Y',
      status: 'DRAFT',
      basic: true,
      message: { type: 'MESSAGE', content: 'Zażółć' },
    })
    assert.equal(status, 200)
    assert.deepEqual(body, {
      valid: true,
      violations: [],
      facts: {
        texts: [{ path: '/message/content', characters: 6, maxCharacters: 3072, bytes: 10, maxBytes: 160 }],
        buttons: [{ path: '/message/buttons', count: 0, maxCount: 11 }],
        cards: [],
        billingClass: 'basic',
        features: [],
        iphone: [],
      },
    })
    assert.deepEqual((await list()).body.items, [])
  })

  test('returns every error of POST and PUT, with status 200', async () => {
    const { check, create } = await newCaller()
    const body = {
      name: '',
      status: 'NEW',
      message: { type: 'CARD', data: { height: 'HUGE' }, buttons: [{ id: 'a', type: 'url', text: 'x' }] },
    }
    const response = await check(body)
    assert.equal(response.status, 200)
    assert.equal(response.body.valid, false)
    assert.deepEqual(response.body.violations, (await create(body)).body.details)
    assert.equal(response.body.violations.length, 5)
  })

  test('returns the facts of an invalid content, too', async () => {
    const { check } = await newCaller()
    const { body } = await check({ basic: true, message: { type: 'MESSAGE', content: 'x'.repeat(3080) } })
    assert.deepEqual(body.violations, [
      { path: '/message/content', reason: 'has 3080 bytes in UTF-8; Basic mode allows 160' },
      { path: '/message/content', reason: 'must have at most 3072 characters' },
    ])
    assert.deepEqual(body.facts.texts, [{ path: '/message/content', characters: 3080, maxCharacters: 3072, bytes: 3080, maxBytes: 160 }])
    assert.equal(body.facts.billingClass, 'single')
  })

  test('returns no facts if the type is unknown', async () => {
    const { check } = await newCaller()
    for (const [sent, path, reason] of [
      [{ message: { content: 'x' } }, '/message/type', 'is required'],
      [{ basic: true }, '/message', 'is required'],
      [{ message: 5 }, '/message', 'must be an object'],
      [[], '', 'must be an object'],
      ['"text"', '', 'must be an object'],
      ['null', '', 'must be an object'],
    ] as const) {
      const { status, body } = await check(sent)
      assert.equal(status, 200)
      assert.deepEqual(body, { valid: false, violations: [{ path, reason }], facts: null }, JSON.stringify(sent))
    }
  })

  test('reports a button that sends a missing template or one of another account', async () => {
    const { check, created } = await newCaller()
    const foreign = await (await newCaller()).created()
    const own = await created()
    const { body } = await check({ name: '', message: sending(own, foreign, 999_999) })
    assert.deepEqual(body.violations, [
      { path: '/name', reason: 'must not be empty' },
      { path: '/message/buttons/1/templateId', reason: 'names no template of this account' },
      { path: '/message/buttons/2/templateId', reason: 'names no template of this account' },
    ])
  })

  test('rejects invalid JSON, a large body, another media type and a query parameter', async () => {
    const { check, authorization } = await newCaller()
    assert.equal((await check('{')).body.code, 'RCS_INVALID_REQUEST')
    assert.equal((await check({ message: { type: 'MESSAGE', content: 'x'.repeat(300_000) } })).body.code, 'RCS_PAYLOAD_TOO_LARGE')
    for (const body of [{ message: TEXT }, { message: 5 }]) {
      const { status, body: response } = await check(body, '?x=1')
      assert.deepEqual([status, response.code], [400, 'RCS_INVALID_REQUEST'])
      assert.deepEqual(response.details, [{ path: '/x', reason: 'is not known here; is it misspelt?' }])
    }
    const headers = { 'content-type': 'text/plain' }
    assert.equal((await call(`${url}/v1/templates/check`, { method: 'POST', authorization, headers, body: 'x' })).status, 415)
  })
})
