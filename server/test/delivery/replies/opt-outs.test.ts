import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { createAssignedAgent } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import {
  createCarrier,
  createSender,
  queueMessage,
  readAll,
  receipt,
  type Sender,
  startWorker,
  statusOf,
  kindsOf as stepsOf,
} from '../support.ts'
import {
  actionsOf,
  did,
  ELSEWHERE,
  PHONE,
  partnerOf,
  pool,
  sentMessage,
  smsContact,
  tell,
  tellBoth,
  url,
  wrote,
  wroteSms,
} from './shared.ts'

// Who wants no more messages gets none, and what they had before stays true.

describe('one who opts out', () => {
  /** Whether they are out, of all that accounts know of them. */
  async function outOf(): Promise<Map<string, boolean>> {
    const { rows } = await pool.query(`select account_id || ' ' || agent_id as key, opted_out as out from opt_outs where phone = $1`, [
      PHONE,
    ])
    return new Map(rows.map(({ key, out }) => [key, out]))
  }
  const isOut = async ({ accountId, agentId }: Sender) => (await outOf()).get(`${accountId} ${agentId}`)
  const kindsOf = async (sender: Sender) => (await actionsOf(sender)).map(({ kind }) => kind)

  test('by SMS does so for every agent by which the account has written from that number, and for no other account', async () => {
    const [one, stranger] = [await createSender(pool), await createSender(pool)]
    const two = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
    const elsewhere = { ...one, agentId: await createAssignedAgent(pool, one.accountId) }
    await smsContact(stranger, '48732000077', 9)
    await smsContact(one, '48732000077', 8)
    await smsContact(two, '48732000077', 7)
    await smsContact(elsewhere, '48732000078', 1)
    await tell([wroteSms('48732000077', 'STOP')])
    assert.deepEqual(await Promise.all([one, two, elsewhere, stranger].map(isOut)), [true, true, undefined, undefined])
    await tell([wroteSms('48732000077', 'START')])
    assert.deepEqual(await Promise.all([one, two].map(isOut)), [false, false])
  })

  test('by event and word together does so once, and is in again by both together once', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender)
    await tellBoth([did(sender, { kind: 'unsubscribed' }), wrote(sender, 'Stop!')])
    assert.equal(await isOut(sender), true)
    const [{ text, ...action }, ...others] = await actionsOf(sender)
    assert.deepEqual([action, others], [{ kind: 'opted-out', channel: 'rcs', agentId: sender.agentId, messageId }, []])
    await tell([did(sender, { kind: 'subscribed' }), wrote(sender, 'START')])
    assert.equal(await isOut(sender), false)
    assert.deepEqual(await kindsOf(sender), ['opted-out', 'opted-in'])
  })

  test('may write a word of their language, however it is spelt; a sentence that has it is a text', async () => {
    for (const word of ['STOP', 'stopall', 'UNSUBSCRIBE', 'End', 'quit.', 'Rezygnuję', 'abmelden', 'Baja', 'PARAR', 'arret']) {
      const sender = await createSender(pool)
      await sentMessage(sender)
      await tell([wrote(sender, `${word} at the bakery`, { agoMs: 1_000 }), wrote(sender, word)])
      assert.deepEqual([await isOut(sender), await kindsOf(sender)], [true, ['wrote', 'opted-out']], word)
    }
  })

  test('is out or in as they said last, in whichever order it arrives', async () => {
    for (const [words, expected] of [
      [['START', 'STOP'], false],
      [['STOP', 'START'], true],
    ] as const) {
      const sender = await createSender(pool)
      await sentMessage(sender)
      for (const [index, word] of words.entries()) await tell([wrote(sender, word, { agoMs: (index + 1) * 1_000 })])
      assert.equal(await isOut(sender), expected, `${words[1]} was said first, and came last`)
    }
  })

  test('does so of that agent and account alone; of all accounts of the agent where none has sent them anything', async () => {
    const a = await createSender(pool)
    const b = await partnerOf(a)
    const before = await outOf()
    await tell([wrote(a, 'STOP', { agoMs: 2_000 })])
    assert.deepEqual([await isOut(a), await isOut(b)], [true, true])
    await sentMessage(a)
    await tell([wrote(a, 'START')])
    assert.deepEqual([await isOut(a), await isOut(b)], [false, true])
    assert.equal((await outOf()).size, before.size + 2)
    const c = await createSender(pool)
    await tell([wrote(c, 'STOP', { carrier: ELSEWHERE })])
    assert.equal(await isOut(c), undefined)
  })

  test('by SMS gets no campaign by RCS either: it fails, and the network never sees it; what is no campaign goes out', async (t) => {
    const sender = await createSender(pool)
    const messageId = await smsContact(sender, '48732000003', 1)
    await tell([wroteSms('48732000003', 'stop')])
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
    await pool.query('update queue set due_at = now(), leased_until = now() where message_id = any ($1)', [
      [campaign, transaction, ofOther, toOther],
    ])
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    const failed = await until('the campaign’s has failed, and the others are sent', async () => {
      const { message } = await readAll(pool, campaign)
      const seen = new Set(carrier.seen.map((one) => one.messageId))
      return message.status === 'FAILED' && [transaction, ofOther, toOther].every((id) => seen.has(id)) ? message : undefined
    })
    assert.equal(failed.failure_reason, 'OPTED_OUT')
    assert.ok(!carrier.seen.some((one) => one.messageId === campaign))
  })
})

