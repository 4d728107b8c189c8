import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { EXPORTS_NAME, type Executor } from '../../src/db/pool.ts'
import { NO_CAMPAIGN } from '../../src/messages/states.ts'
import { recordAction } from '../../src/replies/actions.ts'
import { CARRIER, createReceiver, receipt } from '../delivery/support.ts'
import { assertAllCounted, type Counted, readCounted } from '../support/counted.ts'
import { createTestDatabase, makePastMonths } from '../support/database.ts'

// A database of the version before reports, with all that can have become of messages in two months: the upgrade counts it.

const MIGRATIONS = new URL('../../src/db/migrations/', import.meta.url)
const BEFORE = '0007_events'
const names = readdirSync(MIGRATIONS).map((file) => file.replace('.sql', ''))
const older = names.filter((name) => name <= BEFORE)

const { url, pool } = await createTestDatabase({ empty: true })
// Wherever it stands: there, hours begin where those of UTC are half over.
const admin = new pg.Client(url)
await admin.connect()
await admin.query(`alter database ${new URL(url).pathname.slice(1)} set timezone = 'Asia/Kolkata'`)
await admin.end()

/** As that version's own migration left it. */
async function applyOlder(): Promise<void> {
  await pool.query(
    'create table schema_migrations (name text primary key, checksum text not null, applied_at timestamptz(3) not null default now())',
  )
  for (const name of older) {
    const sql = readFileSync(new URL(`${name}.sql`, MIGRATIONS), 'utf8')
    await pool.query(sql)
    const checksum = createHash('sha256').update(sql).digest('hex')
    await pool.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
  }
  await makePastMonths(pool)
}

const CAMPAIGN = '01a1e000-0000-7000-8000-000000000001'
const [ACCOUNT, OTHER] = [{ accountId: 1 }, { accountId: 2 }] as const
const PHONE = '+48500100200'
const HOUR_MS = 3_600_000
const now = new Date()
const MONTHS = [2, 1].map((ago) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 1))

type Step = [kind: string, column: string]
/** What can become of a message, by the columns that tell when. */
const FATES: Record<string, Step[]> = {
  ACCEPTED: [],
  SENT: [['sent', 'sent_at']],
  DELIVERED: [
    ['sent', 'sent_at'],
    ['delivered', 'delivered_at'],
  ],
  READ: [
    ['sent', 'sent_at'],
    ['delivered', 'delivered_at'],
    ['read', 'read_at'],
  ],
  FAILED: [['failed', 'failed_at']],
  EXPIRED: [
    ['sent', 'sent_at'],
    ['expired', 'expires_at'],
  ],
}
const SMS_FATES: Record<string, Step[]> = {
  NONE: [],
  WAITING: [],
  SCHEDULED: [],
  SENT: [['sms-sent', 'sent_at']],
  DELIVERED: [
    ['sms-sent', 'sent_at'],
    ['sms-delivered', 'delivered_at'],
  ],
  FAILED: [
    ['sms-sent', 'sent_at'],
    ['sms-failed', 'failed_at'],
  ],
  NOT_NEEDED: [],
  SKIPPED: [['sms-skipped', '']],
}
const ACTIONS: [kind: string, counted: string | undefined][] = [
  ['clicked', 'clicked'],
  ['clicked', undefined],
  ['opted-in', undefined],
  ['sent-file', 'replied'],
  ['tapped', undefined],
  ['wrote', undefined],
  ['shared-location', undefined],
  ['opted-out', 'opted_out'],
  ['opted-out', undefined],
]

/** By account, campaign, hour and counter. */
const expected = new Map<string, number>()
function expect(accountId: number, campaignId: string | null, at: number, counter: string): void {
  const hour = new Date(Math.floor(at / HOUR_MS) * HOUR_MS).toISOString()
  const name = `${accountId} ${campaignId ?? NO_CAMPAIGN} ${hour} ${counter}`
  expected.set(name, (expected.get(name) ?? 0) + 1)
}

