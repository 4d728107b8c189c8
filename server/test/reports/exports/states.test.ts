import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { visitLink } from '../../../src/links/links.ts'
import { requireCampaign } from '../../../src/reports/campaign.ts'
import { chooseReading, copyMessages, copyRecipients, type Reading } from '../../../src/reports/exports/rows.ts'
import { boundsOf } from '../../../src/reports/range.ts'
import { type Made, type Making, startCounting } from '../counting.ts'
import { fetchExport, readCopy } from './clients.ts'
import { newCaller, pool, url } from './shared.ts'
import { defused, readCsv, readZip } from './support.ts'

// Messages that came to every state in the way they do, as the exports have them.

const steps = await startCounting(pool)

type Row = Record<string, string>
type Caller = Awaited<ReturnType<typeof newCaller>>

async function download({ authorization }: Caller, path: string): Promise<Buffer> {
  const { status, bytes } = await fetchExport(`${url}/v1/reports${path}`, authorization)
  assert.equal(status, 200, bytes.toString())
  return bytes
}

const messagesOf = async (caller: Caller) => readCsv((await download(caller, '/messages/export')).toString())
const archiveOf = async (caller: Caller, campaignId: string) => await download(caller, `/campaigns/${campaignId}/all-data-export`)

/** What GET /v1/messages/{id} says, in the form of a line; what that does not say is left out. */
function asRow(message: any): Row {
  const { failure, smsFallback: sms } = message
  const times = ['acceptedAt', 'sentAt', 'deliveredAt', 'readAt', 'failedAt', 'expiredAt', 'expiresAt']
  const same = ['messageId', 'clientReferenceId', 'agentId', 'recipient', 'status', ...times, 'triggeredBy']
  return {
    ...Object.fromEntries(same.map((name) => [name, message[name] ?? ''])),
    failureReason: failure?.reason ?? '',
    failureDescription: failure?.description ?? '',
    smsStatus: sms?.status ?? '',
    smsReason: sms?.reason ?? '',
    smsSegments: String(sms?.segments ?? ''),
    smsSentAt: sms?.sentAt ?? '',
    smsDeliveredAt: sms?.deliveredAt ?? '',
  }
}

/** Of every state that a message and its SMS can be in. */
async function makeOfEveryState(sender: Caller): Promise<Made[]> {
  const { handOver, refuse, report, expire, runOut, tap, act, sendSms, reportSms, endSms, link, leaseOf } = steps
  const delivered = (made: Made) => report(made, 'delivered')
  const read = (made: Made) => report(made, 'read')
  const late = { sms: { planParams: { delay: 3600 } } }
  const clickInSms = async (made: Made) => {
    await reportSms(made, await sendSms(made))
    await visitLink(pool, await link(made), false)
  }
  const fates: [making: Making, ...moves: ((made: Made) => Promise<unknown>)[]][] = [
    [{}, handOver],
    [{}, handOver, delivered],
    [{}, handOver, read, (made) => tap(made, 'yes'), (made) => tap(made, 'yes')],
    [{}, handOver, read, (made) => act(made, { kind: 'wrote', text: 'STOP' })],
    [{}, refuse],
    [{}, handOver, (made) => expire(made)],
    [{ sms: {} }, handOver, delivered, read],
    [{ sms: {} }, handOver, (made) => expire(made)],
    // Nothing has marked it.
    [{ sms: {} }, handOver, (made) => runOut(made, '5 seconds')],
    // It reaches the phone before the SMS is sent, or does not.
    [late, refuse, delivered],
    [late, refuse],
    [{ sms: {} }, refuse, (made) => endSms(made, { is: 'failed', reason: 'REJECTED', detail: '' })],
    [{ sms: {} }, refuse, clickInSms],
    // Taken up, and not sent yet.
    [{}, leaseOf],
  ]
  const all: Made[] = []
  for (const [making, ...moves] of fates) {
    const made = await steps.make('own', { ...making, sender })
    for (const move of moves) await move(made)
    all.push(made)
  }
  return [...all, await steps.make('own', { sender })]
}

describe('the messages of an account as CSV', () => {
  test('say what each message itself says, whatever has become of it', async () => {
    const caller = await newCaller()
    const made = await makeOfEveryState(caller)
    await steps.make('campaign', { sender: caller })
    await steps.make('test', { sender: caller })
    await steps.make('own')
    const rows = await messagesOf(caller)
    assert.deepEqual(new Set(rows.map(({ messageId }) => messageId)), new Set(made.map(({ messageId }) => messageId)))
    assert.equal(rows.length, made.length)
    for (const { clickedAt, repliedAt, optedOutAt, smsFailedAt, ...row } of rows) {
      assert.deepEqual(row, asRow((await caller.read(row.messageId as string)).body))
    }
    const statuses = ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED']
    assert.deepEqual(new Set(rows.map(({ status }) => status)), new Set(statuses))
    const smsStatuses = ['', 'WAITING', 'NOT_NEEDED', 'SCHEDULED', 'SKIPPED', 'FAILED', 'DELIVERED']
    assert.deepEqual(new Set(rows.map(({ smsStatus }) => smsStatus)), new Set(smsStatuses))
    await assertFirsts(rows)
    await assertReadAlike((reading) => copyMessages(caller.accountId, {}, reading), rows)
  })

  test('a message that somebody asked for by a tap names the one that was tapped', async () => {
    const caller = await newCaller()
    const templateId = await caller.template()
    const buttons = [{ id: 'more', type: 'trigger_template', text: 'More', templateId }]
    const message = await steps.make('own', { sender: caller, buttons })
    await steps.handOver(message)
    await steps.report(message, 'delivered')
    await steps.tap(message, 'more')
    const rows = await messagesOf(caller)
    assert.deepEqual(
      rows.map(({ triggeredBy }) => triggeredBy),
      ['', message.messageId],
    )
  })
})

