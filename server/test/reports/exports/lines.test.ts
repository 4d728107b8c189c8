import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { csvRow } from '../../../src/reports/exports/csv.ts'
import { createTestDatabase } from '../../support/database.ts'
import { readCopy } from './clients.ts'
import { defused } from './support.ts'

const { pool } = await createTestDatabase()

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

/** As COPY writes it: without trailing zeros. */
function asPostgres(iso: string): string {
  return `${iso
    .replace('T', ' ')
    .replace('Z', '')
    .replace(/\.?0*$/, (zeros) => (zeros.startsWith('.') ? '' : zeros.replace(/0+$/, '')))}+00`
}

test('ends rows with CRLF, writes times as the API does, and defuses formulas', () => {
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 6 }), (cells) => {
      const joined = (side: 'from' | 'to') => cells.map((each) => each[side]).join()
      assert.equal(csvRow(`${joined('from')}\n`), `${joined('to')}\r\n`)
    }),
    { numRuns: 3_000 },
  )
})

test('writes a long file completely', async () => {
  const rows = `select repeat('x', 70000) as text, '2026-11-15T19:00:00.12Z'::timestamptz as time from generate_series(1, 20)`
  const file = await readCopy(pool, `copy (${rows}) to stdout (format csv, force_quote (text))`)
  assert.ok(file === `"${'x'.repeat(70_000)}",2026-11-15T19:00:00.120Z\r\n`.repeat(20))
})
