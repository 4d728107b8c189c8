import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { visitLink } from '../../../src/links/links.ts'
import { requireCampaign } from '../../../src/reports/campaign.ts'
import { chooseReading, copyMessages, copyRecipients, type Reading } from '../../../src/reports/exports/rows.ts'
import { boundsOf } from '../../../src/reports/range.ts'
import { createSteps, type Made } from '../../support/steps.ts'
import { fetchExport, readCopy } from './clients.ts'
import { newCaller, pool, url } from './shared.ts'
import { readCsv, readZip } from './support.ts'

// Exports of messages that reached every state by the service's own steps.

const steps = await createSteps(pool)

type Row = Record<string, string>
type Caller = Awaited<ReturnType<typeof newCaller>>

async function download({ authorization }: Caller, path: string): Promise<Buffer> {
  const { status, bytes } = await fetchExport(`${url}/v1/reports${path}`, authorization)
  assert.equal(status, 200, bytes.toString())
  return bytes
}

const messagesOf = async (caller: Caller) => readCsv((await download(caller, '/messages/export')).toString())
const archiveOf = async (caller: Caller, campaignId: string) => await download(caller, `/campaigns/${campaignId}/all-data-export`)

/** The response of GET /v1/messages/{id}, as a row of an export. */
function asRow(message: any): Row {
  const { failure, smsFallback: sms } = message
  const times = ['acceptedAt', 'scheduledAt', 'sentAt', 'deliveredAt', 'readAt', 'failedAt', 'expiredAt', 'expiresAt']
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

/** Messages in every state of a message and its SMS. */
async function makeOfEveryState(sender: Caller): Promise<Made[]> {
  const { handOver, refuse, report, expire, passExpiry, tap, act, sendSms, reportSms, endSms, link, leaseOf } = steps
  const delivered = (made: Made) => report(made, 'delivered')
  const read = (made: Made) => report(made, 'read')
  const late = { sms: { planParams: { delay: 3600 } } }
  const clickInSms = async (made: Made) => {
    await reportSms(made, await sendSms(made))
    await visitLink(pool, await link(made), false)
  }
  const lifecycles: [options: Parameters<typeof steps.make>[1], ...moves: ((made: Made) => Promise<unknown>)[]][] = [
    [{}, handOver],
    [{}, handOver, delivered],
    [{}, handOver, read, (made) => tap(made, 'yes'), (made) => tap(made, 'yes')],
    [{}, handOver, read, (made) => act(made, { kind: 'wrote', text: 'STOP' })],
    [{}, refuse],
    [{}, handOver, (made) => expire(made)],
    [{ sms: {} }, handOver, delivered, read],
    [{ sms: {} }, handOver, (made) => expire(made)],
    // Not marked as expired yet.
    [{ sms: {} }, handOver, (made) => passExpiry(made, '5 seconds')],
    // The SMS waits; the message may still arrive before it.
    [late, refuse, delivered],
    [late, refuse],
    [{ sms: {} }, refuse, (made) => endSms(made, { is: 'failed', reason: 'REJECTED', detail: '' })],
    [{ sms: {} }, refuse, clickInSms],
    // Claimed, and not sent yet.
    [{}, leaseOf],
  ]
  const all: Made[] = []
  for (const [options, ...moves] of lifecycles) {
    const made = await steps.make('single', { ...options, sender })
    for (const move of moves) await move(made)
    all.push(made)
  }
  return [...all, await steps.make('single', { sender })]
}

describe('the export of messages', () => {
  test('has the fields of GET for messages in every state', async () => {
    const caller = await newCaller()
    const made = await makeOfEveryState(caller)
    await steps.make('campaign', { sender: caller })
    await steps.make('test', { sender: caller })
    await steps.make('single')
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

  test('names the tapped message for a message that a tap triggered', async () => {
    const caller = await newCaller()
    const templateId = await caller.template()
    const buttons = [{ id: 'more', type: 'trigger_template', text: 'More', templateId }]
    const message = await steps.make('single', { sender: caller, buttons })
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

test('reads rows of messages one by one, unless the account has a large part of all messages', async () => {
  const { rows } = await pool.query(
    `select sum(pg_relation_size(c.oid))::bigint as bytes from pg_class c where relname ~ '^messages_\\d{4}_\\d\\d$' and relkind = 'r'`,
  )
  const all = Math.ceil(rows[0].bytes / 250)
  assert.equal(await chooseReading(pool, Math.floor(all / 10), boundsOf({})), 'each')
  assert.equal(await chooseReading(pool, Math.ceil(all / 5), boundsOf({})), 'all')
  assert.equal(await chooseReading(pool, 0, boundsOf({})), 'each')
  assert.equal(await chooseReading(pool, 1, boundsOf({ from: '2020-01-01', to: '2020-12-31' })), 'all')
})

describe('the export of a campaign', () => {
  test('has the fields of GET for each message, and opens with unzip and Python', async (t) => {
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
      const { clientReferenceId, agentId, scheduledAt, triggeredBy, ...said } = asRow((await caller.read(row.messageId as string)).body)
      assert.deepEqual(row, said)
    }
    const campaign = await requireCampaign(pool, caller.accountId, campaignId)
    await assertReadAlike((reading) => copyRecipients(caller.accountId, campaign, reading), rows)
    await assertOpens(archive, (sentence) => t.diagnostic(sentence))
  })
})

/** Both ways of reading the rows of messages give the same file. */
async function assertReadAlike(copy: (reading: Reading) => string, rows: Row[]): Promise<void> {
  for (const reading of ['each', 'all'] as const) assert.deepEqual(readCsv(await readCopy(pool, copy(reading))), rows, reading)
}

/** The first actions of recipients and the failure of an SMS have the times of the timeline. */
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
