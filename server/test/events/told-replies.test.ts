import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Executor } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import { shortCode } from '../../src/links/codes.ts'
import { createLinks, visitLink } from '../../src/links/links.ts'
import { changeOptOut, recordOptOut } from '../../src/replies/opt-outs.ts'
import {
  did,
  MINUTE_MS,
  otherNode,
  PHONE,
  partnerOf,
  pool,
  sentMessage,
  TEXT,
  tapped,
  tell,
  tellBoth,
  wrote,
  wroteSms,
} from '../delivery/replies/shared.ts'
import { createSender, type Sender, whileOthersCommit } from '../delivery/support.ts'
import { createAssignedAgent } from '../support/service.ts'
import { assertAllTold, readTold, type Told } from '../support/told.ts'
import { assertAsDocumented } from './documented.ts'

// What recipients do is told once, to the account it concerns, with the message they answer where there is one.

/** The events of an account, in order, without those of sent messages. */
async function readDeeds(account: { accountId: number }): Promise<Told[]> {
  return (await readTold(pool, account)).filter(({ kind }) => kind !== 'message.sent')
}

/** A message that was sent, to which the caller gave a name, with the sender's buttons. */
async function answered(made: Parameters<typeof sentMessage>[1] = {}): Promise<{ sender: Sender; messageId: string; data: object }> {
  const sender = await createSender(pool)
  const messageId = await sentMessage(sender, made)
  await pool.query(`update messages set client_reference_id = 'order-1' where id = $1`, [messageId])
  const data = {
    messageId,
    clientReferenceId: 'order-1',
    agentId: sender.agentId,
    recipient: PHONE,
    test: made.test ?? false,
    channel: 'rcs',
  }
  return { sender, messageId, data }
}

const BUTTONS = [
  { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'order 7: "yes"' },
  { id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a?b=c' },
  { id: 'call', type: 'call', text: 'Call', phoneNumber: '+48221234567' },
]

describe('a tap', () => {
  for (const [buttonId, kind, what] of [
    ['yes', 'message.replied', { action: 'tapped', text: 'Yes', payload: 'order 7: "yes"' }],
    ['call', 'message.replied', { action: 'tapped', text: 'Call' }],
    ['web', 'message.clicked', { action: 'clicked', text: 'Web', url: 'https://example.com/a?b=c' }],
  ] as const) {
    test(`on ${buttonId} is told as ${kind}, once, though its event comes twice and to two nodes`, async () => {
      const { sender, messageId, data } = await answered({ content: { ...TEXT, buttons: BUTTONS } })
      const event = tapped(sender, messageId, buttonId, { agoMs: 1_000 })
      await tellBoth([event, event])
      await tell([event])
      const { occurredAt } = event
      assert.deepEqual(await readDeeds(sender), [{ kind, subjectId: messageId, occurredAt, data: { ...data, buttonId, ...what } }])
    })
  }

  test('on a test message is told as one of a test', async () => {
    const { sender, messageId, data } = await answered({ content: { ...TEXT, buttons: BUTTONS }, test: true })
    await tell([tapped(sender, messageId, 'call')])
    const told = await readDeeds(sender)
    assert.deepEqual(
      told.map((one) => one.data),
      [{ ...data, test: true, buttonId: 'call', action: 'tapped', text: 'Call' }],
    )
  })

  test('by somebody else is not told', async () => {
    const { sender, messageId } = await answered({ content: { ...TEXT, buttons: BUTTONS } })
    await tell([tapped(sender, messageId, 'yes', { phone: '+48500100999' })])
    assert.deepEqual(await readDeeds(sender), [])
  })
})

describe('an answer', () => {
  const file = { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' }
  for (const [name, deed, what] of [
    ['text', { kind: 'wrote', text: 'Yes, "please" 🎈\n' }, { action: 'wrote', text: 'Yes, "please" 🎈\n' }],
    ['place', { kind: 'shared-location', latitude: -33.9, longitude: 0 }, { action: 'shared-location', latitude: -33.9, longitude: 0 }],
    ['file', file, { action: 'sent-file', text: 'f.png', payload: 'image/png', url: 'https://example.com/f.png' }],
  ] as const) {
    test(`that is a ${name} is told, with the message that it answers`, async () => {
      const { sender, messageId, data } = await answered()
      const event = did(sender, deed, { agoMs: 1_000 })
      await tellBoth([event])
      const { occurredAt } = event
      assert.deepEqual(await readDeeds(sender), [{ kind: 'message.replied', subjectId: messageId, occurredAt, data: { ...data, ...what } }])
    })
  }

  test('to no message is told without one', async () => {
    const sender = await createSender(pool)
    const event = wrote(sender, 'Out of the blue', { agoMs: 1_000 })
    await tell([event])
    const data = { agentId: sender.agentId, recipient: PHONE, channel: 'rcs', action: 'wrote', text: 'Out of the blue' }
    assert.deepEqual(await readDeeds(sender), [{ kind: 'message.replied', subjectId: null, occurredAt: event.occurredAt, data }])
  })

  test('by SMS is told to be so, also where its message is forgotten', async () => {
    const sender = await createSender(pool)
    const messageId = await smsContact(sender, '48732000001')
    await tell([wroteSms('48732000001', 'Yes')])
    const [told, ...others] = await readDeeds(sender)
    const data = { messageId, agentId: sender.agentId, recipient: PHONE, channel: 'sms', action: 'wrote', text: 'Yes' }
    assert.deepEqual([told?.kind, told?.subjectId, told?.data, others], ['message.replied', messageId, data, []])
  })

  test('for an account that can’t be told is told to nobody', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    await tell([wrote(a, 'Hello')])
    assert.deepEqual([await readDeeds(a), await readDeeds(b)], [[], []])
  })

  test('to one of two accounts with the same agent is told to that one', async () => {
    const { sender, messageId } = await answered({ agoMs: MINUTE_MS })
    const partner = await partnerOf(sender)
    await sentMessage(partner, { agoMs: 2 * MINUTE_MS })
    await tell([wrote(sender, 'Hello')])
    assert.deepEqual([(await readDeeds(sender)).map(({ subjectId }) => subjectId), await readDeeds(partner)], [[messageId], []])
  })
})

async function smsContact({ accountId, agentId }: Sender, number: string): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    'insert into sms_contacts values ($1, $2, $3, $4, uuid_v7(), false, now()) returning message_id as id',
    [accountId, PHONE, number, agentId],
  )
  return (rows[0] as { id: string }).id
}