function newId(at: number): string {
  const hex = `${at.toString(16).padStart(12, '0')}7${randomUUID().replaceAll('-', '').slice(13)}`
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

async function insert(db: Executor, table: string, row: Record<string, unknown>): Promise<void> {
  const places = Object.keys(row).map((_, index) => `$${index + 1}`)
  await db.query(`insert into ${table} (${Object.keys(row).join(', ')}) values (${places.join(', ')})`, Object.values(row))
}

type Written = { accountId: number; campaignId: string | null; test: boolean; status: string; sms: string; at: number; acts: boolean }

/** Each step 40 minutes after the one before, so that some are in one hour and some are not. Returns its id. */
async function write({ accountId, campaignId, test: isTest, status, sms, at, acts }: Written): Promise<string> {
  const id = newId(at)
  let last = at
  const later = () => {
    last += 40 * 60_000
    return last
  }
  const counts = (counter: string, when: number) => !isTest && expect(accountId, campaignId, when, counter.replace('-', '_'))
  const common = { account_id: accountId, message_id: id }
  async function reach(steps: Step[]): Promise<Record<string, Date>> {
    const times: Record<string, Date> = {}
    for (const [kind, column] of steps) {
      const when = later()
      if (column !== '') times[column] = new Date(when)
      await insert(pool, 'message_events', { ...common, kind, occurred_at: new Date(when) })
      counts(kind, when)
    }
    return times
  }
  counts('accepted', at)
  const times = await reach(FATES[status] as Step[])
  const failure = status === 'FAILED' ? { failure_reason: 'REJECTED', failure_description: 'No.' } : {}
  const what = { agent_id: 'agent', recipient: PHONE, status, basic: false, test: isTest, content: '{}', campaign_id: campaignId }
  const ends = { accepted_at: new Date(at), expires_at: new Date(Date.now() + 48 * HOUR_MS) }
  await insert(pool, 'messages', { id, account_id: accountId, ...what, ...ends, ...failure, ...times })
  if (sms !== 'NONE') {
    const due = { due_at: new Date(last), reason: sms === 'WAITING' ? null : 'RCS_FAILED' }
    const plan = { plan: '{}', segments: 1, delay_seconds: 0, after_expiry: false }
    await insert(pool, 'sms_fallbacks', { ...common, status: sms, ...plan, ...due, ...(await reach(SMS_FATES[sms] as Step[])) })
  }
  for (const [kind, counter] of acts ? ACTIONS : []) {
    const when = later()
    const row = { ...common, id: newId(when), agent_id: 'agent', recipient: PHONE, kind, channel: 'rcs', occurred_at: new Date(when) }
    await insert(pool, 'recipient_actions', row)
    if (counter !== undefined) counts(counter, when)
  }
  return id
}

const toBe = (rows: Counted[], accountId: number) =>
  rows.flatMap(({ campaignId, hour, counts }) =>
    Object.entries(counts).map(([counter, count]): [string, number] => [`${accountId} ${campaignId} ${hour} ${counter}`, count]),
  )

const SORTS = [
  { ...ACCOUNT, campaignId: null, test: false },
  { ...ACCOUNT, campaignId: CAMPAIGN, test: false },
  { ...ACCOUNT, campaignId: null, test: true },
  { ...OTHER, campaignId: null, test: false },
]

/** A message of the campaign that was delivered, and not read. */
let delivered = ''

async function writeAllOf(sort: (typeof SORTS)[number], at: number): Promise<void> {
  for (const status of Object.keys(FATES)) {
    const id = await write({ ...sort, status, sms: 'NONE', at, acts: status !== 'ACCEPTED' })
    if (status === 'DELIVERED' && sort.campaignId === CAMPAIGN) delivered = id
  }
  for (const sms of Object.keys(SMS_FATES)) await write({ ...sort, status: 'FAILED', sms, at: at + HOUR_MS / 2, acts: false })
}

const SUMS = `select sum(delivered)::int as delivered, sum(read)::int as read, sum(clicked)::int as clicked, sum(replied)::int as replied
  from (table report_counts union all table report_changes) as counters`

let exportEndedBy: Error | undefined

/** That of another node, whose client takes its time. */
async function startExport(): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: EXPORTS_NAME })
  client.on('error', (error) => {
    exportEndedBy ??= error
  })
  await client.connect()
  await client.query('begin; lock table messages in access share mode')
}

describe('the upgrade of a database that has messages', () => {
  before(async () => {
    await applyOlder()
    await insert(pool, 'agents', { agent_id: 'agent', name: 'Agent', billing_type: 'single', carrier: CARRIER })
    for (const month of MONTHS) for (const [n, sort] of SORTS.entries()) await writeAllOf(sort, month + n * 7 * 60_000)
    // Answers to nothing that is known.
    const nobodys = { account_id: 1, agent_id: 'agent', recipient: PHONE, kind: 'wrote', channel: 'rcs', occurred_at: now }
    await insert(pool, 'recipient_actions', { ...nobodys, message_id: null })
    await insert(pool, 'recipient_actions', { ...nobodys, message_id: newId(Date.now()) })
    await startExport()
    assert.deepEqual(await migrate(pool), names.slice(older.length))
  })

  test('breaks off an export that has the messages open, instead of waiting for it with all others behind', () => {
    assert.match(String(exportEndedBy), /terminating connection/)
  })

  test('counts all that has become of them, once each, in its hour, and nothing of test messages', async () => {
    const all = [...toBe(await readCounted(pool, ACCOUNT), 1), ...toBe(await readCounted(pool, OTHER), 2)]
    // No report shows it; the recount below checks it.
    const counted = all.filter(([name]) => !name.endsWith(' unsent'))
    assert.deepEqual(new Map(counted), new Map([...expected].toSorted(([a], [b]) => (a < b ? -1 : 1))))
    assert.ok((await assertAllCounted(pool)) > 100)
    const ofTests = `select from message_events e join messages m on m.id = e.message_id where m.test and e.kind in ('clicked', 'replied', 'opted-out')`
    assert.equal((await pool.query(ofTests)).rowCount, 0)
  })

  test('goes on from there: what comes after it is added, and what was counted is not counted again', async () => {
    const sums = async () => (await pool.query(SUMS)).rows[0]
    const earlier = await sums()
    await createReceiver(pool)([receipt({ messageId: delivered, kind: 'delivered' }), receipt({ messageId: delivered, kind: 'read' })])
    for (const kind of ['clicked', 'wrote'] as const) {
      await recordAction(pool, {
        ...ACCOUNT,
        agentId: 'agent',
        recipient: PHONE,
        messageId: delivered,
        kind,
        channel: 'rcs',
        occurredAt: new Date(),
      })
    }
    assert.deepEqual(await sums(), { ...earlier, read: earlier.read + 1 })
    await assertAllCounted(pool)
  })
})
