import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setOptOut } from '../../../src/replies/opt-outs.ts'
import { createAssignedAgent } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { createSender, kindsOf, queueMessage, readAll, receipt, type Sender, statusOf } from '../support.ts'
import { assertPostponed, createCarrier, makeDue, startWorker } from '../worker.ts'
import { pool, url } from './nodes.ts'
import { did, ELSEWHERE, PHONE, receiveReplies, receiveRepliesOnBothNodes, wrote, wroteSms } from './recipients.ts'
import { actionsOf, partnerOf, sentMessage, smsContact } from './shared.ts'

// A recipient who opted out gets no more campaigns and no SMS. A blocked recipient gets nothing.

describe('an opt-out', () => {
  /** By account and agent: whether the recipient has opted out, or in again. */
  async function readOptOuts(): Promise<Map<string, boolean>> {
    const { rows } = await pool.query(`select account_id || ' ' || agent_id as key, opted_out from opt_outs where phone = $1`, [PHONE])
    return new Map(rows.map(({ key, opted_out }) => [key, opted_out]))
  }
  const isOut = async ({ accountId, agentId }: Sender) => (await readOptOuts()).get(`${accountId} ${agentId}`)
  const actionKindsOf = async (sender: Sender) => (await actionsOf(sender)).map(({ kind }) => kind)

  test('by SMS concerns every agent for which the account sent SMS from that number, and no other account', async () => {
    const [one, stranger] = [await createSender(pool), await createSender(pool)]
    const two = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
    const elsewhere = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
    await smsContact(stranger, '48732000077', 9)
    await smsContact(one, '48732000077', 8)
    await smsContact(two, '48732000077', 7)
    await smsContact(elsewhere, '48732000078', 1)
    await receiveReplies([wroteSms('48732000077', 'STOP')])
    assert.deepEqual(await Promise.all([one, two, elsewhere, stranger].map(isOut)), [true, true, undefined, undefined])
    await receiveReplies([wroteSms('48732000077', 'START')])
    assert.deepEqual(await Promise.all([one, two].map(isOut)), [false, false])
  })

  test('by event and word together counts once, and so does the end of it', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender)
    await receiveRepliesOnBothNodes([did(sender, { kind: 'unsubscribed' }), wrote(sender, 'Stop!')])
    assert.equal(await isOut(sender), true)
    const [{ text, ...action }, ...others] = await actionsOf(sender)
    assert.deepEqual([action, others], [{ kind: 'opted-out', channel: 'rcs', agentId: sender.agentId, messageId }, []])
    await receiveReplies([did(sender, { kind: 'subscribed' }), wrote(sender, 'START')])
    assert.equal(await isOut(sender), false)
    assert.deepEqual(await actionKindsOf(sender), ['opted-out', 'opted-in'])
  })

  test('is a single word of several languages, however it is spelt; a sentence with that word is a text', async () => {
    for (const word of ['STOP', 'stopall', 'UNSUBSCRIBE', 'End', 'quit.', 'Rezygnuję', 'abmelden', 'Baja', 'PARAR', 'arret']) {
      const sender = await createSender(pool)
      await sentMessage(sender)
      await receiveReplies([wrote(sender, `${word} at the bakery`, { agoMs: 1_000 }), wrote(sender, word)])
      assert.deepEqual([await isOut(sender), await actionKindsOf(sender)], [true, ['wrote', 'opted-out']], word)
    }
  })

  for (const [first, last] of [
    ['STOP', 'START'],
    ['START', 'STOP'],
  ] as const) {
    test(`by ${first} is ended or begun by a later ${last}, even if that arrives first`, async () => {
      const sender = await createSender(pool)
      await sentMessage(sender)
      await receiveReplies([wrote(sender, last, { agoMs: 1_000 })])
      await receiveReplies([wrote(sender, first, { agoMs: 2_000 })])
      assert.equal(await isOut(sender), last === 'STOP')
    })
  }

  test('concerns one agent and account, or all accounts of the agent if none has sent the recipient anything', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const before = await readOptOuts()
    await receiveReplies([wrote(a, 'STOP', { agoMs: 2_000 })])
    assert.deepEqual([await isOut(a), await isOut(b)], [true, true])
    await sentMessage(a)
    await receiveReplies([wrote(a, 'START')])
    assert.deepEqual([await isOut(a), await isOut(b)], [false, true])
    assert.equal((await readOptOuts()).size, before.size + 2)
    const c = await createSender(pool)
    await receiveReplies([wrote(c, 'STOP', { carrier: ELSEWHERE })])
    assert.equal(await isOut(c), undefined)
  })

  test('by SMS fails RCS messages of campaigns before they reach the network, and no other messages', async (t) => {
    const sender = await createSender(pool)
    const messageId = await smsContact(sender, '48732000003', 1)
    await receiveReplies([wroteSms('48732000003', 'stop')])
    assert.deepEqual(await actionsOf(sender), [{ kind: 'opted-out', channel: 'sms', agentId: sender.agentId, messageId, text: 'stop' }])

    const other = await createSender(pool)
    const queued = { recipient: PHONE, dueInMs: 3_600_000 }
    const [campaign, transaction, ofOther, toOther] = [
      await queueMessage(pool, sender, queued),
      await queueMessage(pool, sender, queued),
      await queueMessage(pool, other, queued),
      await queueMessage(pool, sender, { ...queued, recipient: '+48500100298' }),
    ]
    await pool.query(`update messages set traffic = 'PROMOTION' where id = any ($1)`, [[campaign, ofOther, toOther]])
    await makeDue(pool, [campaign, transaction, ofOther, toOther])
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    const failed = await until('the message of the campaign has failed, and the others are sent', async () => {
      const { message } = await readAll(pool, campaign)
      const seen = new Set(carrier.seen.map((one) => one.messageId))
      return message.status === 'FAILED' && [transaction, ofOther, toOther].every((id) => seen.has(id)) ? message : undefined
    })
    assert.equal(failed.failure_reason, 'OPTED_OUT')
    assert.ok(!carrier.seen.some((one) => one.messageId === campaign))
  })
})

