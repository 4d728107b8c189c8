import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addAutoReply } from '../../../src/replies/auto-replies.ts'
import { createSender, queueMessage, type Sender } from '../support.ts'
import { logged, pool } from './nodes.ts'
import { did, ELSEWHERE, PHONE, receiveReplies, receiveRepliesOnBothNodes, wrote, wroteSms } from './recipients.ts'
import { actionsOf, DAY_MS, MINUTE_MS, messagesOf, partnerOf, sentMessage, smsContact, TEXT, template } from './shared.ts'

// A text reaches the account whose message it replies to, and no other.

const textsOf = async (sender: Sender) => (await actionsOf(sender)).map(({ text, messageId }) => [text, messageId])

/** Two accounts with the same agent. */
async function partners(): Promise<[Sender, Sender]> {
  const a = await createSender(pool)
  return [a, await partnerOf(a)]
}

describe('a text is attributed', () => {
  test('to the account whose message came last, of several with the same agent', async () => {
    const [a, b] = await partners()
    const ofA = await sentMessage(a, { agoMs: 4 * MINUTE_MS })
    await receiveReplies([wrote(a, 'To A', { agoMs: 3 * MINUTE_MS })])
    const ofB = await sentMessage(b, { agoMs: 2 * MINUTE_MS })
    await receiveReplies([wrote(a, 'To B', { agoMs: MINUTE_MS })])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[['To A', ofA]], [['To B', ofB]]])
  })

  // Each time, the message of the other account does not count.
  const MINUTES = (minutes: number) => minutes * MINUTE_MS
  const others: Record<string, { mine?: object; other: (b: Sender) => Promise<unknown>; agoMs?: number }> = {
    'by the time of sending, not of accepting': {
      mine: { agoMs: MINUTES(10), sentAgoMs: MINUTE_MS },
      other: (b) => sentMessage(b, { agoMs: MINUTES(5) }),
    },
    'to no message that the network refused': { mine: { agoMs: MINUTES(2) }, other: (b) => sentMessage(b, { sentAgoMs: undefined }) },
    'to no message that is still queued': { other: (b) => queueMessage(pool, b, { recipient: PHONE, dueInMs: 3_600_000 }) },
    'to no message that was sent after the text, however late the text arrives': {
      mine: { agoMs: MINUTES(60) },
      other: (b) => sentMessage(b, { agoMs: MINUTES(5) }),
      agoMs: MINUTES(30),
    },
  }
  for (const [rule, { mine, other, agoMs = 1_000 }] of Object.entries(others)) {
    test(rule, async () => {
      const [a, b] = await partners()
      const ofA = await sentMessage(a, mine)
      await other(b)
      await receiveReplies([wrote(a, 'To A', { agoMs }), wrote(a, 'STOP', { agoMs: agoMs - 1 })])
      assert.deepEqual(
        [await textsOf(a), await textsOf(b)],
        [
          [
            ['To A', ofA],
            ['STOP', ofA],
          ],
          [],
        ],
      )
    })
  }

  test('to a message whose send has not returned yet, since a phone may be faster than the response', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { recipient: PHONE, attempts: 1 })
    await receiveReplies([wrote(sender, 'Quick')])
    assert.deepEqual(await textsOf(sender), [['Quick', messageId]])
  })

  test('to a message of the last thirty days; without one to the only account of the agent, or to none', async () => {
    const alone = await createSender(pool)
    await sentMessage(alone, { agoMs: 31 * DAY_MS })
    await receiveReplies([wrote(alone, 'Unexpected')])
    assert.deepEqual(await textsOf(alone), [['Unexpected', undefined]])
    const late = await sentMessage(alone, { agoMs: 29 * DAY_MS })
    await receiveReplies([wrote(alone, 'Late')])
    assert.deepEqual((await textsOf(alone)).at(-1), ['Late', late])
    const scheduled = await sentMessage(alone, { agoMs: 40 * DAY_MS, sentAgoMs: 28 * DAY_MS })
    await receiveReplies([wrote(alone, 'Later')])
    assert.deepEqual((await textsOf(alone)).at(-1), ['Later', scheduled])

    const [a, b] = await partners()
    await sentMessage(a, { agoMs: 31 * DAY_MS })
    const lines = await logged(() => receiveReplies([wrote(a, 'CANARY')]))
    assert.deepEqual([lines.length, lines[0].level, lines[0].reason], [1, 'warn', 'no account matches'])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[], []])
  })

  test('only over the carrier of the agent', async () => {
    const sender = await createSender(pool)
    await sentMessage(sender)
    await receiveReplies([wrote(sender, 'Hello', { carrier: ELSEWHERE })])
    assert.deepEqual(await textsOf(sender), [])
  })

  test('in the same way as a location and a file', async () => {
    const [a, b] = await partners()
    const [, messageId] = [await sentMessage(b, { agoMs: 2 * MINUTE_MS }), await sentMessage(a)]
    const file = { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' }
    await receiveReplies([did(a, { kind: 'shared-location', latitude: -33.9, longitude: 0 }, { agoMs: 1_000 }), did(a, file)])
    const common = { channel: 'rcs', agentId: a.agentId, messageId }
    assert.deepEqual(await actionsOf(a), [
      { kind: 'shared-location', ...common, latitude: -33.9, longitude: 0 },
      { kind: 'sent-file', ...common, text: 'f.png', payload: 'image/png', url: 'https://example.com/f.png' },
    ])
    assert.deepEqual(await actionsOf(b), [])
  })

  test('by SMS to the account whose SMS from that number came last', async () => {
    const [a, b] = [await createSender(pool), await createSender(pool)]
    const ofA = await smsContact(a, '48732000001', 2)
    await smsContact(a, '48732000002', 1)
    const ofB = await smsContact(b, '48732000001', 3)
    await receiveReplies([wroteSms('48732000001', 'To A'), wroteSms('48732000009', 'To nobody')])
    assert.deepEqual(await actionsOf(a), [{ kind: 'wrote', channel: 'sms', agentId: a.agentId, messageId: ofA, text: 'To A' }])
    await pool.query('update sms_contacts set sent_at = now() where message_id = $1', [ofB])
    await receiveReplies([wroteSms('48732000001', 'To B')])
    assert.deepEqual([(await textsOf(a)).length, await textsOf(b)], [1, [['To B', ofB]]])
  })
})

