import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { rotateKeys } from '../../src/db/rotate-keys.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { createErasedPeople, ERASURE_SECRET } from '../../src/erasure/erased.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { findPerson, summarize } from '../../src/privacy/find.ts'
import { CAMPAIGNS, MESSAGE_DETAILS, MESSAGES, PLACES, WEBHOOK_ATTEMPTS } from '../../src/privacy/places.ts'
import { createSender } from '../delivery/support.ts'
import { keyLine, newKeyFile } from '../encryption/support.ts'
import { createTestDatabase, makePastMonths, ownerOf } from '../support/database.ts'
import { tablesWith } from '../support/dump.ts'
import { keyring } from '../support/keyring.ts'
import { heraldJson, runHerald, runHeraldProcess, spawnHerald } from '../support/process.ts'
import { until } from '../support/until.ts'
import { fillPerson } from './filled.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'rows are written by hand' })
const env = { HERALD_DATABASE_URL }
await makePastMonths(pool)
const people = createErasedPeople(await installationSecret(pool, ERASURE_SECRET, keyring))
const [one, other] = [await createSender(pool), await createSender(pool)]

let persons = 0
async function newPerson(count?: number) {
  persons += 1
  const [phone, mark] = [`+4850066${String(persons).padStart(4, '0')}`, `Nowak${persons}x`]
  for (const sender of [one, other]) await fillPerson(pool, sender, phone, `${mark}${sender.accountId}`, count)
  return { phone, mark }
}

/** How many rows each table has, with the placeholders of a person: an erased person leaves the same whatever happened meanwhile. */
async function shapeOf(phone: string): Promise<unknown> {
  const { rows } = await pool.query(
    `select account_id, status, failure_description, content::text, client_reference_id, count(*), count(distinct recipient)
     from messages where recipient like 'erased-%' group by 1, 2, 3, 4, 5 order by 1, 6`,
  )
  await pool.query(`delete from messages where recipient like 'erased-%'`)
  return [rows, await tablesWith(pool, [phone.slice(1)])]
}

const ALL_PLACES = [MESSAGES, CAMPAIGNS, WEBHOOK_ATTEMPTS, ...MESSAGE_DETAILS, ...PLACES].map(({ name }) => name)

/** Fails the statements of a pool, from the n-th on, as if the process had been killed there. */
function failingAfter(count: number): Pool {
  let left = count
  const fail = (target: any) => (property: string) => {
    if (property !== 'query') return typeof target[property] === 'function' ? target[property].bind(target) : target[property]
    return (...args: unknown[]) => {
      left -= 1
      if (left < 0 && !/^(rollback|commit)/.test(String(args[0]))) return Promise.reject(new Error('killed'))
      return target.query(...args)
    }
  }
  const wrap = (target: any): any =>
    new Proxy(target, {
      get: (_, property: string) => (property === 'connect' ? async () => wrap(await target.connect()) : fail(target)(property)),
    })
  return wrap(pool)
}

