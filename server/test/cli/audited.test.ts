import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Command } from 'commander'
import pg from 'pg'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { actionsOf } from '../../src/cli/command.ts'
import { createProgram } from '../../src/cli/program.ts'
import { newKeyLine } from '../../src/encryption/key-file.ts'
import { findPerson } from '../../src/people/people.ts'
import { openSession } from '../../src/people/sessions.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { createSender, queueMessage } from '../delivery/support.ts'
import { createTable, createTestDatabase, ownerOf } from '../support/database.ts'
import { LOGGED_EVENTS, routeUntilDone, writeEvents } from '../support/log.ts'
import { createDataDir, heraldJson, runHerald, spawnHerald } from '../support/process.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'messages are failed by hand' })
const owner = ownerOf(pool)
const dir = await createDataDir()
const keyFile = join(dir, 'keys')
copyFileSync(process.env.HERALD_TEST_KEY_FILE as string, keyFile)
const env = { HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: keyFile }

const PHONE = '+48500100200'
const CANARY = 'The text of a message'

const sender = await createSender(pool)
const { agentId, integrationKey: key } = sender
const a = `${sender.accountId}`
await writeEvents(pool, [{ accountId: sender.accountId }, { accountId: sender.accountId }])
await routeUntilDone(pool)
const eventId = (await pool.query(`select e.event_id as id from ${LOGGED_EVENTS} as e order by e.position limit 1`)).rows[0].id as string
const messageId = await queueMessage(pool, sender)
const message = { type: 'MESSAGE', content: 'Hi' } as const
const template = (await createTemplate(pool, sender.accountId, { name: 'x', basic: false, status: 'APPROVED', message })).id
await fillGroup(pool, sender.accountId, 1, phones(0, 3))
const [running, completed] = [await acceptedCampaign(pool, sender), await acceptedCampaign(pool, sender)]
await until('their messages are created', async () => {
  await makeAll(pool)
  return (await findCampaign(pool, completed)).recipients === 3 && (await findCampaign(pool, running)).recipients === 3
})
await pool.query(
  `with failed as (
     update messages set status = 'FAILED', failed_at = accepted_at, failure_reason = 'REJECTED', failure_description = 'No.'
     where campaign_id = $1
   ), unqueued as (delete from queue where campaign_id = $1)
   update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`,
  [completed],
)
const csv = join(dir, 'members.csv')
writeFileSync(csv, `phone\n${phones(0, 2).join('\n')}\n`)
// Creates the installation's key for the hashes of erased people.
await heraldJson(['person', 'show', PHONE], env)

/** Puts the key that the secrets are to be encrypted with in front of the file. */
const addKey = () => writeFileSync(keyFile, `${newKeyLine()}\n${readFileSync(keyFile, 'utf8')}`)

async function openSessionOfBob(): Promise<void> {
  const { personId } = await findPerson(pool, { email: 'bob@example.com' })
  await openSession(pool, personId, { address: '127.0.0.1', userAgent: 'test' })
}

type Step = [command: string, args: string[], action: string, more?: { prepare?: () => void | Promise<void>; isEndless?: boolean }]

/** The two failed creations of an endpoint, an automatic reply or a token use up the first ids. */
const made = '3'