describe('an automatic reply', () => {
  async function withKeyword(keyword: string): Promise<Sender & { first: string }> {
    const sender = await createSender(pool)
    const templateId = await template(sender, { ...TEXT, content: 'Nine to five' })
    await addAutoReply(pool, { accountId: sender.accountId, agentId: sender.agentId, keyword, templateId })
    return { ...sender, first: await sentMessage(sender, { test: true }) }
  }

  for (const [text, isSent] of [
    ['Jakie są GODZINY?', true],
    ['gódzińy', true],
    ['godzinyotwarcia', false],
    ['godzina', false],
  ] as const) {
    test(`for "godziny" is ${isSent ? '' : 'not '}sent after "${text}"`, async () => {
      const sender = await withKeyword('Godziny')
      await receiveReplies([wrote(sender, text)])
      const sent = (await messagesOf(sender)).map(({ triggeredBy, test: isTest, content }) => [triggeredBy, isTest, content.content])
      assert.deepEqual(sent, isSent ? [[sender.first, true, 'Nine to five']] : [])
      assert.equal((await actionsOf(sender)).length, 1)
    })
  }

  test('is sent once a minute to a number, for twenty texts on two nodes', async () => {
    const sender = await withKeyword('hours')
    await receiveRepliesOnBothNodes(Array.from({ length: 20 }, () => wrote(sender, 'hours')))
    assert.equal((await actionsOf(sender)).length, 20)
    assert.equal((await messagesOf(sender)).length, 1)
    // With 15 s left, the minute does not end on a slow machine.
    for (const [secondsAgo, count] of Object.entries({ 45: 1, 60: 2 })) {
      const turn = `update auto_reply_turns set replied_at = now() - $2::int * interval '1 second' where account_id = $1`
      await pool.query(turn, [sender.accountId, secondsAgo])
      await receiveReplies([wrote(sender, 'hours')])
      assert.equal((await messagesOf(sender)).length, count)
    }
  })

  test('is not sent after an opt-out word, after an SMS, or for another account', async () => {
    const sender = await withKeyword('help')
    const partner = await partnerOf(sender)
    await smsContact(sender, '48732000004', 1)
    await receiveReplies([wrote(sender, 'STOP'), wroteSms('48732000004', 'please help me')])
    await sentMessage(partner, { agoMs: 0 })
    await receiveReplies([wrote(sender, 'please help me')])
    assert.deepEqual([await messagesOf(sender), await messagesOf(partner)], [[], []])
    assert.deepEqual(new Set((await actionsOf(sender)).map(({ kind }) => kind)), new Set(['opted-out', 'wrote']))
  })
})