const block = ({ accountId, agentId }: Sender, of: { agentId?: string } = { agentId }) =>
  setOptOut(pool, { accountId, ...of, phone: PHONE, optedOut: true, block: true, source: 'api' })

test('a block fails waiting messages of any kind, of the agent or of all agents, and no message of another agent or account', async (t) => {
  const [one, all, other] = [await createSender(pool), await createSender(pool), await createSender(pool)]
  const ofOtherAgent = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
  const queued = { recipient: PHONE, dueInMs: 3_600_000 }
  const blocked = [
    await queueMessage(pool, one, queued),
    await queueMessage(pool, all, queued),
    await queueMessage(pool, one, queued),
    await queueMessage(pool, one, queued),
  ]
  const sent = [await queueMessage(pool, ofOtherAgent, queued), await queueMessage(pool, other, queued)]
  await pool.query(`update messages set traffic = 'PROMOTION' where id = $1`, [blocked[2]])
  await pool.query(`update messages set traffic = 'SERVICEREQUEST' where id = $1`, [blocked[3]])
  await block(one)
  await block(all, {})
  await makeDue(pool, [...blocked, ...sent])
  const carrier = createCarrier()
  startWorker(t, url, carrier)
  await until('all have their result', async () => {
    const all = await Promise.all([...blocked, ...sent].map((id) => statusOf(pool, id)))
    return all.join() === [...blocked.map(() => 'FAILED'), ...sent.map(() => 'SENT')].join()
  })
  for (const id of blocked) {
    const { message, queue } = await readAll(pool, id)
    const { failure_reason: reason, failure_description: description } = message
    assert.deepEqual([reason, description, queue], ['BLOCKED', 'The account blocks messages to the recipient.', null])
  }
  assert.deepEqual(new Set(carrier.seen.map(({ messageId }) => messageId)), new Set(sent))
})