/** Every command that changes something, in an order in which each of them has something to change. */
const STEPS: Step[] = [
  ['account create', ['New'], 'createAccount'],
  ['account quarantine', [a, '48'], 'changeAccount'],
  ['account quota', [a, '--templates', '7'], 'setQuotas'],
  ['account campaign-window', [a, '09:00-20:00'], 'setCampaignWindow'],
  ['account rename', [a, 'Renamed'], 'changeAccount'],
  ['key create', [a], 'createKey'],
  ['key update', [key, '--scope', 'read'], 'changeKey'],
  ['key rotate', [key], 'rotateKey'],
  ['key revoke', [key], 'revokeKey'],
  ['agent create', ['new', '--name', 'new', '--billing-type', 'single'], 'createAgent'],
  ['agent assign', ['new', a], 'assignAgent'],
  ['agent deactivate', ['new', a], 'changeAgent'],
  ['agent activate', ['new', a], 'activateAgent'],
  ['agent update', ['new', '--name', 'other'], 'updateAgent'],
  ['agent unassign', ['new', a], 'unassignAgent'],
  ['send', [a, PHONE, CANARY], 'sendMessage'],
  ['message cancel', [messageId], 'cancelMessage'],
  ['campaign pause', [running], 'pauseCampaign'],
  ['campaign resume', [running], 'resumeCampaign'],
  ['campaign cancel', [running], 'cancelCampaign'],
  ['campaign retry', [completed], 'retryCampaign'],
  ['segment import', [a, '7', csv], 'importSegment'],
  ['segment remove', [a, '7', phones(0, 1)[0] as string], 'deleteSegmentMember'],
  ['segment remove', [a, '7'], 'deleteSegment'],
  ['webhook add', [a, 'https://example.com/hook'], 'createWebhookEndpoint'],
  ['webhook update', [made, '--types', 'message.sent'], 'changeWebhookEndpoint'],
  ['webhook rotate', [made], 'rotateWebhookSecret'],
  ['webhook replay', [made, '--event', eventId], 'replayWebhookEvents'],
  ['webhook replay', [made, '--since', '2026-01-01T00:00:00Z'], 'replayWebhookEvents'],
  ['webhook test', [made], 'testWebhookEndpoint', { isEndless: true }],
  ['webhook disable', [made], 'changeWebhookEndpoint'],
  ['webhook enable', [made], 'changeWebhookEndpoint'],
  ['encryption rotate', [], 'rotateEncryption', { prepare: addKey }],
  ['webhook remove', [made], 'deleteWebhookEndpoint'],
  ['auto-reply add', [a, '--agent', agentId, '--keyword', 'hours', '--template', `${template}`], 'createAutoReply'],
  ['auto-reply remove', [made], 'deleteAutoReply'],
  ['opt-out add', [a, PHONE], 'putOptOut'],
  ['opt-out remove', [a, PHONE], 'deleteOptOut'],
  ['person erase', [PHONE, '--account', a], 'eraseRecipient'],
  ['person allow', [PHONE, '--account', a], 'allowRecipient'],
  ['person erase', [PHONE], 'eraseRecipientEverywhere'],
  ['person allow', [PHONE], 'allowRecipientEverywhere'],
  ['account modules', [a, 'rcs'], 'changeAccount'],
  ['account suspend', [a], 'suspendAccount'],
  ['account resume', [a], 'resumeAccount'],
  ['user create', ['anna@example.com', '--name', 'Anna', '--operator'], 'createPerson'],
  ['user create', ['bob@example.com', '--name', 'Bob', '--role', 'viewer', '--account', a], 'createPerson'],
  ['user link', ['bob@example.com'], 'createPersonLink'],
  ['user role', ['bob@example.com', a, 'admin'], 'setPersonRole'],
  ['user role', ['bob@example.com', a, 'none'], 'removePersonRole'],
  ['user operator', ['bob@example.com', 'yes'], 'changePerson'],
  ['user sign-out', ['bob@example.com'], 'endPersonSession', { prepare: openSessionOfBob }],
  ['user disable', ['bob@example.com'], 'changePerson'],
  ['user enable', ['bob@example.com'], 'changePerson'],
  ['token create', ['Report', '--role', 'viewer', '--account', a, '--expires', '90d'], 'createToken'],
  ['token revoke', [made], 'revokeToken'],
]

/** Every command that reads. */
const READS: [command: string, ...args: string[]][] = [
  ['config'],
  ['doctor'],
  ['user list'],
  ['user sessions', 'bob@example.com'],
  ['token list'],
  ['audit'],
  ['audit', '--csv'],
  ['account list'],
  ['account quota', a],
  ['key list', a],
  ['agent list'],
  ['message find', PHONE],
  ['message show', messageId],
  ['campaign list', a],
  ['campaign show', running],
  ['segment list', a],
  ['segment show', a, '1'],
  ['segment members', a, '1'],
  ['webhook list'],
  ['webhook attempts', '1'],
  ['encryption create-key'],
  ['encryption status'],
  ['auto-reply list'],
  ['opt-out list', a],
  ['person show', PHONE],
  ['person export', PHONE],
]

/** What leaves no entry although it writes, and what does not end by itself. */
const OTHERS = ['serve', 'migrate', 'listen']

type Leaf = { path: string; actions: readonly string[] | undefined; options: string[] }

function leavesOf(command: Command, path: string[] = []): Leaf[] {
  const here = [...path, command.name()]
  if (command.commands.length > 0) return command.commands.flatMap((each) => leavesOf(each, here))
  return [{ path: here.slice(1).join(' '), actions: actionsOf(command), options: command.options.map(({ long }) => long ?? '') }]
}
const leaves = leavesOf(await createProgram())
const isAsking = (command: string) => leaves.find(({ path }) => path === command)?.options.includes('--yes')