describe('one who opts out of what may have been handed over before', () => {
  /** A worker took it up and died; the person had it, and answers with STOP before any receipt has come. It is taken up again. */
  async function heldBack(t: TestContext) {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender, { recipient: PHONE, dueInMs: 3_600_000, attempts: 1 })
    await pool.query(`update messages set traffic = 'PROMOTION' where id = $1`, [messageId])
    await tell([wrote(sender, 'STOP')])
    await isDue(messageId)
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    await until('it is held back', async () => (await stepsOf(pool, messageId)).includes('held-back'))
    return { sender, messageId, carrier }
  }

  const twoMinutesPass = (messageId: string) =>
    pool.query(`update queue set held_back_at = held_back_at - interval '2 minutes' where message_id = $1`, [messageId])
  const isDue = (messageId: string) =>
    pool.query('update queue set due_at = now(), leased_until = now() where message_id = $1', [messageId])

  test('has it where the receipt comes within two minutes of that, and is not sent it again', async (t) => {
    const { messageId, carrier } = await heldBack(t)
    const { queue } = await readAll(pool, messageId)
    const inMs = Date.parse(queue.due_at) - Date.now()
    assert.ok(inMs > 100_000 && inMs <= 120_000, `${inMs}`)
    assert.deepEqual([queue.lease, queue.attempts], [null, 1], 'nothing was asked')
    await tell([receipt({ messageId, phone: PHONE })])
    const after = await readAll(pool, messageId)
    assert.deepEqual([after.message.status, after.queue, carrier.seen], ['DELIVERED', null, []])
  })

  test('has not where none comes: it fails, and is taken back at the network before an SMS goes out', async (t) => {
    const { messageId, carrier } = await heldBack(t)
    await pool.query(
      `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry)
       select id, account_id, '{"sender":"Shop","mode":"AUTO","content":"Hi","multipart":false}', 1, 0, false from messages where id = $1`,
      [messageId],
    )
    await twoMinutesPass(messageId)
    await isDue(messageId)
    await until('the network is asked to forget it', async () => (await stepsOf(pool, messageId)).includes('revoke-asked'))
    const { message, queue } = await readAll(pool, messageId)
    assert.deepEqual([message.status, message.failure_reason, queue], ['FAILED', 'OPTED_OUT', null])
    const tasks = carrier.seen.map((one) => [one.task, one.messageId])
    assert.deepEqual(tasks, [['revoke', messageId]])
    const { rows } = await pool.query('select awaits_revocation, due_at > now() as waits from sms_queue where message_id = $1', [messageId])
    assert.deepEqual(rows, [{ awaits_revocation: true, waits: true }])
  })

  test('has the two minutes anew where it was sent again meanwhile, and its sending could not be noted again', async (t) => {
    const { sender, messageId, carrier } = await heldBack(t)
    await twoMinutesPass(messageId)
    await tell([wrote(sender, 'START', { agoMs: 2 })])
    await pool.query('update queue set attempts = 2 where message_id = $1', [messageId])
    await tell([wrote(sender, 'STOP', { agoMs: 1 })])
    await isDue(messageId)
    await until('it is held back again', async () => (await stepsOf(pool, messageId)).filter((kind) => kind === 'held-back').length === 2)
    assert.deepEqual([await statusOf(pool, messageId), carrier.seen], ['ACCEPTED', []])
  })

  test('is held back for two minutes by a clock that was set back, too', async (t) => {
    const { messageId } = await heldBack(t)
    await pool.query(`update queue set held_back_at = held_back_at + interval '1 hour' where message_id = $1`, [messageId])
    await isDue(messageId)
    const dueInMs = async () => Date.parse((await readAll(pool, messageId)).queue.due_at) - Date.now()
    await until('it is held back again', async () => (await stepsOf(pool, messageId)).filter((kind) => kind === 'held-back').length === 2)
    assert.ok((await dueInMs()) <= 120_000, `${await dueInMs()}`)
  })

  test('is not failed before the two minutes are over, whoever takes it up', async (t) => {
    const { messageId, carrier } = await heldBack(t)
    await isDue(messageId)
    const again = async () => (await stepsOf(pool, messageId)).filter((kind) => kind === 'held-back').length === 2
    await until('it is held back again', again)
    assert.deepEqual([await statusOf(pool, messageId), carrier.seen], ['ACCEPTED', []])
  })

  test('and in again gets it, under the same id', async (t) => {
    const { sender, messageId, carrier } = await heldBack(t)
    await tell([wrote(sender, 'START')])
    await isDue(messageId)
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    const tasks = carrier.seen.map((one) => [one.task, one.messageId])
    assert.deepEqual(tasks, [['send', messageId]])
  })
})
