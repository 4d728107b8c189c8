import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { addAutoReply } from '../../../src/replies/auto-replies.ts'
import { createTestDatabase } from '../../support/database.ts'
import { callerAt, type MessageCaller } from '../../support/messages.ts'
import { startTestService } from '../../support/service.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'
import { createSender, NO_LIMITS } from '../support.ts'

// What somebody does with their phone, from the phone to what the account gets, over both networks.

const { url, hotPool: pool } = await createTestDatabase()
const simulator = await startSimulator()
const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS }, { findCarriers: async () => simulator.settings })
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')

let phones = 0

/** A number that nobody else has, with the behaviour of its ending. */
function newPhone(ending: string): string {
  phones += 1
  return `+485001${String(phones).padStart(3, '0')}0${ending}`
}

async function newCaller(): Promise<MessageCaller> {
  return callerAt(service.url, await createSender(pool))
}

const QUICK_REPLY = { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'order 7: yes' }
const inline = (buttons: object[]) => ({ inline: { type: 'MESSAGE', content: 'Shall we come?', buttons } })
const SMS_SENDER = '48732000001'
const smsFallback = { planParams: { sender: SMS_SENDER, smsShipmentType: 1 }, smsMessagesPlan: [{ content: 'We come.' }] }
const trigger = (templateId: number) => ({ id: 'more', type: 'trigger_template', text: 'More', templateId })

/** What the account knows of what this phone did, once that is as much as expected; oldest first, without what is not there. */
async function actions({ accountId }: MessageCaller, phone: string, count: number): Promise<any[]> {
  const { rows } = await until(`${phone} has done ${count} things`, async () => {
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

/**
 * Everything that phones told is taken up, and everything that came of it is sent. Looked at in two places, so it counts only where the
 * network did nothing between a look before and a look after: what went from one place to the other would show there.
 */
async function settled(): Promise<void> {
  await until('all is settled', async () => {
    const before = await simulator.ask('counts')
    const { rowCount } = await pool.query(
      'select from carrier_events where process_after is not null union all select from queue union all select from sms_queue',
    )
    const { owed, ...totals } = await simulator.ask('counts')
    const isIdle = owed.steps + owed.webhooks + owed.deliverSm === 0
    return rowCount === 0 && isIdle && isDeepStrictEqual(before, { ...totals, owed })
  })
}

/** The texts that the phone has, in order. */
async function received(phone: string): Promise<{ messageId: string; text: string }[]> {
  const { messages } = await simulator.ask(`phones/${phone}`)
  return messages.map((message: any) => ({ messageId: message.messageId, text: message.agentMessage?.contentMessage.text ?? message.text }))
}

async function delivered(caller: MessageCaller, messageId: string): Promise<void> {
  await until('the phone has it', async () => ['DELIVERED', 'READ'].includes((await caller.read(messageId)).body.status))
}

/** What a caller reads of the SMS, once it has this state. */
async function smsBecomes(caller: MessageCaller, messageId: string, status: string): Promise<any> {
  return await until(`the SMS is ${status}`, async () => {
    const { body } = await caller.read(messageId)
    return body.smsFallback.status === status ? body.smsFallback : undefined
  })
}

describe('a phone that', { concurrency: 12 }, () => {
  test('ends in 06 and answers with a text is heard', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('06')]
    const messageId = await caller.accepted({ recipient })
    assert.deepEqual(await actions(caller, recipient, 1), [{ kind: 'wrote', channel: 'rcs', messageId, text: 'Thank you' }])
  })

  test('ends in 07 and taps the first button is heard', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('07')]
    const messageId = await caller.accepted({ recipient, message: inline([QUICK_REPLY]) })
    const expected = { kind: 'tapped', channel: 'rcs', messageId, buttonId: 'yes', text: 'Yes', payload: 'order 7: yes' }
    assert.deepEqual(await actions(caller, recipient, 1), [expected])
  })

  test('ends in 09 and answers STOP is out, and gets what is no campaign all the same', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('09')]
    const messageId = await caller.accepted({ recipient })
    assert.deepEqual(await actions(caller, recipient, 1), [{ kind: 'opted-out', channel: 'rcs', messageId, text: 'STOP' }])
    await delivered(caller, await caller.accepted({ recipient }))
  })

  test('taps a button that sends a template gets it, as a message that names the first', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('00')]
    const templateId = await caller.template({ type: 'MESSAGE', content: 'More of it' })
    const first = await caller.accepted({ recipient, message: inline([trigger(templateId)]) })
    await delivered(caller, first)
    await simulator.ask(`phones/${recipient}/tap`, { messageId: first, button: 'More' })
    const second = await until('the phone has the template', async () => (await received(recipient))[1])
    await delivered(caller, second.messageId)
    const { body } = await caller.read(second.messageId)
    const shown = [body.triggeredBy, body.recipient, body.agentId, body.test]
    assert.deepEqual([second.text, ...shown], ['More of it', first, recipient, caller.agentId, false])
    assert.ok(!('triggeredBy' in (await caller.read(first)).body))
  })

  test('taps whatever it gets is sent ten in a minute by a template whose button sends it again', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('07')]
    const templateId = await caller.template()
    const again = { type: 'MESSAGE', content: 'Again', buttons: [trigger(templateId)] }
    const { status } = await caller.ask('PUT', `/templates/${templateId}`, { name: 'T', basic: false, status: 'APPROVED', message: again })
    assert.equal(status, 200)
    await caller.accepted({ recipient, message: { templateId } })
    await actions(caller, recipient, 11)
    await settled()
    assert.equal((await received(recipient)).length, 11)
  })

  test('answers each message with the keyword of an automatic reply gets that once', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('06')]
    const templateId = await caller.template({ type: 'MESSAGE', content: 'You are welcome' })
    await addAutoReply(pool, { accountId: caller.accountId, agentId: caller.agentId, keyword: 'thank', templateId })
    const first = await caller.accepted({ recipient })
    const [, { messageId: second }] = (await actions(caller, recipient, 2)) as [unknown, { messageId: string }]
    await settled()
    const texts = await received(recipient)
    assert.deepEqual(
      texts.map(({ messageId }) => messageId),
      [first, second],
    )
    assert.equal(texts[1]?.text, 'You are welcome')
  })

  test('opens a page, shares a place, sends a file and writes is heard, and of each once', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('01')]
    const { agentId } = caller
    const page = { id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a' }
    const messageId = await caller.accepted({ recipient, message: inline([page]) })
    await delivered(caller, messageId)
    const deeds = [
      ['tap', { messageId, button: 0 }, { kind: 'clicked', buttonId: 'web', text: 'Web', url: 'https://example.com/a' }],
      ['share-location', { agentId, latitude: 52.5, longitude: 0 }, { kind: 'shared-location', latitude: 52.5, longitude: 0 }],
      [
        'send-file',
        { agentId, url: 'https://example.com/f.png', mimeType: 'image/png', fileName: 'f.png' },
        { kind: 'sent-file', text: 'f.png', payload: 'image/png', url: 'https://example.com/f.png' },
      ],
      ['reply', { agentId, text: 'Zażółć 📦' }, { kind: 'wrote', text: 'Zażółć 📦' }],
    ] as const
    for (const [index, [action, body]] of deeds.entries()) {
      await simulator.ask(`phones/${recipient}/${action}`, body)
      await actions(caller, recipient, index + 1)
    }
    const expected = deeds.map(([, , deed]) => ({ channel: 'rcs', messageId, ...deed }))
    assert.deepEqual(await actions(caller, recipient, deeds.length), expected)
  })

  test('unsubscribes, by event and word, is out once; and in again once when it subscribes', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('01')]
    const { agentId } = caller
    await delivered(caller, await caller.accepted({ recipient }))
    await simulator.ask(`phones/${recipient}/unsubscribe`, { agentId })
    await actions(caller, recipient, 1)
    await settled()
    await simulator.ask(`phones/${recipient}/subscribe`, { agentId })
    await actions(caller, recipient, 2)
    await settled()
    assert.deepEqual(
      (await actions(caller, recipient, 2)).map(({ kind }) => kind),
      ['opted-out', 'opted-in'],
    )
  })

  test('has no RCS answers the SMS; once it writes STOP there, it gets no further SMS, and is told why', async () => {
    const [caller, recipient] = [await newCaller(), newPhone('02')]
    const first = await caller.accepted({ recipient, smsFallback })
    await smsBecomes(caller, first, 'DELIVERED')
    await simulator.ask(`phones/${recipient}/reply`, { number: SMS_SENDER, text: 'Fine' })
    await actions(caller, recipient, 1)
    await simulator.ask(`phones/${recipient}/stop`, { number: SMS_SENDER })
    assert.deepEqual(await actions(caller, recipient, 2), [
      { kind: 'wrote', channel: 'sms', messageId: first, text: 'Fine' },
      { kind: 'opted-out', channel: 'sms', messageId: first, text: 'STOP' },
    ])
    const { reason } = await smsBecomes(caller, await caller.accepted({ recipient, smsFallback }), 'SKIPPED')
    assert.equal(reason, 'OPTED_OUT')
    assert.equal((await received(recipient)).length, 1)

    const other = await newCaller()
    await smsBecomes(other, await other.accepted({ recipient, smsFallback }), 'DELIVERED')
  })
})

