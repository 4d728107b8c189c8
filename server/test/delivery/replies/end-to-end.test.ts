import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { MessageCaller } from '../../support/messages.ts'
import { until } from '../../support/until.ts'
import { readOnce, startSimulated } from '../simulated.ts'
import { kinds, sendUntilAccepted } from '../support.ts'

// From an action on a phone to what the account sees, over both networks.

const { pool, simulator, service, newCaller, received } = await startSimulated()

let phones = 0

/** A new caller, and a new number whose behaviour goes by its ending. */
async function newPair(ending: string): Promise<[caller: MessageCaller, recipient: string]> {
  phones += 1
  const phone = `+485001${String(phones).padStart(3, '0')}0${ending}`
  return [await newCaller(), phone]
}

const QUICK_REPLY = { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'order 7: yes' }
const inline = (...buttons: object[]) => ({ inline: { type: 'MESSAGE', content: 'Shall we come?', buttons } })
const SMS_SENDER = '48732000001'
const smsFallback = { planParams: { sender: SMS_SENDER, smsShipmentType: 1 }, smsMessagesPlan: [{ content: 'We come.' }] }

/** The actions of this phone that the account sees, once there are this many; oldest first, without empty fields. */
async function actions({ accountId }: MessageCaller, phone: string, count: number): Promise<any[]> {
  const { rows } = await until(`${phone} has ${count} actions`, async () => {
    const found = await pool.query(
      `select json_strip_nulls(to_json(a)) as action from (
         select kind, channel, message_id as "messageId", button_id as "buttonId", text, payload, url, latitude, longitude
         from recipient_actions where account_id = $1 and recipient = $2 order by id
       ) as a`,
      [accountId, phone],
    )
    return found.rowCount === count ? found : undefined
  })
  return rows.map(({ action }) => action)
}

/** Waits until all replies are processed and all messages sent. Reads the network before and after: nothing may move in between. */
async function settled(): Promise<void> {
  await until('nothing is left to do', async () => {
    const before = await simulator.ask('counts')
    const { rowCount } = await pool.query(
      'select from carrier_events where process_after is not null union all select from queue union all select from sms_queue',
    )
    const { owed, ...totals } = await simulator.ask('counts')
    const isIdle = owed.steps + owed.webhooks + owed.deliverSm === 0
    return rowCount === 0 && isIdle && isDeepStrictEqual(before, { ...totals, owed })
  })
}

const send = async (caller: MessageCaller, fields: object): Promise<string> => (await sendUntilAccepted(caller, { ...fields })).messageId

const delivered = (caller: MessageCaller, messageId: string) =>
  readOnce(caller, messageId, 'is delivered', ({ status }) => ['DELIVERED', 'READ'].includes(status))

/** What the caller reads of the SMS, once it has this status. */
async function smsBecomes(caller: MessageCaller, messageId: string, status: string): Promise<any> {
  return (await readOnce(caller, messageId, `has an SMS that is ${status}`, ({ smsFallback: sms }) => sms.status === status)).smsFallback
}

