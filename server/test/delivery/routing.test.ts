import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LOOKED_UP } from '../../src/delivery/failures.ts'
import { fillGroup } from '../campaigns/support.ts'
import { newKey, smsFallback } from '../support/messages.ts'
import { TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'
import { readOnce, startSimulated } from './simulated.ts'
import { sendUntilAccepted } from './support.ts'

// The routing `capability`, from the request to the phone. The simulated network answers look-ups by the ending of the number: 02 has no RCS.

const { pool, simulator, newCaller, received } = await startSimulated()
const caller = await newCaller()

let numbers = 0
function newNumber(ending: '00' | '02'): string {
  numbers += 1
  return `+48720${String(numbers).padStart(4, '0')}${ending}`
}

/** Half of the numbers are without RCS. */
const newNumbers = (count: number) => Array.from({ length: count }, (_, n) => newNumber(n % 2 === 0 ? '00' : '02'))
const hasRcs = (phone: string) => phone.endsWith('00')

/** What the RCS network did about these numbers: a message that it refuses is an entry, too. */
async function rcsEntriesOf(phones: string[]): Promise<string[]> {
  const found: string[] = []
  for (let after = 0; ; ) {
    const { entries, next } = await simulator.ask(`ledger?after=${after}&limit=1000`)
    found.push(...entries.filter(({ channel, phone }: any) => channel === 'rcs' && phones.includes(phone)).map(({ kind }: any) => kind))
    if (entries.length < 1000) return found
    after = next
  }
}

/** Waits for the final status by RCS and by SMS, and fails unless every number without RCS got its SMS, without any RCS message. */
async function assertRouted(messages: { messageId: string; recipient: string }[]): Promise<void> {
  for (const { messageId, recipient } of messages) {
    if (hasRcs(recipient)) {
      const { smsFallback: sms } = await readOnce(caller, messageId, 'is READ', ({ status }) => status === 'READ')
      assert.equal(sms.status, 'NOT_NEEDED')
      continue
    }
    const body = await readOnce(caller, messageId, 'has its SMS', (message) => message.smsFallback.status === 'DELIVERED')
    assert.deepEqual([body.status, body.failure], ['FAILED', { reason: 'NOT_REACHABLE', description: LOOKED_UP }])
    assert.equal(body.smsFallback.dueAt, body.failedAt, 'the SMS is due at once')
    assert.equal((await received(recipient)).length, 1)
  }
  assert.deepEqual(await rcsEntriesOf(messages.map(({ recipient }) => recipient).filter((phone) => !hasRcs(phone))), [])
}

/** Sends a message with an SMS fallback, and returns its final state by RCS. */
async function sendTo(recipient: string, fields: Record<string, unknown> = { routing: 'capability' }): Promise<any> {
  const { messageId } = await sendUntilAccepted(caller, { recipient, smsFallback: smsFallback(), ...fields })
  return await readOnce(caller, messageId, 'is over', ({ status }) => status === 'READ' || status === 'FAILED')
}

async function setKnown(phone: string, reachable: boolean): Promise<void> {
  await pool.query(`insert into capabilities values ($1, $2, $3, $4, now())`, [phone, caller.agentId, simulator.rcs.name, reachable])
}

async function untilKnown(phone: string, reachable: boolean): Promise<void> {
  await until(`${phone} is known as ${reachable}`, async () => {
    const { rowCount } = await pool.query('select from capabilities where phone = $1 and reachable = $2', [phone, reachable])
    return rowCount === 1
  })
}

describe('with the routing capability, numbers without RCS get their SMS at once and no RCS message, all others get RCS', () => {
  test('in single messages', async () => {
    const send = async (recipient: string) => {
      const { messageId } = await sendUntilAccepted(caller, { recipient, routing: 'capability', smsFallback: smsFallback() })
      return { messageId, recipient }
    }
    await assertRouted(await Promise.all(newNumbers(20).map(send)))
  })

  test('in a campaign', async () => {
    await fillGroup(pool, caller.accountId, 1, newNumbers(200))
    const body = {
      name: 'Spring sale',
      agentId: caller.agentId,
      segmentIds: [1],
      message: { inline: TEXT },
      smsFallback: smsFallback(),
      routing: 'capability',
    }
    const { campaignId } = (await caller.ask('POST', '/campaigns', body, { 'Idempotency-Key': newKey() })).body
    const messages = await until('all messages are created', async () => {
      const text = 'select id as "messageId", recipient from messages where campaign_id = $1'
      const { rows } = await pool.query<{ messageId: string; recipient: string }>(text, [campaignId])
      return rows.length === 200 ? rows : undefined
    })
    await assertRouted(messages)
  })
})

test('a message without an SMS fallback to a number without RCS fails, and is not sent', async () => {
  const recipient = newNumber('02')
  const { status, failure } = await sendTo(recipient, { routing: 'capability', smsFallback: undefined })
  assert.deepEqual([status, failure.reason], ['FAILED', 'NOT_REACHABLE'])
  assert.deepEqual([await rcsEntriesOf([recipient]), await received(recipient)], [[], []])
})

test('its timeline says that the message was not sent because of a look-up', async () => {
  const { messageId } = await sendTo(newNumber('02'))
  await readOnce(caller, messageId, 'has its SMS', ({ smsFallback: sms }) => sms.status === 'DELIVERED')
  const { items } = (await caller.ask('GET', `/messages/${messageId}/timeline`)).body
  const steps = items.filter(({ step }: any) => step !== 'webhook-attempt').map(({ step, reason }: any) => [step, reason])
  assert.deepEqual(
    steps.map(([step]: string[]) => step),
    ['accepted', 'failed', 'sms-scheduled', 'sms-checked', 'sms-sent', 'sms-delivered'],
  )
  const failed = items.find(({ step }: any) => step === 'failed')
  assert.deepEqual([failed.reason, failed.description, failed.data], ['NOT_REACHABLE', LOOKED_UP, {}])
})

describe('a wrong result of a look-up is corrected', () => {
  test('by the first receipt, if the number has RCS', async () => {
    const recipient = newNumber('00')
    await setKnown(recipient, false)
    assert.equal((await sendTo(recipient)).status, 'FAILED')
    assert.equal((await sendTo(recipient, {})).status, 'READ')
    await untilKnown(recipient, true)
    assert.equal((await sendTo(recipient)).status, 'READ')
  })

  test('by the first failure, if the number has no RCS', async () => {
    const recipient = newNumber('02')
    await setKnown(recipient, true)
    const { failure } = await sendTo(recipient)
    assert.match(failure.description, /The network said: 404 /)
    await untilKnown(recipient, false)
    assert.equal((await sendTo(recipient)).failure.description, LOOKED_UP)
    assert.deepEqual(await rcsEntriesOf([recipient]), ['refused'])
  })

  test('and messages with the routing attempt store nothing about a number', async () => {
    const [has, hasNot] = [newNumber('00'), newNumber('02')]
    for (const recipient of [has, hasNot]) await sendTo(recipient, { routing: 'attempt' })
    const { rowCount } = await pool.query('select from capabilities where phone = any ($1)', [[has, hasNot]])
    assert.equal(rowCount, 0)
  })
})
