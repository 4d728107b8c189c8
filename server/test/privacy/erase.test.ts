import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import { allowPerson } from '../../src/privacy/allow.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { summarize } from '../../src/privacy/find.ts'
import { readOnce } from '../delivery/simulated.ts'
import { readCounted } from '../support/counted.ts'
import { tablesWith } from '../support/dump.ts'
import { smsFallback } from '../support/messages.ts'
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
  const reports = await Promise.all(paths.map(async (path) => (await caller.ask('GET', path)).body))
  const lists = ['accepted', 'sent', 'delivered', 'failed', 'clicked', 'replied', 'opted-out', 'sms-sent'].map(
    (kind) => `recipients/${kind}`,
  )
  const counts = [...lists, 'action-details'].map(async (list) => {
    const { body } = await caller.ask('GET', `/reports/campaigns/${campaignId}/${list}?from=${from}&to=${from}`)
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
  const bodies = await Promise.all(paths.map(async (path) => (await caller.ask('GET', path)).body))
  return bodies.map((body) => (typeof body === 'string' ? body : JSON.stringify(body))).join('\n')
}

describe('erasing a person', () => {
  for (const [how, live] of Object.entries({ 'with RCS': liveByRcs, 'without RCS': liveBySms })) {
    test(`${how} removes the number and the texts from every table, and changes no report`, async () => {
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
