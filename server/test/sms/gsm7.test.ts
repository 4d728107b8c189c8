import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { countSeptets, decodeGsm7, encodeGsm7 } from '../../src/sms/gsm7.ts'
import { foreign } from '../carriers/smpp/foreign.ts'

const seed = Date.now() % 2 ** 31
const everyCodeUnit = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
const alphabet = everyCodeUnit.filter((character) => countSeptets(character) !== undefined)

describe(`GSM-7 (fast-check, seed ${seed})`, () => {
  test('has 137 characters: 127 of one septet, 10 of two', () => {
    assert.equal(alphabet.length, 137)
    assert.deepEqual(new Set(alphabet.filter((character) => countSeptets(character) === 2)), new Set('\f^{}\\[~]|€'))
  })

  test('has French, German and Greek letters, but no Polish ones, no ç and no typographic apostrophe', () => {
    for (const character of 'ąćęłńóśźżĄĆĘŁŃÓŚŹŻç’\u001b\u00a0😀') assert.equal(countSeptets(character), undefined, character)
    for (const character of 'èéàùìòÇäöüßñÑåØΔΩ@£¥§¿¡') assert.equal(countSeptets(character), 1, character)
    assert.equal(countSeptets('aą'), undefined)
    assert.equal(encodeGsm7('aą'), undefined)
    assert.equal(countSeptets(''), 0)
  })

  test('is encoded by 3GPP TS 23.038', () => {
    assert.equal(Buffer.from(encodeGsm7('@£$ Az_€[à\n') ?? '').toString('hex'), '00010220417a111b651b3c7f0a')
    assert.equal(encodeGsm7('')?.length, 0)
  })

  test('is decoded to the same text, by another implementation too', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 200 }), (text) => {
        const octets = Buffer.from(encodeGsm7(text) as Uint8Array)
        assert.equal(octets.length, countSeptets(text))
        assert.equal(decodeGsm7(octets), text)
        assert.deepEqual(octets, foreign.encodings.ASCII.encode(text))
        assert.equal(foreign.encodings.ASCII.decode(octets), text)
      }),
      { numRuns: 500, seed },
    )
  })

  test('is decoded from any octets; an escape shows the basic character if the extension has none', () => {
    assert.equal(decodeGsm7(Buffer.from([0x41, 0x1b, 0x41, 0x42])), 'AAB')
    assert.equal(decodeGsm7(Buffer.from([0x41, 0x1b])), 'A ')
    assert.equal(decodeGsm7(Buffer.from([0x1b, 0x1b, 0x41])), ' A')
    assert.equal(decodeGsm7(Buffer.from([0x41, 0x80, 0xff])), 'A\ufffd\ufffd')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
        assert.ok(decodeGsm7(octets).length <= octets.length)
      }),
      { numRuns: 500, seed },
    )
  })
})
