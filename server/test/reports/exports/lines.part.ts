import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRewriter } from '../../../src/reports/exports/csv.ts'
import { defused } from './support.ts'

/** What goes in as these pieces, come out whole. */
function rewritten(pieces: Buffer[]): string {
  const out: Buffer[] = []
  const lines = createRewriter((piece) => out.push(piece))
  for (const piece of pieces) lines.write(piece)
  return Buffer.concat([...out, lines.rest()]).toString('utf8')
}

const text = fc.string({
  unit: fc.constantFrom('"', ',', ';', '\t', '\n', '\r', ' ', '+', '=', '＝', '\u200b', '.', ':', 'a', '7', 'ą', '😀', '12:00:00+00'),
  maxLength: 12,
})
const time = fc
  .date({ min: new Date('1970-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString())
const plain = fc.constantFrom('', '+48500100200', 'SENT', '52.5', '-1e-05', '0198c0de-0000-7000-8000-000000000002')
const cell = fc.oneof(
  text.map((value) => ({ from: quoted(value), to: quoted(defused(value)) })),
  time.map((value) => ({ from: asPostgres(value), to: value })),
  plain.map((value) => ({ from: value, to: value })),
)

function quoted(value: string): string {
  return `"${value.replaceAll('"', '""')}"`
}

/** As COPY writes it: without the zeros at the end. */
function asPostgres(iso: string): string {
  return `${iso
    .replace('T', ' ')
    .replace('Z', '')
    .replace(/\.?0*$/, (zeros) => (zeros.startsWith('.') ? '' : zeros.replace(/0+$/, '')))}+00`
}

const lineOf = (cells: string[], end: string) => cells.join(',') + end

test('lines get their CRLF, times their form and formulas their apostrophe, wherever the file is cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(cell, { minLength: 1, maxLength: 6 }), { maxLength: 20 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      (rows, cuts) => {
        const from = Buffer.from(
          rows
            .map((cells) =>
              lineOf(
                cells.map((each) => each.from),
                '\n',
              ),
            )
            .join(''),
        )
        const to = rows
          .map((cells) =>
            lineOf(
              cells.map((each) => each.to),
              '\r\n',
            ),
          )
          .join('')
        const places = [...new Set(cuts.map((cut) => cut % (from.length + 1)))].sort((a, b) => a - b)
        const pieces = [0, ...places].map((begin, index) => from.subarray(begin, places[index] ?? from.length))
        assert.equal(rewritten(pieces), to)
        assert.equal(rewritten(Array.from(from, (_, index) => from.subarray(index, index + 1))), to, 'byte by byte')
      },
    ),
    { numRuns: 150 },
  )
})

test('a long file comes out whole, whatever fits into a piece of it', () => {
  const line = `0198c0de,"${'x'.repeat(70_000)}",2026-11-15 19:00:00.12+00\n`
  const short = '"a",2026-11-15 19:00:00+00\n'.repeat(20_000)
  const expected = line.replace('\n', '\r\n').replace('2026-11-15 19:00:00.12+00', '2026-11-15T19:00:00.120Z')
  const shortExpected = short.replaceAll('2026-11-15 19:00:00+00\n', '2026-11-15T19:00:00.000Z\r\n')
  assert.ok(rewritten([Buffer.from(line + short + line)]) === expected + shortExpected + expected)
})
