import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { SegmentedMessage } from 'sms-segments-calculator'
import splitSms from 'split-sms'
import { countSeptets, encodeGsm7 } from '../../src/sms/gsm7.ts'
import { measureText, type SmsEncoding, splitText, type TextSegment } from '../../src/sms/segments.ts'

const seed = Date.now() % 2 ** 31
const runs = { numRuns: 100, seed }

// The names of the two packages. Neither knows national shift tables, and without its third argument the calculator replaces no character.
const CALCULATOR_NAMES = { GSM7: 'GSM-7', UCS2: 'UCS-2' } as const
const SPLITTER_NAMES = { GSM7: 'GSM', UCS2: 'Unicode' } as const

function countsOf(text: string, wanted?: SmsEncoding) {
  const ours = measureText(text, wanted)
  const calculator = new SegmentedMessage(text, wanted === undefined ? 'auto' : CALCULATOR_NAMES[wanted])
  const splitter = splitSms.split(text, wanted === undefined ? {} : { characterset: SPLITTER_NAMES[wanted] })
  return {
    ours: [CALCULATOR_NAMES[ours.encoding], SPLITTER_NAMES[ours.encoding], ours.segments, ours.units, ours.segments],
    theirs: [
      calculator.encodingName,
      splitter.characterSet,
      calculator.segmentsCount,
      ours.encoding === 'GSM7' ? splitter.bytes : splitter.bytes / 2,
      splitter.parts.length,
    ],
  }
}

const segmentsOf = (text: string, wanted?: SmsEncoding) => splitText(text, 0, wanted).map((segment) => segment.text)
const splitterSegments = (text: string, wanted?: SmsEncoding) =>
  splitSms.split(text, wanted === undefined ? {} : { characterset: SPLITTER_NAMES[wanted] }).parts.map(({ content }) => content)

// Runs of one character with lengths near the limits, so that most texts have a limit within them.
const runLength = fc.oneof(
  fc.integer({ min: 1, max: 4 }),
  fc.constantFrom(1, 2).chain((least) => fc.integer({ min: 64 * least, max: 80 * least })),
)
const textOf = (characters: string[]) =>
  fc
    .array(fc.tuple(fc.constantFrom(...characters), runLength), { maxLength: 8 })
    .map((pieces) => pieces.map(([character, length]) => character.repeat(length)).join(''))
const everyCodeUnit = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
const gsm7 = everyCodeUnit.filter((character) => countSeptets(character) !== undefined)
const gsm7Text = fc.oneof(textOf(gsm7), textOf([...'a€[\n']), fc.string({ unit: fc.constantFrom(...gsm7), maxLength: 500 }))
// None of these combines with its neighbour to one sign.
const anyText = fc.oneof(gsm7Text, textOf([...'aą€[ж’漢\n😀🎉']), fc.string({ unit: fc.constantFrom(...'aą€ж漢😀'), maxLength: 400 }))
const anyCharacter = fc
  .nat(0x10ffff)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))

describe(`splitting agrees with two other packages (fast-check, seed ${seed})`, () => {
  test('at every limit', () => {
    const lengths = [0, 1, 35, 36, 66, 67, 68, 70, 71, 76, 77, 80, 81, 134, 135, 152, 153, 154, 160, 161, 201, 202, 306, 307, 459, 460]
    for (const character of ['a', '€', 'ł', '😀'])
      for (const length of lengths) {
        const text = character.repeat(length)
        const { ours, theirs } = countsOf(text)
        assert.deepEqual(ours, theirs, `${length} of ${character}`)
        assert.deepEqual(segmentsOf(text), splitterSegments(text), `${length} of ${character}`)
      }
  })

  test('on the encoding, the count and the segments of any text', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const { ours, theirs } = countsOf(text)
        assert.deepEqual(ours, theirs)
        assert.deepEqual(segmentsOf(text), splitterSegments(text))
      }),
      runs,
    )
  })

  test('on the encoding, the count and the segments of any text in a wanted encoding', () => {
    const wanted = fc.oneof(
      fc.tuple(gsm7Text, fc.constantFrom('GSM7' as const, 'UCS2' as const)),
      fc.tuple(anyText, fc.constant('UCS2' as const)),
    )
    fc.assert(
      fc.property(wanted, ([text, encoding]) => {
        const { ours, theirs } = countsOf(text, encoding)
        assert.deepEqual(ours, theirs)
        assert.deepEqual(segmentsOf(text, encoding), splitterSegments(text, encoding))
      }),
      runs,
    )
  })

  // The calculator keeps a sign of several characters (a letter with a combining mark, a family of emoji) in one segment. Phones put the segments
  // together before they show them, so we fill each segment, as split-sms does: never more segments than the calculator's.
  test('except that it splits signs of several characters, and so needs no more segments than the calculator', () => {
    for (const [sign, times] of [
      ['🇵🇱', 33],
      ['e\u0301', 67],
    ] as const) {
      assert.equal(measureText(sign.repeat(times)).segments, 2)
      assert.equal(new SegmentedMessage(sign.repeat(times)).segmentsCount, 3)
    }
    const sign = fc.oneof(fc.constantFrom('👩‍👩‍👧‍👦', 'e\u0301', '🇵🇱', '👍🏽', 'a', '\r\n'), anyCharacter)
    const joined = fc.array(sign, { maxLength: 200 }).map((signs) => signs.join(''))
    fc.assert(
      fc.property(joined, (text) => {
        const calculator = new SegmentedMessage(text)
        const { encoding, segments } = measureText(text)
        assert.equal(CALCULATOR_NAMES[encoding], calculator.encodingName)
        assert.ok(segments <= calculator.segmentsCount, `${segments} segments, ${calculator.segmentsCount} by the calculator`)
        assert.deepEqual(segmentsOf(text), splitterSegments(text))
      }),
      runs,
    )
  })

  test('and the segments join to the text, fit, and split no escape or surrogate pair', () => {
    const text = fc.oneof(
      anyText,
      fc.array(anyCharacter, { maxLength: 400 }).map((characters) => characters.join('')),
    )
    fc.assert(
      fc.property(text, fc.constantFrom(undefined, 'UCS2' as const), (content, wanted) => {
        const segments = splitText(content, 0, wanted)
        assert.equal(segments.map((segment) => segment.text).join(''), content)
        for (const segment of segments) assertFits(segment, segments.length === 1)
      }),
      runs,
    )
  })
})

function assertFits({ encoding, text }: TextSegment, isSingle: boolean): void {
  assert.ok(text.isWellFormed())
  if (encoding === 'UCS2') assert.ok(text.length <= (isSingle ? 70 : 67))
  else {
    const octets = encodeGsm7(text)
    assert.ok(octets !== undefined && octets.length <= (isSingle ? 160 : 153))
    assert.notEqual(octets.at(-1), 0x1b)
  }
}