test('an SMS that arrived though the network’s answer was lost can be answered with STOP', async () => {
  const [caller, recipient] = [await newCaller(), newPhone('02')]
  await simulator.ask('faults', { smpp: { dropUnanswered: { count: 1, submits: 1 } } }, 'PUT')
  const messageId = await caller.accepted({ recipient, smsFallback })
  const { reason } = await smsBecomes(caller, messageId, 'FAILED')
  assert.equal(reason, 'OUTCOME_UNKNOWN')
  await simulator.ask('faults', undefined, 'DELETE')
  assert.equal((await received(recipient)).length, 1)
  await simulator.ask(`phones/${recipient}/stop`, { number: SMS_SENDER })
  assert.deepEqual(await actions(caller, recipient, 1), [{ kind: 'opted-out', channel: 'sms', messageId, text: 'STOP' }])
})

test('the network’s repetitions count nothing, and no number or text is logged', async () => {
  const [caller, recipient] = [await newCaller(), newPhone('07')]
  await simulator.ask('faults', { webhooks: { duplicated: { rate: 1 } } }, 'PUT')
  await caller.accepted({ recipient, message: inline([QUICK_REPLY]) })
  await actions(caller, recipient, 1)
  await settled()
  await simulator.ask('faults', undefined, 'DELETE')
  assert.equal((await actions(caller, recipient, 1)).length, 1)
  assert.doesNotMatch(service.log(), /"level":"error"/)
  assert.doesNotMatch(service.log(), /485001\d{5}|Thank you|order 7/)
})