describe('a message whose recipient opts out or is blocked after an attempt with an unknown result', () => {
  /** Its worker died; the recipient may have it, and replies STOP before any receipt has come. Then it is due again. */
  async function heldBack(t: TestContext, reason: 'OPTED_OUT' | 'BLOCKED' = 'OPTED_OUT') {
    const since = Date.now()
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { recipient: PHONE, dueInMs: 3_600_000, attempts: 1 })
    if (reason === 'OPTED_OUT') {
      await pool.query(`update messages set traffic = 'PROMOTION' where id = $1`, [messageId])
      await receiveReplies([wrote(sender, 'STOP')])
    } else await block(sender)
    await makeDue(pool, [messageId])
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    await untilHeldBack(messageId, 1)
    return { sender, messageId, carrier, since }
  }

  const untilHeldBack = (messageId: string, times: number) =>
    until(
      `it is held back ${times} times`,
      async () => (await kindsOf(pool, messageId)).filter((kind) => kind === 'held-back').length === times,
    )

  /** Moves the time since which it is held back. */
  const moveHeldBack = (messageId: string, by: string) =>
    pool.query(`update queue set held_back_at = held_back_at + $2::interval where message_id = $1`, [messageId, by])

  const callsOf = ({ seen }: { seen: { task: string; messageId: string }[] }) => seen.map(({ task, messageId }) => `${task} ${messageId}`)

  test('is not sent again if its receipt comes within two minutes', async (t) => {
    const { messageId, carrier, since } = await heldBack(t)
    const { queue } = await readAll(pool, messageId)
    assertPostponed(queue, 120_000, since)
    assert.deepEqual([queue.lease, queue.attempts], [null, 1], 'no call was made')
    await receiveReplies([receipt({ messageId, phone: PHONE })])
    const after = await readAll(pool, messageId)
    assert.deepEqual([after.message.status, after.queue, carrier.seen], ['DELIVERED', null, []])
  })

  for (const reason of ['OPTED_OUT', 'BLOCKED'] as const) {
    test(`fails with ${reason} if no receipt comes, and is revoked before its SMS is sent`, async (t) => {
      const { messageId, carrier } = await heldBack(t, reason)
      await pool.query(
        `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry)
         select id, account_id, '{"sender":"Shop","mode":"AUTO","content":"Hi","multipart":false}', 1, 0, false from messages where id = $1`,
        [messageId],
      )
      await moveHeldBack(messageId, '-2 minutes')
      await makeDue(pool, [messageId])
      await until('it is revoked', async () => (await kindsOf(pool, messageId)).includes('revoke-asked'))
      const { message, queue } = await readAll(pool, messageId)
      assert.deepEqual([message.status, message.failure_reason, queue], ['FAILED', reason, null])
      assert.deepEqual(callsOf(carrier), [`revoke ${messageId}`])
      const { rows } = await pool.query(
        'select awaits_revocation, due_at > failed_at as waits from sms_queue join messages on id = message_id where id = $1',
        [messageId],
      )
      assert.deepEqual(rows, [{ awaits_revocation: true, waits: true }])
    })
  }

  test('is held back for two minutes again if it was sent again meanwhile', async (t) => {
    const { sender, messageId, carrier } = await heldBack(t)
    await moveHeldBack(messageId, '-2 minutes')
    await receiveReplies([wrote(sender, 'START', { agoMs: 2 })])
    await pool.query('update queue set attempts = 2 where message_id = $1', [messageId])
    await receiveReplies([wrote(sender, 'STOP', { agoMs: 1 })])
    await makeDue(pool, [messageId])
    await untilHeldBack(messageId, 2)
    assert.deepEqual([await statusOf(pool, messageId), carrier.seen], ['ACCEPTED', []])
  })

  for (const [when, by] of [
    ['another worker claims it earlier', '0'],
    ['the clock was set back by an hour', '1 hour'],
  ] as const) {
    test(`is held back for two minutes at most, and not failed before, if ${when}`, async (t) => {
      const { messageId, carrier, since } = await heldBack(t)
      await moveHeldBack(messageId, by)
      await makeDue(pool, [messageId])
      await untilHeldBack(messageId, 2)
      const { message, queue } = await readAll(pool, messageId)
      assert.deepEqual([message.status, carrier.seen], ['ACCEPTED', []])
      assertPostponed(queue, 120_000, since)
    })
  }

  test('is sent under the same id once the recipient opts in', async (t) => {
    const { sender, messageId, carrier } = await heldBack(t)
    await receiveReplies([wrote(sender, 'START')])
    await makeDue(pool, [messageId])
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    assert.deepEqual(callsOf(carrier), [`send ${messageId}`])
  })
})
