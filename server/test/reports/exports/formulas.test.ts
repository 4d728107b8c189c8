import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { csvRow } from '../../../src/reports/exports/csv.ts'
import { createTestDatabase } from '../../support/database.ts'
import { writeCampaign, writeMessages } from '../api/past.ts'
import { phone, startReportService } from '../api/support.ts'
import { cellsBy, defused, readCsv, readZip, startsFormula } from './support.ts'

const database = await createTestDatabase({ unlogged: 'messages are written by hand' })
const { pool } = database
const { url, newCaller } = await startReportService(database)

type Caller = Awaited<ReturnType<typeof newCaller>>

async function download({ authorization }: Caller, path: string) {
  const response = await fetch(`${url}/v1/reports${path}`, { headers: { authorization } })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, contentType: response.headers.get('content-type'), bytes }
}

/** A message for each text, which is its reference. */
async function writeTexts(caller: Caller, texts: string[]): Promise<void> {
  const written = await writeMessages(
    pool,
    caller,
    texts.map((_, index) => ({ recipient: phone(index), acceptedAt: '2026-10-01T00:00:00.000Z' })),
  )
  await pool.query(
    `update messages m set client_reference_id = t.text from unnest($1::uuid[], $2::text[]) as t (id, text) where m.id = t.id`,
    [written.map(({ messageId }) => messageId), texts],
  )
}