// A fault is a row: which triggers fail, or wait for a lock. The triggers of an entry are those of the log, all others are of changes.
await createTable(pool, 'faults (fault text)')
await owner.query(`
  create function fail() returns trigger language plpgsql as $$ begin
    if exists (select from faults where fault = 'fail ' || tg_argv[0]) then raise exception 'it fails %', tg_argv[0]; end if;
    if exists (select from faults where fault = 'wait ' || tg_argv[0]) then perform pg_advisory_xact_lock(23); end if;
    return null;
  end $$`)
const { rows: relations } = await owner.query<{ name: string; isPlain: boolean }>(
  `select c.oid::regclass::text as name, c.relkind = 'r' as "isPlain" from pg_class c
   where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and c.relname <> 'faults' order by 1`,
)
const tables = relations.filter(({ isPlain }) => isPlain).map(({ name }) => name)
for (const { name, isPlain } of relations) {
  const written = name === 'audit_log' ? 'entry' : 'change'
  const triggers = [`trigger at_once after insert or update or delete on ${name} for each statement execute function fail('${written}')`]
  const late = `constraint trigger late after insert or update or delete on ${name} deferrable initially deferred for each row`
  if (isPlain) triggers.push(`${late} execute function fail('commit of ${written}')`)
  await owner.query(triggers.map((trigger) => `create ${trigger}`).join(';'))
}

/** A hash of the rows of each table. */
async function snapshot(): Promise<Record<string, string>> {
  const hashes = tables.map((name) => `select '${name}' as name, md5(string_agg(t::text, '|' order by t::text)) as hash from ${name} t`)
  const { rows } = await owner.query<{ name: string; hash: string }>(hashes.join(' union all '))
  return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]))
}

async function withFault<T>(fault: string, work: () => Promise<T>): Promise<T> {
  await owner.query('insert into faults values ($1)', [fault])
  try {
    return await work()
  } finally {
    await owner.query('delete from faults')
  }
}

type Written = { action: string; kind: string; name: string; text: string }

async function entriesAfter(count: number): Promise<Written[]> {
  const { rows } = await owner.query<Written>(
    'select action, actor_kind as kind, actor_name as name, e::text as text from audit_log e order by id offset $1',
    [count],
  )
  return rows
}

async function runChange(args: string[], isEndless: boolean, count: number): Promise<void> {
  if (!isEndless) {
    const { code, stderr } = await runHerald(args, env)
    assert.equal(code, 0, stderr)
    return
  }
  const { child, ended } = spawnHerald(args, env)
  await until('it has made its change', async () => (await entriesAfter(count)).length > 0)
  child.kill('SIGKILL')
  await ended
}

