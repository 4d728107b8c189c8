import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readRecords } from '../../../server/src/groups/csv.ts'
import { headerOf, namesOf, USES, type Use } from '../../src/pages/groups/import/columns.ts'
import { PREVIEWED, readHead } from '../../src/pages/groups/import/file-head.ts'
import { rewrite } from '../../src/pages/groups/import/rewrite.ts'

async function imported(file: Blob) {
  const records = []
  for await (const batch of readRecords(file.stream() as unknown as AsyncIterable<Uint8Array>)) records.push(...batch)
  return records
}

const TEXT = fc.stringMatching(/^[",;\t\r\na ł\u{FEFF}]{0,8}$/u)

test('the preview has the lines that the import reads', async () => {
  const file = fc.tuple(fc.boolean(), fc.array(TEXT, { maxLength: 30 }), fc.constantFrom('\n', '\r\n'))
  await fc.assert(
    fc.asyncProperty(file, async ([withBom, lines, lineEnd]) => {
      const content = new File([withBom ? '\uFEFF' : '', lines.join(lineEnd)], 'a.csv')
      const records = await imported(content)
      const head = await readHead(content)
      assert.deepEqual(head?.records ?? [], records.slice(0, PREVIEWED + 1))
    }),
    { numRuns: 500 },
  )
})

test('what is sent has the other lines of the file behind a header of its own', async () => {
  const content = new File(['\uFEFF\n"na\nme",phone\nAnna,+48500100200\n\n"a\nb",+48500100201\n'], 'a.csv')
  const head = (await readHead(content)) as NonNullable<Awaited<ReturnType<typeof readHead>>>
  const header = headerOf(
    [
      { name: 'na me', use: 'attribute' },
      { name: 'phone', use: 'phone' },
    ],
    head.separator,
  )
  assert.deepEqual(await imported(new Blob([header, content.slice(head.second.at)])), [
    { line: 1, fields: ['na me', 'phone'] },
    { line: 2, fields: ['Anna', '+48500100200'] },
    { line: 4, fields: ['a\nb', '+48500100201'] },
  ])
  assert.equal(head.second.linesBefore, 3)
})

test('reads only the beginning of a file of any length', async () => {
  const lines = Array.from({ length: 100_000 }, (_, index) => `+48${500_100_000 + index},ą`)
  const head = await readHead(new File([`phone,name\n${lines.join('\n')}`], 'a.csv'))
  assert.equal(head?.records.length, PREVIEWED + 1)
  assert.equal(head?.lines.isExact, false)
  assert.ok(Math.abs((head?.lines.count ?? 0) - 100_000) < 100, `${head?.lines.count}`)
})

test('the header has a different name for each column, and separates them as the file does', () => {
  const names = ['city', 'City', 'phone', 'city 2', 'a"b', 'x;y', 'timezone']
  const columns = names.map((name, index) => ({ name, use: (index === 0 ? 'phone' : 'attribute') as Use }))
  assert.deepEqual(namesOf(columns), ['phone', 'City', 'phone 2', 'city 2', 'a"b', 'x;y', 'timezone 2'])
  assert.equal(headerOf(columns, ';'), '"phone";"City";"phone 2";"city 2";"a""b";"x;y";"timezone 2"\n')
  assert.ok(USES.includes('attribute'))
})

test('columns that are left out are not sent, and all other fields keep their lines', async () => {
  const file = fc.tuple(fc.array(fc.array(TEXT, { minLength: 1, maxLength: 4 }), { maxLength: 30 }), fc.constantFrom('\n', '\r\n'))
  const columns = [{ name: 'phone', use: 'phone' as Use }, ...['secret', 'other'].map((name) => ({ name, use: 'none' as Use }))]
  await fc.assert(
    fc.asyncProperty(file, async ([rows, lineEnd]) => {
      const quote = (text: string, index: number) => (index % 5 === 4 ? text : `"${text.replaceAll('"', '""')}"`)
      const rest = new Blob([rows.map((row, line) => row.map((text, index) => quote(text, line + index)).join(',')).join(lineEnd)])
      const header = headerOf(columns, ',')
      const expected = (await imported(new Blob([header, rest]))).map((record) => {
        const isRejected = 'problem' in record || record.fields.length !== columns.length
        return isRejected
          ? record.line
          : { line: record.line, fields: [record.fields[0], ...(record.line === 1 ? ['secret', 'other'] : ['', ''])] }
      })
      const { parts, rejected } = await rewrite({ rest, columns, separator: ',', signal: new AbortController().signal, onShare: () => {} })
      const sent = await imported(new Blob([header, ...parts]))
      assert.deepEqual(
        sent,
        expected.filter((each) => typeof each !== 'number'),
      )
      assert.deepEqual(
        rejected.map(({ line }) => line),
        expected.filter((each) => typeof each === 'number'),
      )
    }),
    { numRuns: 500 },
  )
})

test('a file of several blocks is rewritten with its lines in order', async () => {
  const lines = Array.from({ length: 60_000 }, (_, index) =>
    index % 1_000 === 7 ? `"${index}\nmore",secret` : `${index},secret ${'x'.repeat(40)}`,
  )
  const columns = [
    { name: 'phone', use: 'phone' as Use },
    { name: 'secret', use: 'none' as Use },
  ]
  const rest = new Blob([lines.join('\n')])
  const { parts } = await rewrite({ rest, columns, separator: ',', signal: new AbortController().signal, onShare: () => {} })
  const [given, sent] = [await imported(new Blob(['phone,secret\n', rest])), await imported(new Blob(['phone,secret\n', ...parts]))]
  assert.ok(parts.length > 2)
  assert.deepEqual(
    sent.slice(1),
    given.slice(1).map((record) => ({ ...record, ...('fields' in record && { fields: [record.fields[0], ''] }) })),
  )
})