describe('a short link', () => {
  const key = randomBytes(32)
  const url = 'https://example.com/"a"?b=c'
  async function linked(copy = 0): Promise<{ sender: Sender; messageId: string; code: string; data: object }> {
    const one = await answered()
    const { accountId, agentId } = one.sender
    const code = shortCode(key, one.messageId, copy, 0)
    await createLinks(pool, [{ code, accountId, messageId: one.messageId, copy, agentId, recipient: PHONE, url }])
    return { ...one, code }
  }

  test('is told as clicked by a person’s first visit alone, however many come at once; not by a robot’s', async () => {
    const { sender, messageId, code, data } = await linked()
    await visitLink(pool, code, true)
    assert.deepEqual(await readDeeds(sender), [])
    await Promise.all([pool, otherNode, pool, otherNode, pool].map((node) => visitLink(node, code, false)))
    await visitLink(pool, code, true)
    await visitLink(pool, code, false)
    const { rows } = await pool.query('select clicked_at as "clickedAt" from short_links where code = $1', [code])
    const clicked = { ...data, channel: 'sms', action: 'clicked', url }
    assert.deepEqual(await readDeeds(sender), [
      { kind: 'message.clicked', subjectId: messageId, occurredAt: rows[0].clickedAt, data: clicked },
    ])
  })

  test('of a message that is forgotten is told with what is known', async () => {
    const { sender, messageId, code } = await linked()
    await pool.query('delete from messages where id = $1', [messageId])
    for (const table of ['report_deltas', 'log_pages']) await pool.query(`delete from ${table} where account_id = $1`, [sender.accountId])
    await visitLink(pool, code, false)
    const data = { messageId, agentId: sender.agentId, recipient: PHONE, channel: 'sms', action: 'clicked', url }
    assert.deepEqual(
      (await readDeeds(sender)).map((one) => one.data),
      [data],
    )
  })

  test('of a copy for a test number is not told', async () => {
    const { sender, code } = await linked(1)
    assert.equal(await visitLink(pool, code, false), url)
    assert.deepEqual(await readDeeds(sender), [])
  })
})

