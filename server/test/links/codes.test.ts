import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { CODE_LENGTH, isShortCode, shortCode, shortLink } from '../../src/links/codes.ts'

const KEY = Buffer.alloc(32, 7)
const MESSAGE = '0199a000-0000-7000-8000-000000000001'

describe('the code of a short link', () => {
  test('is the same in every version, since an SMS with it may have been sent before an upgrade', () => {
    // Computed by another program.
    assert.equal(shortCode(KEY, MESSAGE, 0, 0), 'f4yDO2skXxx')
  })

  test('differs for another message, copy, place or key', () => {
    const others = [
      shortCode(KEY, randomUUID(), 0, 0),
      shortCode(KEY, MESSAGE, 1, 0),
      shortCode(KEY, MESSAGE, 0, 1),
      shortCode(KEY, MESSAGE, 1, 11),
      shortCode(KEY, MESSAGE, 11, 1),
      shortCode(randomBytes(32), MESSAGE, 0, 0),
      shortCode(KEY, MESSAGE, 0, 0),
    ]
    assert.equal(new Set(others).size, others.length)
  })

  test('has every letter and digit about equally often at every place', () => {
    const COUNT = 20_000
    const codes = Array.from({ length: COUNT }, (_, index) => shortCode(KEY, MESSAGE, 0, index))
    assert.equal(new Set(codes).size, COUNT)
    assert.ok(codes.every(isShortCode))
    const expected = COUNT / 62
    for (let place = 0; place < CODE_LENGTH; place += 1) {
      const counts = Map.groupBy(codes, (code) => code[place])
      assert.equal(counts.size, 62)
      // Six standard deviations. The codes are the same on every run.
      for (const [letter, of] of counts)
        assert.ok(Math.abs(of.length - expected) < 6 * Math.sqrt(expected), `${letter} at ${place}: ${of.length}`)
    }
  })

  test('is appended to the public URL with its path, with or without a final slash', () => {
    for (const [publicUrl, link] of [
      ['https://m.example', 'https://m.example/l/abcdefghijk'],
      ['https://m.example/', 'https://m.example/l/abcdefghijk'],
      ['https://example.com:8443/herald/', 'https://example.com:8443/herald/l/abcdefghijk'],
    ] as const) {
      assert.equal(shortLink(publicUrl, 'abcdefghijk'), link)
    }
  })

  test('is eleven letters and digits, and no other text is a code', () => {
    for (const text of ['', 'abcdefghij', 'abcdefghijkl', 'abcdefghij-', 'abcdefghijk\n', 'abcdefghijł', 'abcdefghij ', "abcdefghi'1"]) {
      assert.ok(!isShortCode(text), JSON.stringify(text))
    }
  })
})
