import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import { allowPerson } from '../../src/privacy/allow.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { findPerson, summarize } from '../../src/privacy/find.ts'
import { fillGroup } from '../campaigns/support.ts'
import { readOnce } from '../delivery/simulated.ts'
import { readCounted } from '../support/counted.ts'
import { tablesWith } from '../support/dump.ts'
import { smsFallback } from '../support/messages.ts'
import { untilFarFromMidnight } from '../support/midnight.ts'
import { untilAvailable } from '../support/service.ts'
import { until } from '../support/until.ts'
import { type Life, startPrivacy } from './life.ts'

const { pool, simulator, people, received, settled, newAccount, newName, runCampaign, liveByRcs, liveBySms } = await startPrivacy()

const digits = (phone: string) => phone.slice(1)
const textsOf = ({ phone, mark }: Life) => [digits(phone), mark, '52.512345']

/** What callers read about the account, apart from the person: reports, counters and the number of rows in each list. */
async function readReports({ caller, campaignId }: Life) {
  const from = new Date().toISOString().slice(0, 10)
  const paths = [
    `/campaigns/${campaignId}`,
    `/reports/campaigns/${campaignId}/summary?from=${from}&to=${from}`,
    `/reports/messages/summary?from=${from}&to=${from}`,
  ]
  const reports = await Promise.all(paths.map(async (path) => (await untilAvailable(() => caller.ask('GET', path))).body))
  const lists = ['accepted', 'sent', 'delivered', 'failed', 'clicked', 'replied', 'opted-out', 'sms-sent'].map(
    (kind) => `recipients/${kind}`,
  )
  const counts = [...lists, 'action-details'].map(async (list) => {
    const path = `/reports/campaigns/${campaignId}/${list}?from=${from}&to=${from}`
    const { body } = await untilAvailable(() => caller.ask('GET', path))
    return [list, body.items.length]
  })
  return { reports, lists: await Promise.all(counts), counters: await readCounted(pool, caller) }
}

/** Everything that the caller can download: the feed, the exports, and the list of messages. */
async function downloads({ caller, campaignId }: Life): Promise<string> {
  const day = new Date().toISOString().slice(0, 10)
  const paths = [
    '/events?limit=200',
    '/messages',
    `/reports/messages/export?from=${day}&to=${day}`,
    `/reports/campaigns/${campaignId}/recipients/accepted?from=${day}&to=${day}`,
  ]
  const bodies = await Promise.all(paths.map(async (path) => (await untilAvailable(() => caller.ask('GET', path))).body))
  return bodies.map((body) => (typeof body === 'string' ? body : JSON.stringify(body))).join('\n')
}

