import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addAutoReply } from '../../../src/replies/auto-replies.ts'
import { createSender, queueMessage, type Sender } from '../support.ts'
import {
  actionsOf,
  DAY_MS,
  did,
  ELSEWHERE,
  logged,
  MINUTE_MS,
  messagesOf,
  PHONE,
  partnerOf,
  pool,
  sentMessage,
  smsContact,
  TEXT,
  tell,
  tellBoth,
  template,
  wrote,
  wroteSms,
} from './shared.ts'

// What people write reaches the account whose message they answer, and nobody else.

describe('a text is for the account whose message it answers:', () => {
  const textsOf = async (sender: Sender) => (await actionsOf(sender)).map(({ text, messageId }) => [text, messageId])

  test('of several accounts with the same agent, the one whose message came last', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const ofA = await sentMessage(a, { agoMs: 4 * MINUTE_MS })
    await tell([wrote(a, 'To A', { agoMs: 3 * MINUTE_MS })])
    const ofB = await sentMessage(b, { agoMs: 2 * MINUTE_MS })
    await tell([wrote(a, 'To B', { agoMs: MINUTE_MS })])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[['To A', ofA]], [['To B', ofB]]])
  })

  test('by the time it came, not by the time it was accepted', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const ofA = await sentMessage(a, { agoMs: 10 * MINUTE_MS, sentAgoMs: MINUTE_MS })
    await sentMessage(b, { agoMs: 5 * MINUTE_MS })
    await tell([wrote(a, 'To A')])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[['To A', ofA]], []])
  })

  test('not one that the network refused', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const ofA = await sentMessage(a, { agoMs: 2 * MINUTE_MS })
    await sentMessage(b, { sentAgoMs: undefined })
    await tell([wrote(a, 'To A')])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[['To A', ofA]], []])
  })

  test('not one that still waits to be sent', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const ofA = await sentMessage(a)
    await queueMessage(pool, b, { recipient: PHONE, dueInMs: 3_600_000 })
    await tell([wrote(a, 'To A', { agoMs: 1_000 }), wrote(a, 'STOP')])
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

  test('not one that was sent after the text was written, however late that arrives', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const ofA = await sentMessage(a, { agoMs: 60 * MINUTE_MS })
    await sentMessage(b, { agoMs: 5 * MINUTE_MS })
    await tell([wrote(a, 'To A', { agoMs: 30 * MINUTE_MS })])
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[['To A', ofA]], []])
  })

  test('one whose sending is still under way, as where a phone is quicker than the network’s answer', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { recipient: PHONE, attempts: 1 })
    await tell([wrote(sender, 'Quick')])
    assert.deepEqual(await textsOf(sender), [['Quick', messageId]])
  })

  test('of thirty days; where there is none, it is the only account of the agent, or nobody', async () => {
    const alone = await createSender(pool)
    await sentMessage(alone, { agoMs: 31 * DAY_MS })
    await tell([wrote(alone, 'Out of the blue')])
    assert.deepEqual(await textsOf(alone), [['Out of the blue', undefined]])
    const late = await sentMessage(alone, { agoMs: 29 * DAY_MS })
    await tell([wrote(alone, 'Late')])
    assert.deepEqual((await textsOf(alone)).at(-1), ['Late', late])

    const a = await createSender(pool)
    const b = await partnerOf(a)
    await sentMessage(a, { agoMs: 31 * DAY_MS })
    const lines = await logged(() => tell([wrote(a, 'CANARY')]))
    assert.deepEqual(
      lines.map(({ level, reason }) => [level, reason]),
      [['warn', 'no account matches']],
    )
    assert.deepEqual([await textsOf(a), await textsOf(b)], [[], []])
  })

  test('over the network that the agent is of', async () => {
    const sender = await createSender(pool)
    await sentMessage(sender)
    await tell([wrote(sender, 'Hello', { carrier: ELSEWHERE })])
    assert.deepEqual(await textsOf(sender), [])
  })

  test('a place and a file are attributed as a text is', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const [, messageId] = [await sentMessage(b, { agoMs: 2 * MINUTE_MS }), await sentMessage(a)]
    const file = { kind: 'sent-file', url: 'https://example.com/f.png', mimeType: 'image/png', name: 'f.png' }
    await tell([did(a, { kind: 'shared-location', latitude: -33.9, longitude: 0 }, { agoMs: 1_000 }), did(a, file)])
    const common = { channel: 'rcs', agentId: a.agentId, messageId }
    assert.deepEqual(await actionsOf(a), [
      { kind: 'shared-location', ...common, latitude: -33.9, longitude: 0 },
      { kind: 'sent-file', ...common, text: 'f.png', payload: 'image/png', url: 'https://example.com/f.png' },
    ])
    assert.deepEqual(await actionsOf(b), [])
  })

  test('by SMS, the one whose SMS came from that number last', async () => {
    const [a, b] = [await createSender(pool), await createSender(pool)]
    const ofA = await smsContact(a, '48732000001', 2)
    await smsContact(a, '48732000002', 1)
    const ofB = await smsContact(b, '48732000001', 3)
    await tell([wroteSms('48732000001', 'To A'), wroteSms('48732000009', 'To nobody')])
    assert.deepEqual(await actionsOf(a), [{ kind: 'wrote', channel: 'sms', agentId: a.agentId, messageId: ofA, text: 'To A' }])
    await pool.query('update sms_contacts set sent_at = now() where message_id = $1', [ofB])
    await tell([wroteSms('48732000001', 'To B')])
    assert.deepEqual([(await textsOf(a)).length, await textsOf(b)], [1, [['To B', ofB]]])
  })
})

