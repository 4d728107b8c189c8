import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { requestHash } from '../../src/messages/request-hash.ts'

const seed = Date.now() % 2 ** 31

function hashOf(json: string): string {
  return requestHash(JSON.parse(json)).toString('hex')
}

/** The same JSON with fields in another order and white space between them. */
function rewritten(value: unknown, random: () => number): string {
  const blank = () => [' ', '\n', '\t', '', '  '][Math.floor(random() * 5)]
  if (Array.isArray(value)) return `[${blank()}${value.map((item) => rewritten(item, random)).join(`${blank()},${blank()}`)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value)
    .map((entry) => ({ entry, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ entry: [name, field] }) => `${JSON.stringify(name)}${blank()}:${blank()}${rewritten(field, random)}`)
  return `{${blank()}${fields.join(`${blank()},${blank()}`)}${blank()}}`
}

describe(`the hash of a request (fast-check, seed ${seed})`, () => {
  test('is equal for the same JSON in any order of fields and with any white space', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ depthSize: 'medium' }),
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        (value, numbers) => {
          const random = () => numbers.next().value as number
          const json = JSON.stringify(value)
          assert.equal(hashOf(rewritten(JSON.parse(json), random)), hashOf(json))
        },
      ),
      { numRuns: 200, seed },
    )
  })

  test('differs for different JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        // Equal as JSON: -0 is written as 0.
        const [a, b] = [JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other))]
        const isEqual = isDeepEqual(a, b)
        assert.equal(hashOf(JSON.stringify(one)) === hashOf(JSON.stringify(other)), isEqual)
      }),
      { numRuns: 200, seed },
    )
  })

  const equal: [string, string][] = [
    ['{"a":1,"b":{"c":[1,2],"d":null}}', ' { "b" : {"d":null,\n"c":[ 1,2 ]} , "a" : 1 } '],
    ['{"a":1}', '{"a":1.0}'],
    ['{"a":100}', '{"a":1e2}'],
    ['{"a":"\\u0105"}', '{"a":"ą"}'],
    ['{"2":1,"10":2,"b":3}', '{"b":3,"10":2,"2":1}'],
    ['{"__proto__":{"x":1},"a":1}', '{"a":1,"__proto__":{"x":1}}'],
  ]
  for (const [one, other] of equal) test(`${one} is ${JSON.stringify(other)}`, () => assert.equal(hashOf(one), hashOf(other)))

  const unequal: [string, string][] = [
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":{"b":1}}', '{"a":1,"b":1}'],
    ['{"a":{}}', '{"a":[]}'],
    ['{"a":"x"}', '{"a":"X"}'],
    ['{"a":"é"}', '{"a":"e\\u0301"}'],
    ['{"a":["1","2"]}', '{"a":["1,2"]}'],
    ['{"a":"1\\",\\"b\\":\\"2"}', '{"a":"1","b":"2"}'],
    ['{"__proto__":{"x":1}}', '{}'],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}'],
  ]
  for (const [one, other] of unequal) test(`${one} is not ${other}`, () => assert.notEqual(hashOf(one), hashOf(other)))
})

function isDeepEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}