describe('a command', () => {
  test('declares what it records in the audit log, or that it only reads', () => {
    for (const { path, actions } of leaves) assert.ok(actions !== undefined, `${path} declares neither`)
    const changing = leaves.filter(({ actions = [] }) => actions.length > 0)
    assert.deepEqual(new Set(STEPS.map(([command]) => command)), new Set(changing.map(({ path }) => path)))
    const actionsIn = (path: string) => [...new Set(STEPS.filter(([command]) => command === path).map(([, , action]) => action))].sort()
    for (const { path, actions = [] } of changing) assert.deepEqual(actionsIn(path), [...actions].sort(), path)
    const reading = leaves.filter(({ actions = [] }) => actions.length === 0)
    const known = [...READS.map(([command]) => command), ...OTHERS].filter((path) => path !== 'account quota')
    assert.deepEqual(new Set(known), new Set(reading.map(({ path }) => path)))
  })

  for (const [command, args, action, { prepare, isEndless = false } = {}] of STEPS) {
    test(`${command} ${args.slice(1, 2)} and its entry are both committed, or neither`, async () => {
      await prepare?.()
      const words = [...command.split(' '), ...args, ...(isAsking(command) ? ['--yes'] : [])]
      const before = await snapshot()
      for (const place of ['commit of entry', 'commit of change']) {
        const { code, stderr } = await withFault(`fail ${place}`, () => runHerald(words, env))
        assert.equal(code, 1)
        assert.match(stderr, new RegExp(`it fails ${place}`))
        assert.deepEqual(await snapshot(), before, place)
      }
      const count = (await entriesAfter(0)).length
      await runChange(words, isEndless, count)
      const { audit_log: _, ...after } = await snapshot()
      assert.notDeepEqual({ ...after, audit_log: before.audit_log }, before)
      const entries = await entriesAfter(count)
      assert.deepEqual(
        entries.map(({ text: _, ...entry }) => entry),
        [{ action, kind: 'command', name: userInfo().username }],
      )
      assert.doesNotMatch(entries[0]?.text ?? '', /\+\d{7}|whsec_|ho_[\w-]{20}|hs_\w{20}/)
      assert.doesNotMatch(entries[0]?.text ?? '', new RegExp(CANARY))
    })
  }

  test('records the account of a person or a token with one account, and deletions with the state before', async () => {
    const { rows } = await owner.query<{ action: string; accountId: number | null; before: unknown; after: unknown }>(
      `select action, account_id as "accountId", before, after from audit_log
       where action = any (array['createPerson', 'createToken', 'revokeToken', 'deleteSegment', 'deleteWebhookEndpoint', 'deleteAutoReply', 'allowRecipient', 'deleteSegmentMember', 'eraseRecipient'])
       order by id`,
    )
    const accounts = rows.filter(({ action }) => /Person|Token/.test(action)).map(({ action, accountId }) => [action, accountId])
    assert.deepEqual(accounts, [
      ['createPerson', null],
      ['createPerson', sender.accountId],
      ['createToken', sender.accountId],
      ['revokeToken', sender.accountId],
    ])
    const { rows: creations } = await owner.query(`select account_id::text as id, subject from audit_log where action = 'createAccount'`)
    assert.ok(creations.length > 0)
    for (const { id, subject } of creations) assert.equal(subject, id)
    const deletions = rows.filter(({ action }) => !/Person|Token/.test(action))
    assert.equal(deletions.length, 6)
    for (const { action, before, after } of deletions) assert.ok(before !== null && after === null, action)
  })

  test('writes nothing if it only reads', async () => {
    await runHerald(['webhook', 'add', a, 'https://example.com/hook'], env)
    const endpointId = (await heraldJson(['webhook', 'list'], env))[0].endpointId
    const before = await snapshot()
    await withFault('fail change', async () => {
      for (const [command, ...args] of READS) {
        const words = command === 'webhook attempts' ? [`${endpointId}`] : args
        const { code, stderr } = await runHerald([...command.split(' '), ...words], env)
        if (command !== 'doctor') assert.equal(code, 0, `${command}: ${stderr}`)
      }
    })
    assert.deepEqual(await snapshot(), before)
  })

  test('leaves no entry if it finds nothing to change', async () => {
    const [optedOut, erased] = ['+48500100201', '+48500100202']
    await runHerald(['opt-out', 'add', a, optedOut, '--block'], env)
    await runHerald(['person', 'erase', erased, '--yes'], env)
    const count = (await entriesAfter(0)).length
    for (const words of [
      ['key', 'revoke', key],
      ['account', 'resume', a],
      ['account', 'rename', a, 'Renamed'],
      ['account', 'quota', a, '--templates', '7'],
      ['agent', 'assign', agentId, a],
      ['agent', 'activate', agentId, a],
      ['user', 'enable', 'bob@example.com'],
      ['user', 'operator', 'bob@example.com', 'yes'],
      ['token', 'revoke', made],
      ['encryption', 'rotate'],
      ['account', 'modules', '999', 'rcs'],
      ['segment', 'remove', a, '99', '--yes'],
      ['opt-out', 'add', a, optedOut, '--block'],
      ['person', 'erase', erased, '--yes'],
    ]) {
      await runHerald(words, env)
      assert.deepEqual(await entriesAfter(count), [], words.join(' '))
    }
  })

  const KILLED: [moment: string, fault: string, left: string[]][] = [
    ['before it commits leaves neither its change nor an entry', 'wait entry', []],
    ['while PostgreSQL commits leaves both', 'wait commit of entry', ['changeAccount']],
  ]
  for (const [moment, fault, left] of KILLED) {
    test(`that is killed ${moment}`, async () => {
      const holder = new pg.Client(HERALD_DATABASE_URL)
      await holder.connect()
      const { rows } = await holder.query('select pg_backend_pid() as pid, pg_advisory_lock(23)')
      const waiting = `select from pg_locks where locktype = 'advisory' and objid = 23 and pid <> $1`
      const isWaiting = async () => (await owner.query(waiting, [rows[0].pid])).rowCount === 1
      const count = (await entriesAfter(0)).length
      const before = await snapshot()
      const { child, ended } = await withFault(fault, async () => {
        const started = spawnHerald(['account', 'rename', a, 'Killed'], env)
        await until('its change and its entry are written', isWaiting).finally(() => started.child.kill('SIGKILL'))
        return started
      }).finally(() => holder.end())
      assert.equal(child.killed, true)
      await ended
      await until('PostgreSQL has ended the transaction', async () => !(await isWaiting()))
      const entries = await entriesAfter(count)
      assert.deepEqual(
        entries.map(({ action }) => action),
        left,
      )
      const { accounts } = await snapshot()
      assert.equal(accounts !== before.accounts, left.length > 0)
    })
  }
})