describe('an erasure', () => {
  test('finds and erases rows in every place, also in earlier months and in log pages without a position', async () => {
    const { phone, mark } = await newPerson()
    const { rows } = await summarize(pool, { phone }, people)
    assert.deepEqual(new Set(Object.keys(rows)), new Set([...ALL_PLACES, 'events']))
    const members = async () => (await pool.query('select sum(members) from groups')).rows[0].sum
    const before = Number(await members())
    await erasePerson(pool, people, { phone })
    assert.deepEqual(await tablesWith(pool, [phone.slice(1), mark, '52.512345']), [])
    assert.equal(Number(await members()), before - 2)
    assert.equal((await summarize(pool, { phone }, people)).total, 0)
    const { rows: campaigns } = await pool.query('select fan_out_cursor, fallback -> $1 ->> $2 as copies from campaigns', [
      'plan',
      'copies',
    ])
    assert.deepEqual(campaigns[0], { fan_out_cursor: '+48100000000', copies: '["+48500999999"]' })
    const { rows: left } = await pool.query(`select distinct plan ->> 'content' as text from sms_fallbacks order by 1`)
    assert.deepEqual(left, [{ text: '' }, { text: 'To another' }])
  })

  test('that is killed at any statement and run again ends like an uninterrupted one', async () => {
    await pool.query(`delete from messages where recipient like 'erased-%'`)
    const whole = await newPerson()
    await erasePerson(pool, people, whole)
    const expected = await shapeOf(whole.phone)
    const killed = await newPerson()
    let kills = 0
    for (let isDone = false; !isDone; kills += 1) {
      await erasePerson(failingAfter(kills), people, killed).then(
        () => {
          isDone = true
        },
        (error) => assert.equal(error.message, 'killed'),
      )
    }
    assert.ok(kills > 60, `${kills}`)
    const texts = [killed.phone.slice(1), killed.mark]
    assert.deepEqual(await tablesWith(pool, texts), [])
    assert.deepEqual(JSON.stringify(await shapeOf(killed.phone)).replaceAll(killed.mark, whole.mark), JSON.stringify(expected))
  })

  test('whose process is killed at random is completed by the next command', async () => {
    const { phone, mark } = await newPerson(300)
    for (let kill = 0; kill < 3; kill += 1) {
      const { child, ended } = spawnHerald(['person', 'erase', phone, '--yes'], env)
      await until('it has begun', async () => (await pool.query('select from erased_people where seed is not null')).rowCount === 1)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 200))
      child.kill('SIGKILL')
      await ended
    }
    const { code, stdout, stderr } = await runHerald(['person', 'erase', phone, '--yes'], env)
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`^\\+${phone.slice(1)} is erased in all accounts: `, 'm'))
    assert.deepEqual(await tablesWith(pool, [phone.slice(1), mark]), [])
    assert.deepEqual((await pool.query('select from erased_people where seed is not null')).rowCount, 0)
  })

  test('of one account that was killed is completed by one of all accounts', async () => {
    const { phone, mark } = await newPerson()
    const wanted = { phone, accountId: one.accountId }
    const hasMessages = async () => (await summarize(pool, wanted, people)).rows.messages !== undefined
    for (let statements = 1; await hasMessages(); statements += 1)
      await assert.rejects(erasePerson(failingAfter(statements), people, wanted), /killed/)
    assert.notDeepEqual(await tablesWith(pool, [`${mark}${one.accountId}`]), [])
    await erasePerson(pool, people, { phone })
    assert.deepEqual(await tablesWith(pool, [phone.slice(1), mark]), [])
  })

  test('of one account keeps the rows of the others', async () => {
    const { phone, mark } = await newPerson()
    const counts = async (accountId?: number) => (await summarize(pool, { phone, accountId }, people)).rows
    const unnamed = async () => (({ networkEvents, smsReceipts }) => ({ networkEvents, smsReceipts }))(await counts())
    const waiting = async () =>
      (await pool.query('select from carrier_events where phone = $1 and process_after is not null', [phone])).rowCount
    const [before, beforeUnnamed, beforeWaiting] = [await counts(other.accountId), await unnamed(), Number(await waiting())]
    await erasePerson(pool, people, { phone, accountId: one.accountId })
    assert.deepEqual(await counts(other.accountId), before)
    // The replies to the account are dropped; the receipts may be about the other one.
    assert.equal(await waiting(), beforeWaiting / 2)
    const { networkEvents = 0, smsReceipts } = beforeUnnamed
    assert.deepEqual(await unnamed(), { networkEvents: networkEvents - beforeWaiting / 2, smsReceipts })
    assert.deepEqual(await tablesWith(pool, [`${mark}${one.accountId}`]), [])
  })

  test('works whatever JSON is stored', async () => {
    const { phone } = await newPerson()
    const json = String.raw`{"a\u0000":"x\ud800","b\\u0000":"\uDFFF","sender":"Shop","content":"Hi","copies":["+48500999999","${phone}"]}`
    for (const statement of [
      `update group_members set attributes = $2 where phone = $1`,
      `update messages set content = $2 where recipient = $1`,
      `update sms_fallbacks set plan = $2 where message_id in (select id from messages where recipient = $1) or plan::text like '%' || $1 || '%'`,
      `update campaigns set fallback = ('{"plan":' || $2::text || '}')::json where fan_out_cursor = $1`,
      `update carrier_events set event = $2 where phone = $1 and process_after is null`,
      `update log_pages set events = replace(events::text, '"text"', '"text\\u0000\\ud800"')::json where events::text like '%' || $1 || '%' or $2 = ''`,
    ])
      await pool.query(statement, [phone, json])
    const { total } = await summarize(pool, { phone }, people)
    let exported = 0
    for await (const { rows } of findPerson(pool, { phone })) exported += rows.length
    assert.equal(exported, total)
    await erasePerson(pool, people, { phone })
    assert.deepEqual(await tablesWith(pool, [phone.slice(1)]), [])
  })

  test('of two people in the same log pages at once erases both', async () => {
    const [first, second] = [await newPerson(), await newPerson()]
    await pool.query(
      `insert into log_pages (account_id, event_count, events)
       select $1, 2, json_agg(json_build_array('message.sent', now(), null, null, 'agent', phone, null, false, null))
       from unnest($2::text[]) as phone, generate_series(1, 50) as page group by page`,
      [one.accountId, [first.phone, second.phone]],
    )
    await Promise.all([first, second, first].map(({ phone }) => erasePerson(pool, people, { phone })))
    assert.deepEqual(
      await tablesWith(
        pool,
        [first, second].flatMap(({ phone, mark }) => [phone.slice(1), mark]),
      ),
      [],
    )
  })

  test('outlasts a rotation of the encryption keys', async () => {
    const own = await createTestDatabase()
    const [old, next] = [keyLine('old'), keyLine('next')]
    const file = newKeyFile(old)
    const peopleOf = async () => createErasedPeople(await installationSecret(own.pool, ERASURE_SECRET, file.load()))
    await erasePerson(own.pool, await peopleOf(), { phone: '+48500100200' })
    file.write(next, old)
    await rotateKeys(own.pool, file.load())
    file.write(next)
    const isErased = await (await peopleOf()).find(own.pool, ['+48500100200', '+48500100201'])
    assert.deepEqual([isErased(7, '+48500100200'), isErased(7, '+48500100201')], [true, false])
  })
})