const CHANGED: [text: string, exported: string][] = [
  ['=1+1', "'=1+1"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  [' =1', " '=1"],
  ['\t1', "'\t1"],
  ['\r1', "'\r1"],
  ['\n=1', "'\n'=1"],
  ['＝1', "'＝1"],
  ['\u200b=1', "\u200b'=1"],
  ['\u2066=1', "\u2066'=1"],
  ['\u00ad@x', "\u00ad'@x"],
  ['\u{e0020}=x', "\u{e0020}'=x"],
  ['=1"', '\'=1"'],
  ["x;=cmd|'/C calc'!A0;", "x;'=cmd|'/C calc'!A0;"],
  ["x,=cmd|'/C calc'!A0", "x,'=cmd|'/C calc'!A0"],
  ['x\t=cmd', "x\t'=cmd"],
  ['x|=cmd', "x|'=cmd"],
  ['ok\n=cmd', "ok\n'=cmd"],
  ['ok\r\n=cmd', "ok\r\n'=cmd"],
  ['ok\r@cmd', "ok\r'@cmd"],
  ['ok\v=cmd', "ok\v'=cmd"],
  ['a;"=x"', 'a;"\'=x"'],
  ['a; " "=x', 'a; " "\'=x'],
  ['"=x', '"\'=x'],
  ['a;\u00a0＋x', "a;\u00a0'＋x"],
  ['a;=1;=2,-3', "a;'=1;'=2,'-3"],
  ['Thanks - see you at 5; +48 600 100 200', "Thanks - see you at 5; '+48 600 100 200"],
]

const UNCHANGED = [
  ...['', 'order 1', 'order-1', 'a=1', '"', '""', 'a,b;c', 'a\nb', 'a\r\nb\rc', "'=1", "a;'=1", '1+1'],
  ...['me@example.com; you@example.com', 'https://example.com/?a=1&b=-2', 'Call 48 600-100-200, or +48 600 100 200', 'ą€😀\u2028'],
  ...['a; ą=1', '12:30:00+00', ' 2026-11-15 19:00:00+00', '\\.', '\\N', ';', 'a;', 'a;"'],
]

describe('a text in an export', () => {
  test('gets an apostrophe before each character that could start a formula, and no other change', async () => {
    const caller = await newCaller()
    await writeTexts(caller, [...CHANGED.map(([text]) => text), ...UNCHANGED])
    const { bytes } = await download(caller, '/messages/export')
    const found = readCsv(bytes.toString('utf8')).map(({ clientReferenceId }) => clientReferenceId)
    assert.deepEqual(found, [...CHANGED.map(([, exported]) => exported), ...UNCHANGED])
    for (const [text, exported] of CHANGED) assert.equal(defused(text), exported)
  })

  test('starts no formula in a spreadsheet that separates cells by ; , | or tab', async () => {
    const caller = await newCaller()
    await writeTexts(caller, [...CHANGED.map(([text]) => text), ...UNCHANGED])
    const file = (await download(caller, '/messages/export')).bytes.toString('utf8')
    for (const separator of [';', '|', '\t']) assert.deepEqual(cellsBy(separator, file).filter(startsFormula), [], separator)
    const numbers = new Set(readCsv(file).map(({ recipient }) => recipient))
    assert.deepEqual(
      cellsBy(',', file).filter((cell) => startsFormula(cell) && !numbers.has(cell)),
      [],
    )
  })

  test('is defused in actions.csv, which has texts of recipients', async () => {
    const caller = await newCaller()
    const actions = CHANGED.map(([text]) => ({ kind: 'wrote', at: '2026-11-02T09:00:00.500Z', text }) as const)
    const message = { recipient: phone(1), acceptedAt: '2026-11-01T00:00:00.000Z', sentAt: '2026-11-01T00:00:01.000Z' }
    const { campaignId } = await writeCampaign(pool, caller, [{ ...message, actions }])
    const { bytes } = await download(caller, `/campaigns/${campaignId}/all-data-export`)
    const rows = readCsv(readZip(bytes).get('actions.csv') ?? '')
    assert.equal(rows.length, CHANGED.length)
    assert.deepEqual(new Set(rows.map(({ text }) => text)), new Set(CHANGED.map(([, exported]) => exported)))
  })
})

const unit = fc.constantFrom(';', ',', '|', '\t', '\n', '\r', '"', "'", ' ', '=', '+', '-', '@', '＝', '\u200b', '\u00a0', 'a', 'ą', '😀')
const texts = fc.array(fc.tuple(fc.string({ unit, maxLength: 10 }), fc.string({ unit, maxLength: 10 })), { maxLength: 6 })
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

test('starts no formula in any combination of texts, separators and quotes', () => {
  fc.assert(
    fc.property(texts, (rows) => {
      const file = rows.map(([one, other]) => csvRow(`id,${quoted(one)},${quoted(other)},SENT\n`)).join('')
      for (const separator of [',', ';', '|', '\t']) {
        assert.deepEqual(cellsBy(separator, file).filter(startsFormula), [], JSON.stringify([separator, file]))
        const split = file.split(/[\r\n]/).flatMap((line) => line.split(separator))
        assert.deepEqual(split.filter(startsFormula), [], JSON.stringify([separator, file]))
      }
      const cells = parse(file, { record_delimiter: '\r\n' }) as string[][]
      assert.deepEqual(
        cells.map(([, one, other]) => [one, other]),
        rows.map((row) => row.map(defused)),
      )
    }),
    { numRuns: 500 },
  )
})

describe('?bom=true', () => {
  const BOM = Buffer.from([0xef, 0xbb, 0xbf])

  test('puts the three bytes of a byte-order mark before the file, and changes no other byte', async () => {
    const caller = await newCaller()
    await writeTexts(caller, ['Zażółć', 'x;=1'])
    const plain = await download(caller, '/messages/export')
    const marked = await download(caller, '/messages/export?bom=true')
    assert.deepEqual([marked.status, marked.contentType], [200, 'text/csv; charset=utf-8'])
    assert.ok(marked.bytes.equals(Buffer.concat([BOM, plain.bytes])))
    assert.equal(plain.bytes.subarray(0, 10).toString(), 'messageId,')
    assert.ok((await download(caller, '/messages/export?bom=false')).bytes.equals(plain.bytes))
    const none = await download(await newCaller(), '/messages/export?bom=true')
    assert.match(none.bytes.toString('utf8'), /^\ufeffmessageId,[^\n]*\r\n$/)
  })

  test('puts it before each file of an archive', async () => {
    const caller = await newCaller()
    const { campaignId } = await writeCampaign(pool, caller, [{ recipient: phone(1), acceptedAt: '2026-11-01T00:00:00.000Z' }])
    const filesOf = async (query: string) => readZip((await download(caller, `/campaigns/${campaignId}/all-data-export${query}`)).bytes)
    const [plain, marked] = [await filesOf(''), await filesOf('?bom=true')]
    assert.equal(plain.size, 4)
    assert.deepEqual(
      [...marked],
      [...plain].map(([name, text]) => [name, `\ufeff${text}`]),
    )
  })

  test('rejects other values than true and false', async () => {
    const caller = await newCaller()
    const { campaignId } = await writeCampaign(pool, caller, [])
    for (const path of ['/messages/export', `/campaigns/${campaignId}/all-data-export`]) {
      for (const query of ['bom=', 'bom=1', 'bom=TRUE', 'bom=yes', 'bom=true&bom=true']) {
        const { status, body } = await caller.get(`${path}?${query}`)
        const details = [{ path: '/bom', reason: 'must be true or false' }]
        assert.deepEqual([status, body.code, body.details], [400, 'RCS_INVALID_REQUEST', details], query)
      }
    }
  })

  const PYTHON = `
import csv, io, json, sys
text = sys.stdin.buffer.read().decode('utf-8-sig')
json.dump(list(csv.reader(io.StringIO(text, newline=''))), sys.stdout)`
  const hasPython = spawnSync('python3', ['--version']).status === 0

  test('makes a file that Python’s csv.reader reads cell by cell, with it and without', { skip: !hasPython && 'no python3' }, async () => {
    const caller = await newCaller()
    await writeTexts(caller, [...CHANGED.map(([text]) => text), ...UNCHANGED])
    for (const query of ['', '?bom=true']) {
      const { bytes } = await download(caller, `/messages/export${query}`)
      const { stdout, stderr } = spawnSync('python3', ['-c', PYTHON], { input: bytes, encoding: 'utf8' })
      assert.equal(stderr, '')
      const rows = JSON.parse(stdout) as string[][]
      assert.deepEqual(rows, parse(bytes, { record_delimiter: '\r\n', bom: true }))
      assert.deepEqual(
        rows.slice(1).map((cells) => cells[1]),
        [...CHANGED.map(([, exported]) => exported), ...UNCHANGED],
      )
    }
  })
})
