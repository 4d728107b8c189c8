import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { request } from 'undici'
import { ZipFile } from 'yazl'
import { createTestDatabase } from '../../../test/support/database.ts'
import { startHerald } from '../../../test/support/process.ts'
import { createAssignedAgent, createCaller } from '../../../test/support/service.ts'

// Archives, read by programs that share no line with us: unzip, and Python's zipfile. With --full they are larger than 4 GiB.

const isFull = process.env.HERALD_CHAOS_FULL === 'true'
/** The largest size or offset in four bytes; a larger archive has to be Zip64. */
const MAX_ZIP32 = 2 ** 32 - 1
const MAX_LINES_OF_OLD_SHEETS = 65_535

/** CI installs both programs, so it does not skip. */
function missingProgram(): string | false {
  try {
    execFileSync('unzip', ['-v'], { stdio: 'ignore' })
    execFileSync('python3', ['--version'], { stdio: 'ignore' })
    return false
  } catch {
    return process.env.CI === undefined && 'needs unzip and python3: apt-get install unzip python3'
  }
}

/** `lengths`: how many characters each column of the CSV has in all its records. */
type ReadFile = {
  size: number
  sizeSaid: number
  compressed: number
  offset: number
  lines: number
  lineFeeds: number
  rows: number
  lengths: Record<string, number>
}

