import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { CONTENT_SCHEMAS, type MessageContent } from '../../src/content/content.ts'
import { ContentFacts, contentFacts } from '../../src/content/facts.ts'
import { TemplateToCheck } from '../../src/templates/check-routes.ts'
import { createTemplate, readTemplate, replaceTemplate } from '../../src/templates/templates.ts'
import { createSchemaCompiler } from '../../src/validation.ts'
import { quickestMs } from '../support/cpu.ts'
import { createTestDatabase } from '../support/database.ts'
import { createCaller } from '../support/service.ts'
import { brokenContent, validContent } from './arbitrary.ts'

const { pool } = await createTestDatabase()
const check = createSchemaCompiler(CONTENT_SCHEMAS)(TemplateToCheck)
const checkFacts = createSchemaCompiler([])(ContentFacts)
const seed = Date.now() % 2 ** 31

describe(`content (fast-check, seed ${seed})`, () => {
  test('that is valid is accepted, stored and read back unchanged, also as a replacement', async () => {
    const { accountId } = await createCaller(pool)
    const target = { name: 'T', basic: false, status: 'DRAFT' as const, message: { type: 'MESSAGE' as const, content: 'x' } }
    const { id: targetId } = await createTemplate(pool, accountId, target)
    const { id } = await createTemplate(pool, accountId, target)
    await fc.assert(
      fc.asyncProperty(validContent([targetId, id]), async (content) => {
        assert.deepEqual(check({ message: content }), [])
        const input = { ...target, message: content as MessageContent }
        const created = await createTemplate(pool, accountId, input)
        assert.deepEqual((await readTemplate(pool, accountId, created.id)).message, content)
        await replaceTemplate(pool, accountId, id, input)
        const { message } = await readTemplate(pool, accountId, id)
        assert.deepEqual(message, content)
        assert.equal(JSON.stringify(message), JSON.stringify(content), 'the order of the fields is kept too')
      }),
      { numRuns: 300, seed },
    )
  })

  test('with a single invalid change is rejected', () => {
    fc.assert(
      fc.property(brokenContent, ({ message, name, key }) => {
        assert.notDeepEqual(check({ message }), [], `${name} at ${key}`)
      }),
      { numRuns: 2_000, seed },
    )
  })

  test('of any shape makes neither the check nor the facts throw, and every violation has a path and a reason', () => {
    const anyJson = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' })
    const anyType = fc.oneof(anyJson, fc.constantFrom('constructor', '__proto__', 'valueOf'), fc.constant({ toString: 1, valueOf: 2 }))
    const hostile = fc.oneof(
      fc.record({ type: fc.constantFrom('MESSAGE', 'CARD', 'constructor', '__proto__'), buttons: fc.array(fc.record({ type: anyType })) }),
      anyJson,
      fc.record({
        type: fc.constantFrom('MESSAGE', 'CARD', 'CAROUSEL', 'CONTACT', 'LOCATION', 'VIDEO'),
        content: anyJson,
        buttons: anyJson,
        data: anyJson,
      }),
      fc.record({
        type: fc.constant('CAROUSEL'),
        data: fc.record({ cardWidth: anyJson, cards: fc.array(fc.record({ title: anyJson, buttons: fc.array(anyJson) })) }),
      }),
      brokenContent.map(({ message }) => message),
    )
    fc.assert(
      fc.property(hostile, fc.boolean(), (message, basic) => {
        for (const { path, reason } of check({ message, basic })) assert.ok(/^(\/|$)/.test(path) && reason !== '')
        const facts = contentFacts(message, basic, '/message')
        if (facts !== undefined) assert.deepEqual(checkFacts(facts), [])
      }),
      { numRuns: 2_000, seed },
    )
  })
})

describe('is checked, and its facts returned, in under 5 ms of CPU time on an idle core:', () => {
  const longUrl = `https://example.com/${'a'.repeat(2028)}`
  const button = (id: string) => ({ id: id.padEnd(64, '-'), type: 'url', text: '😀'.repeat(25), url: longUrl })
  const buttonsOf = (card: number) => [0, 1, 2, 3].map((index) => button(`c${card}.${index}`))
  const text = { title: '😀'.repeat(200), content: '😀'.repeat(2000), imageUrl: longUrl }
  const times = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))
  // Letters that make the encoding of a host name slow.
  const letters = (count: number) => String.fromCodePoint(...Array.from({ length: count }, (_, index) => 0x4e00 + (index % 5_000)))
  const longHost = `https://${[50, 50].map(letters).join('.')}.${'x'.repeat(63)}.${'y'.repeat(63)}.com/`
  const longLinks = (id: string, count: number) =>
    times(count, (index) => ({ id: `${id}.${index}`, type: 'url', text: 'x', url: longHost }))
  const many = <T>(value: T) => times(990, () => value)
  const bodies: Record<string, unknown> = {
    'the largest carousel': {
      type: 'CAROUSEL',
      data: { cards: times(10, (index) => ({ ...text, buttons: buttonsOf(index) })) },
      buttons: times(11, (index) => button(`b${index}`)),
    },
    'a text of 256 KiB': { type: 'MESSAGE', content: 'a'.repeat(262_000) },
    'empty buttons': { type: 'MESSAGE', content: 'x', buttons: many({}) },
    'empty cards': { type: 'CAROUSEL', data: { cards: many({}) } },
    'unknown fields': Object.fromEntries(times(990, (index) => [`field${index}`, index])),
    'phone numbers': { type: 'CONTACT', data: { name: 'x', phoneNumbers: many('+48500100200') } },
    'an email address that makes a regular expression backtrack': {
      type: 'CONTACT',
      data: { name: 'x', phoneNumbers: [], email: `a@${'.a'.repeat(130_000)}@` },
    },
    'an address of 256 KiB': { type: 'CARD', data: { imageUrl: `https://${'ą.'.repeat(80_000)}com/` } },
    'addresses with the longest possible hosts': {
      type: 'CAROUSEL',
      data: { cards: times(41, () => ({ imageUrl: `https://${letters(1_900)}.com/` })) },
    },
    'addresses with even longer hosts': {
      type: 'CAROUSEL',
      data: { cards: times(15, () => ({ imageUrl: `https://${letters(5_400)}.com/` })) },
    },
    'addresses with the longest valid hosts': {
      type: 'CAROUSEL',
      data: { cards: times(10, (index) => ({ title: 'x', imageUrl: longHost, buttons: longLinks(`c${index}`, 4) })) },
      buttons: longLinks('b', 11),
    },
    'an address of credentials': { type: 'CARD', data: { imageUrl: `https://${'@'.repeat(250_000)}a.b/` } },
    'a text of halves of surrogate pairs': { type: 'MESSAGE', content: '\ud800'.repeat(40_000) },
  }
  // In milliseconds of an idle core: the CPU time, divided by that of a yardstick in the same run. 5, doubled for the remaining noise.
  const MOST_MS = 10
  for (const [name, message] of Object.entries(bodies)) {
    test(name, (t) => {
      const tookMs = quickestMs(() => {
        check({ message })
        contentFacts(message, false, '/message')
      }, MOST_MS)
      t.diagnostic(`${Buffer.byteLength(JSON.stringify(message))} bytes in ${tookMs.toFixed(2)} ms`)
      assert.ok(tookMs < MOST_MS, `${tookMs} ms`)
    })
  }
})