describe('erasing a person', () => {
  for (const [how, live] of Object.entries({ 'with RCS': liveByRcs, 'without RCS': liveBySms })) {
    test(`${how} removes the number and the texts from every table, and changes no report`, async () => {
      await untilFarFromMidnight()
      const life = await live()
      const before = await readReports(life)
      const found = await tablesWith(pool, textsOf(life))
      const { rows } = await summarize(pool, life, people)
      assert.ok(found.length >= 9, found.join())
      assert.match(await downloads(life), new RegExp(digits(life.phone)))
      const erased = await erasePerson(pool, people, life)
      assert.deepEqual(await tablesWith(pool, textsOf(life)), [])
      assert.deepEqual(await readReports(life), before)
      assert.doesNotMatch(await downloads(life), new RegExp(textsOf(life).join('|')))
      assert.deepEqual(erased, rows)
      assert.deepEqual((await summarize(pool, life, people)).rows, {})
    })
  }

  test('sends nothing to a number that is in a group again, or in a new message', async () => {
    const life = await liveByRcs()
    await erasePerson(pool, people, life)
    const { caller, phone } = life
    const count = (await received(phone)).length
    const campaignId = await runCampaign(caller, phone, 'again')
    assert.equal((await caller.ask('GET', `/campaigns/${campaignId}`)).body.recipients, 1)
    const messageId = await caller.accepted({ recipient: phone, smsFallback: smsFallback() })
    const failed = await readOnce(caller, messageId, 'has failed', (message) => message.smsFallback.status === 'SKIPPED')
    assert.deepEqual([failed.status, failed.failure.reason, failed.smsFallback.reason], ['FAILED', 'ERASED', 'ERASED'])
    assert.equal((await received(phone)).length, count)
    // What the account has stored since is erased by another run.
    await erasePerson(pool, people, life)
    assert.deepEqual(await tablesWith(pool, [digits(phone)]), [])
  })

  test('drops late replies, and records late receipts and clicks under the placeholder', async () => {
    const caller = await newAccount()
    const { phone, mark } = newName('04')
    const messageId = await caller.accepted({ recipient: phone, clientReferenceId: mark })
    await readOnce(caller, messageId, 'is sent', ({ status }) => status === 'SENT')
    await erasePerson(pool, people, { phone })
    const { agentId } = caller
    await simulator.ask(`phones/${phone}/deliver`, { messageId })
    await readOnce(caller, messageId, 'is read', ({ status }) => status === 'READ')
    for (const [action, fields] of [
      ['reply', { agentId, text: `Late ${mark}` }],
      ['reply', { agentId, text: 'hours' }],
      ['subscribe', { agentId }],
      ['stop', { agentId }],
    ] as const)
      await simulator.ask(`phones/${phone}/${action}`, fields)
    await settled()
    assert.deepEqual(await tablesWith(pool, [digits(phone), mark]), [])
    assert.match((await caller.read(messageId)).body.recipient, /^erased-[0-9a-f]{32}$/)
    assert.equal((await received(phone)).length, 1)
  })

  test('in one account leaves the data of the others, and drops only its own late replies', async () => {
    const [one, other] = [await newAccount(), await newAccount()]
    const { phone, mark } = newName('01')
    for (const caller of [one, other]) {
      const messageId = await caller.accepted({ recipient: phone, clientReferenceId: mark })
      await readOnce(caller, messageId, 'is delivered', ({ status }) => status === 'DELIVERED')
    }
    await settled()
    await erasePerson(pool, people, { phone, accountId: one.accountId })
    const actionsOf = async () =>
      (await pool.query('select account_id from recipient_actions where text = any ($1)', [[`A ${mark}`, `B ${mark}`]])).rows
    await simulator.ask(`phones/${phone}/reply`, { agentId: one.agentId, text: `A ${mark}` })
    await simulator.ask(`phones/${phone}/reply`, { agentId: other.agentId, text: `B ${mark}` })
    await settled()
    assert.deepEqual(await actionsOf(), [{ account_id: other.accountId }])
    assert.deepEqual(await tablesWith(pool, [`A ${mark}`]), [])
    const { rows } = await pool.query('select distinct account_id from messages where recipient = $1', [phone])
    assert.deepEqual(rows, [{ account_id: other.accountId }])
    assert.deepEqual((await summarize(pool, { phone, accountId: one.accountId }, people)).rows.messages, undefined)
    for (const [caller, status] of [
      [one, 'FAILED'],
      [other, 'DELIVERED'],
    ] as const)
      await readOnce(caller, await caller.accepted({ recipient: phone }), `is ${status}`, (message) => message.status === status)
  })

  test('in one account finds, counts and erases nothing of what the person wrote to another', async () => {
    const [one, other] = [await newAccount(), await newAccount()]
    const { phone, mark } = newName('01')
    for (const caller of [one, other]) {
      const messageId = await caller.accepted({ recipient: phone })
      await readOnce(caller, messageId, 'is delivered', ({ status }) => status === 'DELIVERED')
      await simulator.ask(`phones/${phone}/reply`, { agentId: caller.agentId, text: `${mark} to ${caller.accountId}` })
    }
    await settled()
    const exported = async ({ accountId }: { accountId: number }) => {
      const found = []
      for await (const rows of findPerson(pool, { phone, accountId })) found.push(rows)
      return found
    }
    const textsIn = (found: object) => [...new Set(JSON.stringify(found).match(new RegExp(`${mark} to \\d+`, 'g')))]
    const summaryOf = async ({ accountId }: { accountId: number }) => (await summarize(pool, { phone, accountId }, people)).rows
    assert.deepEqual(textsIn(await exported(one)), [`${mark} to ${one.accountId}`])
    assert.equal((await summaryOf(one)).networkEvents, undefined)
    const [before, counted] = [await exported(other), await summaryOf(other)]
    assert.deepEqual(textsIn(before), [`${mark} to ${other.accountId}`])
    await erasePerson(pool, people, { phone, accountId: one.accountId })
    assert.deepEqual([await exported(other), await summaryOf(other)], [before, counted])
    assert.deepEqual(await tablesWith(pool, [`${mark} to ${one.accountId}`]), [])
    await erasePerson(pool, people, { phone, accountId: other.accountId })
    assert.deepEqual(await tablesWith(pool, [digits(phone), mark]), [])
  })

  test('has the same result while the service sends to the person, gets replies and posts events', async () => {
    const caller = await newAccount()
    const { phone, mark } = newName('06')
    const inline = { type: 'MESSAGE', content: `Dear ${mark}` }
    const send = (n: number) => caller.accepted({ recipient: phone, clientReferenceId: `${mark} ${n}`, message: { inline } })
    const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => send(n)))
    await until('some are sent', async () => (await received(phone)).length > 3)
    await Promise.all([erasePerson(pool, people, { phone }), erasePerson(pool, people, { phone })])
    await settled()
    assert.deepEqual(await tablesWith(pool, [digits(phone), mark, 'Thank you']), [])
    const messages = await Promise.all(ids.map(async (id) => (await caller.read(id)).body))
    assert.equal(new Set(messages.map(({ recipient }) => recipient)).size, 1)
    for (const { status, failure } of messages) assert.ok(['DELIVERED', 'READ'].includes(status) || failure.reason === 'ERASED', status)
  })

  test('fails waiting messages, and skips their SMS', async () => {
    const caller = await newAccount()
    const { phone } = newName('02')
    const delayed = smsFallback({ delay: 3_600 })
    const scheduled = await caller.accepted({ recipient: phone, smsFallback: delayed })
    await readOnce(caller, scheduled, 'has a scheduled SMS', (message) => message.smsFallback.status === 'SCHEDULED')
    // No worker serves this carrier.
    const agent = { agentId: `waiting-${caller.agentId}`, name: 'waiting', billingType: 'single', carrier: 'none' } as const
    await createAgent(pool, agent)
    await assignAgent(pool, agent.agentId, caller.accountId)
    const waiting = await caller.accepted({ recipient: phone, smsFallback: delayed, agentId: agent.agentId })
    await erasePerson(pool, people, { phone })
    const { body } = await caller.read(waiting)
    assert.deepEqual([body.failure.reason, body.smsFallback.status, body.smsFallback.reason], ['ERASED', 'SKIPPED', 'ERASED'])
    const { smsFallback: sms } = await readOnce(caller, scheduled, 'is skipped', (message) => message.smsFallback.status === 'SKIPPED')
    assert.equal(sms.reason, 'ERASED')
  })

  test('sends nothing when a request to the person is repeated, and keeps the keys of requests to others', async () => {
    const caller = await newAccount()
    const { phone } = newName('01')
    // The number of another person, which begins with the digits of this one.
    const other = `${phone}5`
    const [keyOfOther, key, mentioning] = [`order-${digits(other)}`, `order-${digits(phone)}`, `friend of 00${digits(phone)}`]
    const submitted = new Map([
      [keyOfOther, other],
      [mentioning, other],
      [key, phone],
    ])
    const submit = async (each: string) => (await caller.send(each, caller.request({ recipient: submitted.get(each) }))).body.messageId
    const ids = new Map<string, string>()
    for (const each of submitted.keys()) {
      ids.set(each, await submit(each))
      await readOnce(caller, ids.get(each) as string, 'is over', isOver)
    }
    const campaign = {
      name: 'Sale',
      agentId: caller.agentId,
      segmentIds: [77],
      scheduledAt: new Date(Date.now() + 86_400_000).toISOString(),
      message: { inline: { type: 'MESSAGE', content: 'Sale' } },
    }
    await fillGroup(pool, caller.accountId, 77, ['+48500770002'])
    const plan = async () => (await caller.ask('POST', '/campaigns', campaign, { 'Idempotency-Key': key })).body.campaignId
    const campaignId = await plan()
    assert.equal(typeof campaignId, 'string')
    await erasePerson(pool, people, { phone })
    assert.deepEqual([await submit(keyOfOther), await submit(mentioning)], [ids.get(keyOfOther), ids.get(mentioning)])
    assert.equal(await plan(), campaignId)
    const again = await submit(key)
    assert.notEqual(again, ids.get(key))
    const { failure } = await readOnce(caller, again, 'has failed', ({ status }) => status === 'FAILED')
    assert.equal(failure.reason, 'ERASED')
    assert.deepEqual([(await received(phone)).length, (await received(other)).length], [1, 2])
  })

  test('sends no copy of an SMS whose text it has erased', async () => {
    const caller = await newAccount()
    const [{ phone }, { phone: tester }] = [newName('02'), newName('02')]
    const messageId = await caller.accepted({ recipient: phone, smsFallback: smsFallback({ delay: 3_600 }) })
    await readOnce(caller, messageId, 'has a scheduled SMS', (message) => message.smsFallback.status === 'SCHEDULED')
    await pool.query(
      `insert into sms_queue (message_id, copy, account_id, recipient, priority, planned_at, due_at, expires_at, segments)
       values ($1, 1, $2, $3, 2, now(), now() + interval '1 hour', now() + interval '1 day', 1)`,
      [messageId, caller.accountId, tester],
    )
    await erasePerson(pool, people, { phone })
    await pool.query('update sms_queue set due_at = now() where message_id = $1 and copy = 1', [messageId])
    await settled()
    assert.deepEqual(await received(tester), [])
  })

  test('waits for a call in progress, fails with what to do if it takes too long, and is completed by the next run', async () => {
    const caller = await newAccount()
    const { phone, mark } = newName('01')
    const agent = { agentId: `leased-${caller.agentId}`, name: 'leased', billingType: 'single', carrier: 'none' } as const
    await createAgent(pool, agent)
    await assignAgent(pool, agent.agentId, caller.accountId)
    const messageId = await caller.accepted({ recipient: phone, clientReferenceId: mark, agentId: agent.agentId })
    await pool.query(`update queue set lease = gen_random_uuid(), leased_until = now() + interval '1 hour' where message_id = $1`, [
      messageId,
    ])
    await assert.rejects(erasePerson(pool, people, { phone }, { callsEndWithinMs: 100 }), {
      message: new RegExp(
        `^The erasure of \\+${digits(phone)} is not complete: .* Run "herald person erase" again to finish the erasure\\.$`,
      ),
    })
    await assert.rejects(allowPerson(pool, people, { phone }), /is not complete/)
    await pool.query(`update queue set leased_until = now() where message_id = $1`, [messageId])
    await erasePerson(pool, people, { phone })
    assert.deepEqual(await tablesWith(pool, [digits(phone), mark]), [])
    assert.equal((await caller.read(messageId)).body.failure.reason, 'ERASED')
  })

  test('can be undone: the operator lets accounts write to the number again', async () => {
    const caller = await newAccount()
    const { phone } = newName('01')
    await erasePerson(pool, people, { phone })
    const status = async () => (await readOnce(caller, await caller.accepted({ recipient: phone }), 'is over', isOver)).status
    assert.equal(await status(), 'FAILED')
    await allowPerson(pool, people, { phone })
    assert.equal(await status(), 'DELIVERED')
    await assert.rejects(allowPerson(pool, people, { phone }), /was not erased/)
  })
})

const isOver = ({ status }: { status: string }) => ['FAILED', 'DELIVERED', 'READ'].includes(status)