/** Stores an archive, and reads every file of it to its end with both programs, which compare its content with its CRC. */
async function readArchive(archive: Readable): Promise<Map<string, ReadFile>> {
  const dir = mkdtempSync(join(tmpdir(), 'herald-exports-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'archive.zip')
  await pipeline(archive, createWriteStream(path))
  const { stdout } = await promisify(execFile)('unzip', ['-t', path])
  assert.match(stdout, /No errors detected/)
  const read = await promisify(execFile)('python3', [fileURLToPath(new URL('./read-archive.py', import.meta.url)), path])
  const files = new Map(Object.entries(JSON.parse(read.stdout) as Record<string, ReadFile>))
  for (const { size, sizeSaid } of files.values()) assert.equal(size, sizeSaid)
  return files
}

describe('the archive of a large campaign', { skip: missingProgram() }, () => {
  const MESSAGES = 70_000
  const ACTIONS = isFull ? 1_500_000 : 70_000
  const TEXT_LENGTH = isFull ? 3_000 : 100
  const CHUNK = 50_000

  test(`is complete with over ${MAX_LINES_OF_OLD_SHEETS} lines${isFull ? ' and over 4 GiB' : ''}, and has what the database has`, async () => {
    const { url, pool } = await createTestDatabase({ uncounted: 'the rows are written by hand, because of their number' })
    const caller = await createCaller(pool)
    const agentId = await createAssignedAgent(pool, caller.accountId)
    const client = new pg.Client(url)
    await client.connect()
    const campaignId = await writeCampaign(client, caller.accountId, agentId)
    const herald = await startHerald({ HERALD_DATABASE_URL: url })
    const headers = { authorization: caller.authorization }
    const response = await request(`${herald.url}/v1/reports/campaigns/${campaignId}/all-data-export`, { headers })
    assert.deepEqual([response.statusCode, response.headers['content-type']], [200, 'application/zip'])

    const files = await readArchive(response.body)
    assert.deepEqual([...files.keys()], ['summary.csv', 'aggregations.csv', 'recipients.csv', 'actions.csv'])
    for (const [name, { rows, lines, lineFeeds }] of files) {
      // One line a record, each with the line end of RFC 4180.
      assert.deepEqual({ name, lines, lineFeeds }, { name, lines: rows + 1, lineFeeds: rows + 1 })
    }
    const { rows } = await client.query(
      `select (select count(*)::int from messages where campaign_id = $1) as messages, count(*)::int as actions,
         sum(length(text))::float8 as text, sum(length(recipient))::float8 as recipient
       from recipient_actions where campaign_id = $1`,
      [campaignId],
    )
    await client.end()
    const [recipients, actions] = [files.get('recipients.csv'), files.get('actions.csv')]
    const found = { messages: recipients?.rows, actions: actions?.rows, text: actions?.lengths.text, recipient: actions?.lengths.recipient }
    assert.deepEqual(found, rows[0])
    assert.ok(found.messages === MESSAGES && MESSAGES > MAX_LINES_OF_OLD_SHEETS && ACTIONS > MAX_LINES_OF_OLD_SHEETS)
    if (isFull) assert.ok((actions?.size ?? 0) > MAX_ZIP32)
  })

  /** Every recipient has read the message, and wrote something long, again and again. */
  async function writeCampaign(client: pg.Client, accountId: number, agentId: string): Promise<string> {
    const { rows } = await client.query<{ id: string; contentId: string; prefix: string }>(
      `with content as (
         insert into contents (account_id, basic, message) values ($1, false, '{"type":"MESSAGE","content":"Write to us!"}') returning id
       )
       insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, fan_out_completed_at, completed_at, recipients)
       select uuid_v7(), $1, $2, 'Large', '{1}', false, id, 'COMPLETED', now(), now(), now(), now(), $3 from content returning id, content_id as "contentId", left(id::text, 24) as prefix`,
      [accountId, agentId, MESSAGES],
    )
    const [{ id, contentId, prefix } = { id: '', contentId: '', prefix: '' }] = rows
    // Ids of one moment, with a number at the end.
    const idOf = (number: string) => `('${prefix}' || lpad((${number})::text, 12, '0'))::uuid`
    await client.query(
      `insert into messages (id, account_id, agent_id, recipient, status, basic, test, content_id, expires_at, sent_at, delivered_at, read_at, traffic, campaign_id)
       select ${idOf('n')}, $1, $2, '+48' || 500000000 + n, 'READ', false, false, $3, now() + interval '1 day', now(), now(), now(), 'PROMOTION', $4
       from generate_series(1, $5::int) as n`,
      [accountId, agentId, contentId, id, MESSAGES],
    )
    for (let from = 1; from <= ACTIONS; from += CHUNK) {
      await client.query(
        `insert into recipient_actions (id, account_id, agent_id, recipient, message_id, kind, channel, text, occurred_at, campaign_id)
         select ${idOf('n')}, $1, $2, '+48' || 500000001 + n % $5::int, ${idOf('(1 + n % $5::int)')}, 'wrote', 'rcs', repeat(chr(97 + n % 26), $6), now(), $3
         from generate_series($4::int, $7::int) as n`,
        [accountId, agentId, id, from, MESSAGES, TEXT_LENGTH, Math.min(from + CHUNK - 1, ACTIONS)],
      )
    }
    return id
  }
})

// No campaign that fits a test has a file whose compressed content alone is over 4 GiB. So this tests only the writer of archives, used as
// the export uses it: streams of unknown length, each opened when the one before has ended.
describe('an archive', { skip: missingProgram() }, () => {
  const LINES = 350
  const LINE_LENGTH = 3_000
  // Six of eight bits are random, so deflating leaves three quarters. It looks back 32 KiB at most, so the repeated block becomes no smaller.
  const block = Buffer.from(Array.from({ length: LINES }, () => `${randomBytes(LINE_LENGTH * 0.75).toString('base64')}\r\n`).join(''))
  const BLOCKS = isFull ? 5_800 : 8
  const OPTIONS = { compressionLevel: 1, mtime: new Date() }
  const fileOf = (blocks: number) => [Buffer.from('text\r\n'), ...Array<Buffer>(blocks).fill(block)]

  test(`is complete with a file ${isFull ? 'behind 4 GiB' : 'behind another one'}`, async () => {
    const zip = new ZipFile()
    zip.addBuffer(Buffer.from('first\r\n1\r\n'), 'small.csv', OPTIONS)
    zip.addReadStreamLazy('large.csv', OPTIONS, (give) => give(null, Readable.from(fileOf(BLOCKS))))
    zip.addReadStreamLazy('far.csv', OPTIONS, (give) => give(null, Readable.from(fileOf(1))))
    zip.end()
    const files = await readArchive(zip.outputStream as Readable)
    const found = [...files].map(([name, { size, rows, lengths }]) => ({ name, size, rows, lengths }))
    const expected = (name: string, blocks: number) => {
      const rows = blocks * LINES
      return { name, size: blocks * block.length + 'text\r\n'.length, rows, lengths: { text: rows * LINE_LENGTH } }
    }
    const small = { name: 'small.csv', size: 10, rows: 1, lengths: { first: 1 } }
    assert.deepEqual(found, [small, expected('large.csv', BLOCKS), expected('far.csv', 1)])
    if (!isFull) return
    assert.ok((files.get('large.csv')?.compressed ?? 0) > MAX_ZIP32)
    assert.ok((files.get('far.csv')?.offset ?? 0) > MAX_ZIP32)
  })
})
