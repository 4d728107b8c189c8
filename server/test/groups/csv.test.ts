import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { readRecords } from '../../src/groups/csv.ts'
import { type CsvRecord, MAX_LINE_BYTES } from '../../src/groups/csv-records.ts'

const seed = Date.now() % 2 ** 31

async function read(content: string | Buffer, chunkBytes = Number.POSITIVE_INFINITY): Promise<CsvRecord[]> {
  const bytes = Buffer.from(content)
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  const records: CsvRecord[] = []
  for await (const batch of readRecords(chunks())) records.push(...batch)
  return records
}

const fields = (records: CsvRecord[]) => records.map((record) => ('fields' in record ? record.fields : record.problem))

describe(`CSV (fast-check, seed ${seed})`, () => {
  test('is read as csv-parse reads it, with any separator, line ends and chunks', async () => {
    const field = fc.oneof(fc.stringMatching(/^[a-z0-9 ąé€😀]{0,6}$/u), fc.stringMatching(/^[",;\t\r\na ł]{0,6}$/))
    const file = fc.tuple(
      fc.constantFrom(',', ';', '\t'),
      fc.constantFrom('\n', '\r\n'),
      fc.boolean(),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 2, max: 4 }).chain((count) => fc.array(fc.array(field, { minLength: count, maxLength: count }), { maxLength: 6 })),
    )
    await fc.assert(
      fc.asyncProperty(file, async ([separator, lineEnd, withBom, chunkBytes, rows]) => {
        const header = Array.from({ length: rows[0]?.length ?? 2 }, (_, index) => `c${index}`)
        const text = [header, ...rows].map((row) => row.map((cell) => quoted(cell)).join(separator)).join(lineEnd)
        const content = `${withBom ? '\uFEFF' : ''}${text}${lineEnd}`
        const expected = parse(content, { delimiter: separator, record_delimiter: ['\r\n', '\n'], bom: true, skip_empty_lines: true })
        assert.deepEqual(fields(await read(content, chunkBytes)), expected)
      }),
      { numRuns: 1_000, seed },
    )
  })

  test('has the line on which each record begins', async () => {
    const content = 'a,b\r\n1,"x\r\ny\r\nz"\r\n\r\n2,"""q"""\n3,c'
    assert.deepEqual(await read(content), [
      { line: 1, fields: ['a', 'b'] },
      { line: 2, fields: ['1', 'x\r\ny\r\nz'] },
      { line: 6, fields: ['2', '"q"'] },
      { line: 7, fields: ['3', 'c'] },
    ])
  })

  test('removes a byte order mark only at the beginning of the file', async () => {
    assert.deepEqual(fields(await read('\uFEFFa,\uFEFFb\n')), [['a', '\uFEFFb']])
    assert.deepEqual(fields(await read('a,\uFEFFb\n')), [['a', '\uFEFFb']])
  })

  test('loses only the line with a misplaced or unclosed quote', async () => {
    const content = 'a,b\n1,"never closed\n2,fine\n3,5" pipe\n4,"x"y\n5,"fine, too"\n6,"unclosed at the end\n7,fine\n'
    assert.deepEqual(await read(content), [
      { line: 1, fields: ['a', 'b'] },
      { line: 2, problem: 'there is text after a closing quote' },
      { line: 3, fields: ['2', 'fine'] },
      { line: 4, problem: 'there is a quote inside a field that does not begin with one' },
      { line: 5, problem: 'there is text after a closing quote' },
      { line: 6, fields: ['5', 'fine, too'] },
      { line: 7, problem: 'a quote is opened and never closed' },
      { line: 8, fields: ['7', 'fine'] },
    ])
  })

  test('ends an unclosed quote after 64 KiB, across chunks', async () => {
    const rest = Array.from({ length: 60_000 }, (_, index) => `${index},fine`)
    const records = await read(`a,b\n0,"open\n${rest.join('\n')}\n`, 10_000)
    assert.deepEqual(records[1], { line: 2, problem: 'a quote is opened and never closed within 64 KiB' })
    assert.deepEqual(
      fields(records.slice(2)),
      rest.map((line) => line.split(',')),
    )
    assert.deepEqual(records.at(-1)?.line, 60_002)
  })

  test('has lines of at most 64 KiB', async () => {
    const longest = `1,${'ł'.repeat(MAX_LINE_BYTES / 2 - 1)}`
    const overLines = `"x${'ł'.repeat(MAX_LINE_BYTES / 2 - 2)}\n`
    const records = await read(`a,b\n${longest}\n${longest}x\n\n${overLines}"\n${overLines}z"\n1,2\n`, 50_000)
    assert.deepEqual(
      records.map((record) => [record.line, 'fields' in record ? record.fields.length : record.problem]),
      [
        [1, 2],
        [2, 2],
        [3, 'the line is longer than 64 KiB'],
        [5, 1],
        [7, 'a quote is opened and never closed within 64 KiB'],
        [8, 'there is a quote inside a field that does not begin with one'],
        [9, 2],
      ],
    )
  })

  test('loses only a line of megabytes', async () => {
    const records = await read(`a,b\n${'x'.repeat(3_000_000)}\n"${'y'.repeat(700_000)}"\n1,2`, 65_536)
    const problem = 'the line is longer than 64 KiB'
    assert.deepEqual(records, [
      { line: 1, fields: ['a', 'b'] },
      { line: 2, problem },
      { line: 3, problem },
      { line: 4, fields: ['1', '2'] },
    ])
  })

  test('loses only the line with bytes that are not UTF-8', async () => {
    const content = Buffer.concat([
      Buffer.from('a,b\n1,ł\n2,'),
      Buffer.from([0xb3]),
      Buffer.from('\n3,ł\n4,"x\n'),
      Buffer.from([0xff]),
      Buffer.from('"\n5,6'),
    ])
    assert.deepEqual(await read(content), [
      { line: 1, fields: ['a', 'b'] },
      { line: 2, fields: ['1', 'ł'] },
      { line: 3, problem: 'the line is not UTF-8' },
      { line: 4, fields: ['3', 'ł'] },
      { line: 5, problem: 'a quote is opened and never closed, or continues in a line that is not UTF-8' },
      { line: 6, problem: 'the line is not UTF-8' },
      { line: 7, fields: ['5', '6'] },
    ])
  })

  test('has the separator that is most frequent in the header, outside of quotes', async () => {
    assert.deepEqual(fields(await read('phone;"a,b,c"\n1;2,5')), [
      ['phone', 'a,b,c'],
      ['1', '2,5'],
    ])
    assert.deepEqual(fields(await read('phone\ta;b\tc\n1\t2\t3')), [
      ['phone', 'a;b', 'c'],
      ['1', '2', '3'],
    ])
    assert.deepEqual(fields(await read('phone\n1\n')), [['phone'], ['1']])
  })
})

function quoted(cell: string): string {
  return /[",;\t\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}