describe('a summary', () => {
  test('reads no content', async () => {
    const { phone } = await newPerson()
    const texts: string[] = []
    const recording = new Proxy(pool, {
      get: (target: any, property) =>
        property === 'query'
          ? (text: string, values: unknown[]) => {
              texts.push(text)
              return target.query(text, values)
            }
          : target[property],
    })
    const { total } = await summarize(recording, { phone }, people)
    assert.ok(total > 100 && texts.length > 20, `${total} ${texts.length}`)
    assert.deepEqual(
      texts.filter((text) => /as "acceptedAt"|t\.attributes|t\.text|t\.event\b/.test(text)),
      [],
    )
  })
})

describe('herald person', () => {
  const directory = mkdtempSync(join(tmpdir(), 'herald-person-'))
  after(() => rmSync(directory, { recursive: true }))

  test('show counts, export writes every row, and erase states its effect first', async () => {
    const { phone, mark } = await newPerson()
    const shown = await heraldJson(['person', 'show', phone.slice(1)], env)
    assert.deepEqual([shown.phone, shown.rows.messages, shown.erased], [phone, 18, []])
    const file = join(directory, 'person.json')
    assert.deepEqual(await heraldJson(['person', 'export', phone, '--file', file], env), { phone, file, rows: shown.total })
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const exported = JSON.parse(readFileSync(file, 'utf8'))
    assert.deepEqual([exported.phone, exported.messages.length], [phone, 18])
    for (const [place, rows] of Object.entries(shown.rows)) assert.equal(exported[place].length, rows, place)
    assert.ok(exported.actions.some(({ text }: { text: string }) => text === `${mark}${one.accountId}`))
    const { stdout } = await runHerald(['person', 'export', phone, '--account', `${other.accountId}`], env)
    assert.deepEqual([...new Set(JSON.parse(stdout).messages.map((message: any) => message.accountId))], [other.accountId])
    const again = await runHerald(['person', 'export', phone, '--file', file], env)
    assert.deepEqual([again.code, again.stderr], [1, `The file ${file} already exists; name a new one.\n`])
    const refused = await runHerald(['person', 'erase', phone], env)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /^This would erase \d+ rows about \+\d+ in all accounts \(messages 18, .*\) for good.*--yes to do it\.\n$/)
    const erased = await heraldJson(['person', 'erase', phone, '--yes'], env)
    assert.deepEqual(erased.erased, shown.rows)
    const { erased: since, total } = await heraldJson(['person', 'show', phone], env)
    assert.deepEqual([total, since.length, since[0].accountId], [0, 1, null])
    assert.equal((await runHerald(['person', 'allow', phone, '--yes'], env)).stdout, `${phone} can be written to again in all accounts.\n`)
  })

  test('export shows statuses, events and times as the API does', async () => {
    const { phone } = await newPerson()
    await pool.query(
      `update messages set status = 'DELIVERED', accepted_at = '2026-10-01T10:00:42Z', sent_at = '2026-10-01T10:00:42Z',
         delivered_at = '2026-10-01T10:00:42.19Z', failed_at = null, failure_reason = null, failure_description = null 
       where recipient = $1 and account_id = $2`,
      [phone, one.accountId],
    )
    const { stdout } = await runHerald(['person', 'export', phone, '--account', `${one.accountId}`], env)
    const { messages, smsFallbacks, events } = JSON.parse(stdout)
    assert.deepEqual([messages[0].status, messages[0].deliveredAt], ['DELIVERED', '2026-10-01T10:00:42.190Z'])
    assert.deepEqual([smsFallbacks[0].status, smsFallbacks[0].reason], ['NOT_NEEDED', 'RCS_DELIVERED'])
    for (const time of stdout.matchAll(/"\w+At":"([^"]*)"/g)) assert.match(time[1] as string, /T\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { accountId, position, eventId, type, occurredAt, data } = events.find((event: any) => event.position !== null)
    assert.deepEqual([accountId, typeof position, type, data.recipient], [one.accountId, 'number', 'message.failed', phone])
    assert.match(`${eventId} ${occurredAt}`, /^[0-9a-f-]{36} \S+Z$/)
  })

  test('export leaves no file behind if it fails', async () => {
    const { phone } = await newPerson()
    const file = join(directory, 'broken.json')
    await ownerOf(pool).query('alter table webhook_attempts rename column response to unreadable')
    const { code } = await runHeraldProcess(['person', 'export', phone, '--file', file], env)
    await ownerOf(pool).query('alter table webhook_attempts rename column unreadable to response')
    assert.equal(code, 1)
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.startsWith('broken')),
      [],
    )
    const missing = await runHerald(['person', 'export', phone, '--file', join(directory, 'none', 'person.json')], env)
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, /^The file .*none\/person\.json can't be written: ENOENT: no such file or directory\.\n$/)
  })

  test('fails with a readable error for an invalid number and an unknown account', async () => {
    for (const [args, status, error] of [
      [['show', 'Nowak'], 2, /It must be an international phone number/],
      [['show', '+48500100200', '--account', '999'], 3, /^There is no account 999/],
      [['allow', '+48500100299', '--yes'], 3, /\+48500100299 was not erased\./],
    ] as const) {
      const { code, stdout, stderr } = await runHerald(['person', ...args], env)
      assert.deepEqual([code, stdout], [status, ''])
      assert.match(stderr, error)
    }
  })

  test('export writes valid JSON if nothing is stored', async () => {
    const { stdout } = await runHerald(['person', 'export', '+48500100298'], env)
    assert.deepEqual(Object.keys(JSON.parse(stdout)), ['phone', 'exportedAt'])
    for await (const found of findPerson(pool, { phone: '+48500100298' })) assert.fail(JSON.stringify(found))
  })
})