describe('one who wants no more messages', () => {
  test('is told once, though the word and the event come together to two nodes; not as an answer, and not when they are back', async () => {
    const { sender, messageId, data } = await answered()
    const unsubscribed = did(sender, { kind: 'unsubscribed' }, { agoMs: 2_000 })
    const events = [unsubscribed, { ...wrote(sender, 'Stop!'), occurredAt: unsubscribed.occurredAt }]
    await tellBoth(events)
    await tell([wrote(sender, 'STOP', { agoMs: 1_500 })])
    const told = await readDeeds(sender)
    // Whichever came first: only who wrote has a text.
    const word = 'text' in (told[0]?.data ?? {}) ? { text: 'Stop!' } : {}
    const { occurredAt } = events[0] as { occurredAt: Date }
    assert.deepEqual(told, [
      {
        kind: 'recipient.opted_out',
        subjectId: messageId,
        occurredAt,
        data: { ...data, ...word, source: 'text' in word ? 'word' : 'unsubscribe' },
      },
    ])
    await tellBoth([did(sender, { kind: 'subscribed' }, { agoMs: 1_000 }), wrote(sender, 'START', { agoMs: 1_000 })])
    assert.equal((await readDeeds(sender)).length, 1)
    await tell([wrote(sender, 'STOP')])
    assert.deepEqual(
      (await readDeeds(sender)).map(({ kind }) => kind),
      ['recipient.opted_out', 'recipient.opted_out'],
    )
  })

  test('is not told by a word that is older than what they said last', async () => {
    const { sender } = await answered()
    await tell([wrote(sender, 'START', { agoMs: 1_000 })])
    await tell([wrote(sender, 'STOP', { agoMs: 2_000 })])
    assert.deepEqual(await readDeeds(sender), [])
  })

  test('is told with the word that they wrote, and with no message where they answer none', async () => {
    const sender = await createSender(pool)
    const event = wrote(sender, 'Rezygnuję', { agoMs: 1_000 })
    await tell([event])
    const data = { agentId: sender.agentId, recipient: PHONE, channel: 'rcs', source: 'word', text: 'Rezygnuję' }
    assert.deepEqual(await readDeeds(sender), [{ kind: 'recipient.opted_out', subjectId: null, occurredAt: event.occurredAt, data }])
  })

  test('of an agent that several accounts share is told to each where none has sent them anything, else to that one', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    await tellBoth([wrote(a, 'STOP', { agoMs: 2_000 })])
    const counts = async () => [(await readDeeds(a)).length, (await readDeeds(b)).length]
    assert.deepEqual(await counts(), [1, 1])
    await sentMessage(b)
    await tell([wrote(a, 'START', { agoMs: 1_000 })])
    await tell([wrote(a, 'STOP')])
    assert.deepEqual(await counts(), [1, 2])
  })

  test('by SMS is told for each agent by which the account has written from that number', async () => {
    const one = await createSender(pool)
    const two = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
    const ids = [await smsContact(one, '48732000077'), await smsContact(two, '48732000077')]
    await tell([wroteSms('48732000077', 'STOP')])
    const told = (await readDeeds(one)).toSorted((x, y) => ids.indexOf(x.subjectId as string) - ids.indexOf(y.subjectId as string))
    assert.deepEqual(
      told.map(({ kind, data }) => [kind, data]),
      [one, two].map(({ agentId }, index) => [
        'recipient.opted_out',
        { messageId: ids[index], agentId, recipient: PHONE, channel: 'sms', source: 'word', text: 'STOP' },
      ]),
    )
  })

  test('by the operator’s hand is told where that changes something, and when they are in again it is not', async () => {
    const sender = await createSender(pool)
    const { accountId, agentId } = sender
    const key = { accountId, agentId, phone: PHONE }
    await changeOptOut(pool, key, true)
    await changeOptOut(pool, key, true)
    const told = await readDeeds(sender)
    assert.deepEqual(
      told.map(({ kind, subjectId, data }) => [kind, subjectId, data]),
      [['recipient.opted_out', null, { agentId, recipient: PHONE, source: 'operator' }]],
    )
    await tell([wrote(sender, 'STOP')])
    await changeOptOut(pool, key, false)
    await assert.rejects(changeOptOut(pool, key, false), OperatorError)
    await assert.rejects(changeOptOut(pool, { ...key, agentId: 'nobody' }, true), OperatorError)
    assert.equal((await readDeeds(sender)).length, 1)
  })

  test('is told with how they said so', async () => {
    const [byWord, byPhone, byOperator] = [await createSender(pool), await createSender(pool), await createSender(pool)]
    await tell([wrote(byWord, 'STOP'), did(byPhone, { kind: 'unsubscribed' })])
    await changeOptOut(pool, { accountId: byOperator.accountId, agentId: byOperator.agentId, phone: PHONE }, true)
    const told = await Promise.all([byWord, byPhone, byOperator].map((sender) => readDeeds(sender)))
    assert.deepEqual(
      told.map(([event]) => event?.data.source),
      ['word', 'unsubscribe', 'operator'],
    )
  })

  test('by the operator’s hand is told with the time that is on record', async () => {
    const sender = await createSender(pool)
    const key = { accountId: sender.accountId, agentId: sender.agentId, phone: PHONE }
    const writeStart = (tx: Executor) => recordOptOut(tx, { ...key, optedOut: false, source: 'word' })
    const { changedAt } = await whileOthersCommit(pool, writeStart, () => changeOptOut(pool, key, true))
    const [told] = await readDeeds(sender)
    assert.deepEqual(told?.occurredAt, changedAt)
  })
})

test('all that recipients did here was told, as it is documented', async () => {
  assert.ok((await assertAllTold(pool)) > 15)
  await assertAsDocumented(pool)
})