describe('an automatic reply', () => {
  async function withKeyword(keyword: string): Promise<Sender & { first: string; templateId: number }> {
    const sender = await createSender(pool)
    const templateId = await template(sender, { ...TEXT, content: 'Nine to five' })
    await addAutoReply(pool, { accountId: sender.accountId, agentId: sender.agentId, keyword, templateId })
    return { ...sender, templateId, first: await sentMessage(sender, { test: true }) }
  }

  for (const [text, count] of [
    ['Jakie są GODZINY?', 1],
    ['gódzińy', 1],
    ['godzinyotwarcia', 0],
    ['godzina', 0],
  ] as const) {
    test(`to "godziny" answers "${text}" ${count === 1 ? 'once' : 'never'}`, async () => {
      const sender = await withKeyword('Godziny')
      await tell([wrote(sender, text)])
      const sent = (await messagesOf(sender)).map(({ triggeredBy, test: isTest, content }) => [triggeredBy, isTest, content.content])
      assert.deepEqual(sent, count === 0 ? [] : [[sender.first, true, 'Nine to five']])
      assert.equal((await actionsOf(sender)).length, 1)
    })
  }

  test('is one in a minute for one number, of twenty texts at once on two nodes', async () => {
    const sender = await withKeyword('hours')
    await tellBoth(Array.from({ length: 20 }, () => wrote(sender, 'hours')))
    assert.equal((await actionsOf(sender)).length, 20)
    assert.equal((await messagesOf(sender)).length, 1)
    await pool.query(`update auto_reply_turns set replied_at = replied_at - interval '59 seconds' where account_id = $1`, [
      sender.accountId,
    ])
    await tell([wrote(sender, 'hours')])
    assert.equal((await messagesOf(sender)).length, 1)
    await pool.query(`update auto_reply_turns set replied_at = replied_at - interval '1 second' where account_id = $1`, [sender.accountId])
    await tell([wrote(sender, 'hours')])
    assert.equal((await messagesOf(sender)).length, 2)
  })

  test('answers no word that opts out or in, no SMS, and nothing for another account', async () => {
    const sender = await withKeyword('help')
    const partner = await partnerOf(sender)
    await smsContact(sender, '48732000004', 1)
    await tell([wrote(sender, 'STOP'), wroteSms('48732000004', 'please help me')])
    await sentMessage(partner, { agoMs: 0 })
    await tell([wrote(sender, 'please help me')])
    assert.deepEqual([await messagesOf(sender), await messagesOf(partner)], [[], []])
    assert.deepEqual(new Set((await actionsOf(sender)).map(({ kind }) => kind)), new Set(['opted-out', 'wrote']))
  })
})