describe('a phone', { concurrency: 12 }, () => {
  for (const [ending, action] of Object.entries({
    '06': { kind: 'wrote', text: 'Thank you' },
    '07': { kind: 'tapped', buttonId: 'yes', text: 'Yes', payload: 'order 7: yes' },
    '09': { kind: 'opted-out', text: 'STOP' },
  })) {
    test(`that ends in ${ending} replies: ${action.kind}`, async () => {
      const [caller, recipient] = await newPair(ending)
      const messageId = await send(caller, { recipient, message: inline(QUICK_REPLY) })
      assert.deepEqual(await actions(caller, recipient, 1), [{ channel: 'rcs', messageId, ...action }])
      // An opt-out concerns campaigns and SMS alone.
      await delivered(caller, await send(caller, { recipient }))
    })
  }

  test('that taps a button which sends a template gets it as a message that names the first', async () => {
    const [caller, recipient] = await newPair('00')
    const templateId = await until('the template is created', () => caller.template({ type: 'MESSAGE', content: 'More of it' }))
    const trigger = { id: 'more', type: 'trigger_template', text: 'More', templateId }
    const first = await send(caller, { recipient, message: inline(trigger) })
    await delivered(caller, first)
    await simulator.ask(`phones/${recipient}/tap`, { messageId: first, button: 'More' })
    const second = await until('the phone has the template', async () => (await received(recipient))[1])
    await delivered(caller, second.messageId)
    const { body } = await caller.read(second.messageId)
    const shown = [body.triggeredBy, body.recipient, body.agentId, body.test]
    assert.deepEqual([second.agentMessage.contentMessage.text, ...shown], ['More of it', first, recipient, caller.agentId, false])
    assert.ok(!('triggeredBy' in (await caller.read(first)).body))
  })

  test('that opens a page, shares a location, sends a file and writes shows each action once', async () => {
    const [caller, recipient] = await newPair('01')
    const { agentId } = caller
    const page = { id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a' }
    const messageId = await send(caller, { recipient, message: inline(page) })
    await delivered(caller, messageId)
    const location = { latitude: 52.5, longitude: 0 }
    const file = { url: 'https://example.com/f.png', mimeType: 'image/png', fileName: 'f.png' }
    const replies = [
      ['tap', { messageId, button: 0 }, { kind: 'clicked', buttonId: 'web', text: 'Web', url: 'https://example.com/a' }],
      ['share-location', { agentId, ...location }, { kind: 'shared-location', ...location }],
      ['send-file', { agentId, ...file }, { kind: 'sent-file', text: 'f.png', payload: 'image/png', url: file.url }],
      ['reply', { agentId, text: 'Zażółć 📦' }, { kind: 'wrote', text: 'Zażółć 📦' }],
    ] as const
    for (const [index, [action, body]] of replies.entries()) {
      await simulator.ask(`phones/${recipient}/${action}`, body)
      await actions(caller, recipient, index + 1)
    }
    const expected = replies.map(([, , shown]) => ({ channel: 'rcs', messageId, ...shown }))
    assert.deepEqual(await actions(caller, recipient, replies.length), expected)
  })

  test('that unsubscribes, by event and word, opts out once, and opts in once when it subscribes', async () => {
    const [caller, recipient] = await newPair('01')
    await delivered(caller, await send(caller, { recipient }))
    for (const [index, action] of ['unsubscribe', 'subscribe'].entries()) {
      await simulator.ask(`phones/${recipient}/${action}`, { agentId: caller.agentId })
      await actions(caller, recipient, index + 1)
      await settled()
    }
    assert.deepEqual(kinds(await actions(caller, recipient, 2)), ['opted-out', 'opted-in'])
  })

  test('without RCS replies to the SMS, and gets no further SMS of the account after STOP', async () => {
    const [caller, recipient] = await newPair('02')
    const first = await send(caller, { recipient, smsFallback })
    await smsBecomes(caller, first, 'DELIVERED')
    await simulator.ask(`phones/${recipient}/reply`, { number: SMS_SENDER, text: 'Fine' })
    await actions(caller, recipient, 1)
    await simulator.ask(`phones/${recipient}/stop`, { number: SMS_SENDER })
    assert.deepEqual(await actions(caller, recipient, 2), [
      { kind: 'wrote', channel: 'sms', messageId: first, text: 'Fine' },
      { kind: 'opted-out', channel: 'sms', messageId: first, text: 'STOP' },
    ])
    const { reason } = await smsBecomes(caller, await send(caller, { recipient, smsFallback }), 'SKIPPED')
    assert.equal(reason, 'OPTED_OUT')
    assert.equal((await received(recipient)).length, 1)
    const [other] = await newPair('02')
    await smsBecomes(other, await send(other, { recipient, smsFallback }), 'DELIVERED')
  })
})

test('a blocked phone gets no message and no SMS of any kind until the account ends the block', async () => {
  const [caller, recipient] = await newPair('01')
  const templateId = await caller.template()
  const first = await send(caller, { recipient, message: inline({ id: 'more', type: 'trigger_template', text: 'More', templateId }) })
  await delivered(caller, first)
  assert.equal((await caller.ask('PUT', `/opt-outs/${recipient}`, { block: true })).status, 200)
  await simulator.ask(`phones/${recipient}/tap`, { messageId: first, button: 'More' })
  const triggered = await until('the tap has triggered a message', async () => {
    const { rows } = await pool.query<{ id: string }>('select id from messages where triggered_by = $1', [first])
    return rows[0]?.id
  })
  const { body: tests } = await caller.sendTest({ agentId: caller.agentId, recipients: [recipient], message: inline() })
  const single = await send(caller, { recipient, smsFallback })
  for (const messageId of [triggered, tests.items[0].messageId, single]) {
    const { failure } = await readOnce(caller, messageId, 'is FAILED', ({ status }) => status === 'FAILED')
    assert.deepEqual(failure, { reason: 'BLOCKED', description: 'The account blocks messages to the recipient.' })
  }
  assert.equal((await smsBecomes(caller, single, 'SKIPPED')).reason, 'BLOCKED')
  await simulator.ask(`phones/${recipient}/reply`, { agentId: caller.agentId, text: 'START' })
  await settled()
  assert.equal((await received(recipient)).length, 1)
  assert.equal((await caller.ask('PUT', `/opt-outs/${recipient}`, {})).status, 200, 'opted out of campaigns only')
  await delivered(caller, await send(caller, { recipient }))
})

test('STOP is accepted as a reply to an SMS whose submit got no response', async () => {
  const [caller, recipient] = await newPair('02')
  await simulator.ask('faults', { smpp: { dropUnanswered: { count: 1, submits: 1 } } }, 'PUT')
  const messageId = await send(caller, { recipient, smsFallback })
  const { reason } = await smsBecomes(caller, messageId, 'FAILED')
  assert.equal(reason, 'OUTCOME_UNKNOWN')
  await simulator.ask('faults', undefined, 'DELETE')
  assert.equal((await received(recipient)).length, 1)
  await simulator.ask(`phones/${recipient}/stop`, { number: SMS_SENDER })
  assert.deepEqual(await actions(caller, recipient, 1), [{ kind: 'opted-out', channel: 'sms', messageId, text: 'STOP' }])
})

test('repeated webhooks change nothing, and no number or text is logged', async () => {
  const [caller, recipient] = await newPair('07')
  await simulator.ask('faults', { webhooks: { duplicated: { rate: 1 } } }, 'PUT')
  await send(caller, { recipient, message: inline(QUICK_REPLY) })
  await actions(caller, recipient, 1)
  await settled()
  await simulator.ask('faults', undefined, 'DELETE')
  assert.equal((await actions(caller, recipient, 1)).length, 1)
  assert.doesNotMatch(service.log(), /"level":"error"/)
  assert.doesNotMatch(service.log(), /485001\d{5}|Thank you|order 7/)
})
