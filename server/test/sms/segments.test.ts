import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MAX_SEGMENT_NUMBER, measureText, splitText } from '../../src/sms/segments.ts'

const lengths = (text: string) => splitText(text, 7).map((segment) => segment.text.length)

describe('the segments of an SMS', () => {
  test('are counted as the standard says', () => {
    for (const [text, encoding, units, segments] of [
      ['', 'GSM7', 0, 1],
      ['a'.repeat(160), 'GSM7', 160, 1],
      ['a'.repeat(161), 'GSM7', 161, 2],
      ['a'.repeat(153), 'GSM7', 153, 1],
      ['a'.repeat(306), 'GSM7', 306, 2],
      ['a'.repeat(307), 'GSM7', 307, 3],
      ['€'.repeat(80), 'GSM7', 160, 1],
      ['€'.repeat(81), 'GSM7', 162, 2],
      ['ł'.repeat(67), 'UCS2', 67, 1],
      ['ł'.repeat(70), 'UCS2', 70, 1],
      ['ł'.repeat(71), 'UCS2', 71, 2],
      ['ł'.repeat(134), 'UCS2', 134, 2],
      ['ł'.repeat(135), 'UCS2', 135, 3],
      ['😀'.repeat(35), 'UCS2', 70, 1],
      ['😀'.repeat(36), 'UCS2', 72, 2],
      [`${'a'.repeat(70)}ł`, 'UCS2', 71, 2],
    ] as const) {
      assert.deepEqual(measureText(text), { encoding, units, segments }, `${text.slice(0, 4)}… of ${text.length}`)
      assert.equal(splitText(text, 0).length, segments)
    }
  })

  test('are split and counted in the wanted encoding', () => {
    assert.deepEqual(measureText('€'.repeat(70), 'UCS2'), { encoding: 'UCS2', units: 70, segments: 1 })
    assert.deepEqual(measureText('a'.repeat(135), 'UCS2'), { encoding: 'UCS2', units: 135, segments: 3 })
    assert.deepEqual(
      splitText('a'.repeat(135), 9, 'UCS2').map(({ encoding, text, concatenation }) => [encoding, text.length, concatenation?.total]),
      [67, 67, 1].map((length) => ['UCS2', length, 3]),
    )
    for (const text of ['', 'a'.repeat(161), '€'.repeat(81)]) {
      assert.deepEqual(measureText(text, 'GSM7'), measureText(text))
      assert.deepEqual(splitText(text, 9, 'GSM7'), splitText(text, 9))
    }
  })

  test('throw for GSM-7 if the text does not fit it', () => {
    assert.throws(() => measureText('aą', 'GSM7'), RangeError)
    assert.throws(() => splitText('aą', 0, 'GSM7'), RangeError)
    assert.throws(() => splitText('\u001b', 0, 'GSM7'), RangeError)
  })

  test('keep escaped characters and surrogate pairs whole', () => {
    assert.deepEqual(lengths(`${'a'.repeat(152)}€${'a'.repeat(20)}`), [152, 21])
    assert.deepEqual(lengths(`${'ł'.repeat(66)}😀${'ł'.repeat(20)}`), [66, 22])
    assert.deepEqual(lengths('€'.repeat(153)), [76, 76, 1])
    assert.deepEqual(lengths('😀'.repeat(67)), [66, 66, 2])
    // Half a pair is not kept with its neighbour.
    assert.deepEqual(lengths('\ud83d'.repeat(71)), [67, 4])
  })

  test('are numbered from one and share their reference; a single SMS has no header', () => {
    assert.deepEqual(splitText('short', 200), [{ encoding: 'GSM7', text: 'short' }])
    assert.deepEqual(
      splitText('ż'.repeat(70 + 67), 200).map(({ encoding, concatenation }) => ({ encoding, ...concatenation })),
      [1, 2, 3].map((number) => ({ encoding: 'UCS2', reference: 200, total: 3, number })),
    )
  })

  test('are at most 255', () => {
    assert.equal(splitText('a'.repeat(153 * MAX_SEGMENT_NUMBER), 0).length, 255)
    assert.equal(measureText('a'.repeat(153 * MAX_SEGMENT_NUMBER + 1)).segments, 256)
    assert.throws(() => splitText('a'.repeat(153 * MAX_SEGMENT_NUMBER + 1), 0), RangeError)
  })
})