test('what belongs to messages is looked for one by one, unless the account sent a good part of all that there is of these months', async () => {
  const { rows } = await pool.query(
    `select sum(pg_relation_size(c.oid))::bigint as bytes from pg_class c where relname ~ '^messages_\\d{4}_\\d\\d$' and relkind = 'r'`,
  )
  const all = Math.ceil(rows[0].bytes / 250)
  assert.equal(await chooseReading(pool, Math.floor(all / 10), boundsOf({})), 'each')
  assert.equal(await chooseReading(pool, Math.ceil(all / 5), boundsOf({})), 'all')
  assert.equal(await chooseReading(pool, 0, boundsOf({})), 'each')
  assert.equal(await chooseReading(pool, 1, boundsOf({ from: '2020-01-01', to: '2020-12-31' })), 'all')
})

describe('a campaign as an archive', () => {
  test('says of each message what that itself says, and opens with unzip and Python', async (t) => {
    const caller = await newCaller()
    const made = await steps.makeAllOf('campaign', { sender: caller, count: 4, sms: {} })
    const [read, failed, expired] = made as [Made, Made, Made]
    for (const message of [read, expired]) await steps.handOver(message)
    await steps.report(read, 'read')
    await steps.tap(read, 'yes')
    await steps.refuse(failed)
    await steps.reportSms(failed, await steps.sendSms(failed))
    await steps.expire(expired)

    const { campaignId } = read
    const archive = await archiveOf(caller, campaignId)
    const rows = readCsv(readZip(archive).get('recipients.csv') as string)
    assert.deepEqual(new Set(rows.map(({ messageId }) => messageId)), new Set(made.map(({ messageId }) => messageId)))
    for (const { clickedAt, repliedAt, optedOutAt, smsFailedAt, ...row } of rows) {
      const { clientReferenceId, agentId, triggeredBy, ...said } = asRow((await caller.read(row.messageId as string)).body)
      assert.deepEqual(row, said)
    }
    const campaign = await requireCampaign(pool, caller.accountId, campaignId)
    await assertReadAlike((reading) => copyRecipients(caller.accountId, campaign, reading), rows)
    await assertOpens(archive, (sentence) => t.diagnostic(sentence))
  })
})

/** Whether what belongs to messages is looked for one by one, or all of it is read. */
async function assertReadAlike(copy: (reading: Reading) => string, rows: Row[]): Promise<void> {
  for (const reading of ['each', 'all'] as const) assert.deepEqual(readCsv(await readCopy(pool, copy(reading))), rows, reading)
}

/** What recipients did first, and the failure of SMS, are where the timeline has them. */
async function assertFirsts(rows: Row[]): Promise<void> {
  const kinds = { clickedAt: 'clicked', repliedAt: 'replied', optedOutAt: 'opted-out', smsFailedAt: 'sms-failed' }
  for (const row of rows) {
    const { rows: events } = await pool.query('select kind, occurred_at from message_events where message_id = $1', [row.messageId])
    for (const [column, kind] of Object.entries(kinds)) {
      const at: Date | undefined = events.find((event) => event.kind === kind)?.occurred_at
      assert.equal(row[column], at?.toISOString() ?? '', `${column} of ${row.status}`)
    }
  }
  for (const column of Object.keys(kinds))
    assert.ok(
      rows.some((row) => row[column] !== ''),
      column,
    )
}

const directory = mkdtempSync(join(tmpdir(), 'herald-archive-'))
after(() => rmSync(directory, { recursive: true }))

const PYTHON = 'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); print(z.testzip(), z.namelist())'

async function assertOpens(archive: Buffer, say: (sentence: string) => void): Promise<void> {
  const path = join(directory, 'campaign.zip')
  writeFileSync(path, archive)
  const programs: [name: string, args: string[], said: RegExp][] = [
    ['unzip', ['-t', path], /No errors detected/],
    ['python3', ['-c', PYTHON, path], /^None \['summary.csv', 'aggregations.csv', 'recipients.csv', 'actions.csv'\]/],
  ]
  for (const [name, args, said] of programs) {
    const { stdout } = await promisify(execFile)(name, args).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      say(`${name} is not installed`)
      return { stdout: undefined }
    })
    if (stdout !== undefined) assert.match(stdout, said)
  }
}

test('any text comes out as it went in, but for the apostrophes before signs', async (t) => {
  const seed = randomInt(2 ** 31)
  t.diagnostic(`seed ${seed}`)
  const unit = fc.constantFrom(
    '"',
    ',',
    ';',
    '\n',
    '\r',
    ' ',
    '=',
    '+',
    '-',
    '@',
    "'",
    '\t',
    '＝',
    '－',
    '\u3000',
    'a',
    '1',
    'ż',
    '日',
    '👋',
  )
  const values = fc.sample(fc.string({ unit, maxLength: 12 }), { numRuns: 500, seed })
  const caller = await newCaller()
  await pool.query(
    `insert into messages (id, account_id, agent_id, recipient, basic, test, content, client_reference_id, expires_at)
     select ((select left(uuid_v7()::text, 24)) || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, '+48500100200', false, false, '{}', value, now() + interval '1 day'
     from unnest($3::text[]) with ordinality as v (value, n)`,
    [caller.accountId, caller.agentId, values],
  )
  const rows = await messagesOf(caller)
  assert.deepEqual(
    rows.map(({ clientReferenceId }) => clientReferenceId),
    values.map(defused),
  )
})
