import assert from 'node:assert/strict'
import { before, beforeEach, describe, test } from 'node:test'
import { ensurePace } from '../../../src/delivery/rate.ts'
import type { SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { joinGroup } from '../../support/groups.ts'
import { watchStalls } from '../../support/stalls.ts'
import { until } from '../../support/until.ts'
import { CARRIER, createReceiver, createSender, receipt, type Sender } from '../support.ts'
import {
  countQueued,
  createSmsCarrier,
  fateOf,
  LONG_TEXT,
  nextPhone,
  putBack,
  readSms,
  recordSent,
  refusedMessage,
  refusedMessages,
  SMS_CARRIER,
  startSmsWorker,
  takeOne,
  takeSms,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed by hand' })
const take = createReceiver(pool)
let sender: Sender

before(async () => {
  await ensurePace(pool, CARRIER)
  await ensurePace(pool, SMS_CARRIER)
})

// What one test leaves behind is nothing that the next should be asked to judge.
beforeEach(async () => {
  await pool.query('delete from sms_queue')
  await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
  sender = await createSender(pool)
})

function countByAccount(entries: SmsEntry[]): Map<number, number> {
  return new Map([...Map.groupBy(entries, ({ accountId }) => accountId)].map(([accountId, { length }]) => [accountId, length]))
}

describe('of what is due', () => {
  test('each account gets its share: who has few need not wait for who has many', async () => {
    const [many, few, single] = [sender, await createSender(pool), await createSender(pool)]
    await refusedMessages(pool, many, { count: 30 })
    await refusedMessages(pool, few, { count: 3 })
    await refusedMessages(pool, single)
    const shares = countByAccount(await takeSms(pool, { free: 10 }))
    assert.deepEqual(
      [many, few, single].map(({ accountId }) => shares.get(accountId)),
      [6, 3, 1],
    )
  })

  test('transactional comes before promotion, however long that has waited', async () => {
    const promotions = await refusedMessages(pool, sender, { count: 5, traffic: 'PROMOTION' })
    await pool.query(`update sms_queue set due_at = now() - interval '1 hour'`)
    const transactions = await refusedMessages(pool, await createSender(pool), { count: 5 })
    const first = await takeSms(pool, { free: 5 })
    const second = await takeSms(pool, { free: 5 })
    assert.deepEqual(new Set(first.map(({ messageId }) => messageId)), new Set(transactions))
    assert.deepEqual(new Set(second.map(({ messageId }) => messageId)), new Set(promotions))
  })

  test('of an account, one at a time goes to a person; others, and other accounts, need not wait', async () => {
    const [person, another] = [nextPhone(), nextPhone()]
    const twice = await refusedMessages(pool, sender, { recipients: [person, person, another] })
    const elsewhere = await refusedMessage(pool, await createSender(pool), { recipients: [person] })
    const first = await takeSms(pool)
    const ofPerson = first.find(({ messageId }) => twice.slice(0, 2).includes(messageId)) as SmsEntry
    assert.deepEqual(new Set(first.map(({ messageId }) => messageId)), new Set([ofPerson.messageId, twice[2], elsewhere]))
    assert.equal(first.length, 3)
    assert.deepEqual(await takeSms(pool), [])
    await recordSent(pool, ofPerson, ['1'])
    const second = await takeSms(pool)
    assert.deepEqual(
      second.map(({ messageId, judgement }) => [messageId, judgement]),
      [[twice.slice(0, 2).find((id) => id !== ofPerson.messageId), 'go']],
    )
  })

  test('the SMS before counts for the quarantine of the next one to the same person', async () => {
    const person = nextPhone()
    await refusedMessages(pool, sender, { recipients: [person, person], planParams: { quarantine: true } })
    const [first] = await takeSms(pool)
    await recordSent(pool, first as SmsEntry, ['2'])
    const [second] = await takeSms(pool)
    assert.deepEqual([first?.judgement, second?.judgement], ['go', 'QUARANTINE'])
  })

  test('what a worker holds, nobody else gets, at the same moment and later', async () => {
    await refusedMessages(pool, sender, { count: 50 })
    const claims = await Promise.all(Array.from({ length: 8 }, () => takeSms(pool)))
    const all = [...claims.flat(), ...(await takeSms(pool))]
    assert.deepEqual([all.length, new Set(all.map(({ messageId }) => messageId)).size], [50, 50])
  })
})

describe('the network’s rate', () => {
  test('holds across two workers, and counts parts', async (t) => {
    const messagesPerSecond = 25
    await refusedMessages(pool, sender, { count: 4 })
    await refusedMessages(pool, sender, { count: 6, content: LONG_TEXT })
    const carriers = [createSmsCarrier({ messagesPerSecond }), createSmsCarrier({ messagesPerSecond })]
    const stalls = watchStalls(pool)
    const workers = carriers.map((carrier) => startSmsWorker(t, url, carrier))
    await until('all are out', async () => {
      for (const { wake } of workers) wake()
      return (await countQueued(pool)) === 0
    })
    const lateMs = 2 * (await stalls.end())
    const times = carriers.flatMap(({ seen }) => seen.map(({ at }) => at)).toSorted((a, b) => a - b)
    assert.equal(times.length, 4 + 6 * 3)
    for (const [index, at] of times.entries()) {
      const tenBefore = times[index - 10] ?? Number.NEGATIVE_INFINITY
      assert.ok(
        at - tenBefore >= 10_000 / messagesPerSecond - lateMs,
        `eleven parts within ${at - tenBefore} ms, ${lateMs} ms late at most`,
      )
    }
    const tookMs = (times.at(-1) as number) - (times[0] as number)
    assert.ok(tookMs >= (21 * 1_000) / messagesPerSecond - lateMs, `22 parts within ${tookMs} ms, ${lateMs} ms late at most`)
  })

  test('gives each SMS of a claim its turn after all parts of those before it', async () => {
    await refusedMessages(pool, sender, { count: 4, content: LONG_TEXT })
    const claimed = await takeSms(pool, { messagesPerSecond: 50 })
    // Turns are given out for 100 ms ahead: the third would come after 120.
    const [first = 0, second = 0, ...others] = claimed.map(({ turnAt }) => turnAt).toSorted((a, b) => a - b)
    assert.ok(Math.abs(second - first - 60) <= 2, `${second - first} ms apart`)
    assert.deepEqual(others, [])
  })

  test('holds where an SMS of many parts takes longer than seconds: the next waits for all of them', async () => {
    await refusedMessages(pool, sender, { content: 'x'.repeat(1_530) })
    const first = await takeSms(pool, { messagesPerSecond: 2 })
    assert.deepEqual(
      first.map(({ judgement, segments }) => [judgement, segments]),
      [['go', 10]],
    )
    await refusedMessages(pool, await createSender(pool))
    assert.deepEqual(await takeSms(pool, { messagesPerSecond: 2 }), [])
    await pool.query(`update carrier_rates set next_slot_at = next_slot_at - interval '5 seconds'`)
    assert.equal((await takeSms(pool, { messagesPerSecond: 2 })).length, 1)
  })

  test('holds back only what is submitted: what is skipped needs no turn', async () => {
    const ids = await refusedMessages(pool, sender, { count: 20, planParams: { consentIDS: [7] } })
    const claimed = await takeSms(pool, { messagesPerSecond: 1 })
    assert.deepEqual([claimed.length, new Set(claimed.map(({ judgement }) => judgement))], [ids.length, new Set(['CONSENT'])])
  })
})

describe('an SMS that is due is judged', () => {
  const ALL_RULES = { controlGroup: true, quarantine: true, consentIDS: [7, 9] }

  /** In the control group, inactive, one consent of two, an SMS 23 hours ago: all that a rule can go by, but for the opt-out. */
  async function holdAgainst({ accountId, agentId }: Sender, phone: string): Promise<void> {
    await joinGroup(pool, accountId, phone, { consents: [7], controlGroup: true, active: false })
    const contacted = `insert into sms_contacts values ($1, $2, 'MyShop', $3, uuid_v7(), false, now() - interval '23 hours')`
    await pool.query(contacted, [accountId, phone, agentId])
  }

  async function judge(messageId: string): Promise<string> {
    const entry = await takeOne(pool, messageId)
    await putBack(pool, [entry])
    return entry.judgement
  }

  test('by its rules in their order: each one counts until the one before it is out of the way', async () => {
    const phone = nextPhone()
    const { accountId, agentId } = sender
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: ALL_RULES })
    await recordOptOut(pool, { accountId, agentId, phone, optedOut: true, source: 'operator' })
    await holdAgainst(sender, phone)
    await take([receipt({ messageId, phone })])
    await pool.query(
      `update sms_queue set submitted_under = gen_random_uuid(), expires_at = now() - interval '1 second' where message_id = $1`,
      [messageId],
    )

    const steps: [judgement: string, outOfTheWay: () => Promise<unknown>][] = [
      ['lost', async () => {}],
      ['not-needed', () => pool.query(`delete from message_events where message_id = $1 and kind = 'delivered-late'`, [messageId])],
      ['late', () => pool.query(`update sms_queue set expires_at = now() + interval '1 hour' where message_id = $1`, [messageId])],
      ['OPTED_OUT', () => recordOptOut(pool, { accountId, agentId, phone, optedOut: false, source: 'operator' })],
      ['CONTROL_GROUP', () => pool.query('update group_members set control_group = false where account_id = $1', [accountId])],
      ['INACTIVE', () => pool.query('update group_members set active = true where account_id = $1', [accountId])],
      ['CONSENT', () => pool.query(`update group_members set consents = '{9, 8, 7}' where account_id = $1`, [accountId])],
      ['QUARANTINE', () => pool.query(`update sms_contacts set sent_at = now() - interval '25 hours' where account_id = $1`, [accountId])],
      ['go', async () => {}],
    ]
    for (const [judgement, outOfTheWay] of steps) {
      assert.equal(await judge(messageId), judgement)
      await outOfTheWay()
    }
  })

  test('by what all groups of the account know of the recipient: the consents of any, and in the control group or inactive where one says so', async () => {
    const { accountId, ...other } = await createSender(pool)
    const planParams = { consentIDS: [7, 9], controlGroup: true }
    const [consenting = '', spared = '', gone = ''] = [nextPhone(), nextPhone(), nextPhone()]
    for (const phone of [consenting, spared, gone]) {
      await joinGroup(pool, accountId, phone, { group: 1, consents: [7] })
      await joinGroup(pool, accountId, phone, { group: 2, consents: [9], controlGroup: phone === spared, active: phone !== gone })
    }
    const judgements: string[] = []
    for (const phone of [consenting, spared, gone]) {
      judgements.push(await judge(await refusedMessage(pool, { accountId, ...other }, { recipients: [phone], planParams })))
    }
    assert.deepEqual(judgements, ['go', 'CONTROL_GROUP', 'INACTIVE'])
  })

  test('by no rule that its plan does not have', async () => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: { ignoreStatus: true } })
    await holdAgainst(sender, phone)
    assert.equal(await judge(messageId), 'go')
  })

  test('by what is known of the recipient to this account, and to this agent', async () => {
    const [phone, other] = [nextPhone(), await createSender(pool)]
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: { controlGroup: true, quarantine: true } })
    await recordOptOut(pool, { accountId: other.accountId, agentId: other.agentId, phone, optedOut: true, source: 'operator' })
    await holdAgainst(other, phone)
    assert.equal(await judge(messageId), 'go')
  })

  test('to be gone where its message was dropped, unless somebody has submitted it', async () => {
    const messageId = await refusedMessage(pool, sender)
    await pool.query('delete from messages where id = $1', [messageId])
    await pool.query(
      `update sms_queue set submitted_under = gen_random_uuid(), expires_at = now() - interval '1 second' where message_id = $1`,
      [messageId],
    )
    assert.equal(await judge(messageId), 'lost')
    assert.equal(await judge(messageId), 'gone')
  })

  test('to go on where the recipient has the beginning, unless its time is over', async () => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT, planParams: ALL_RULES })
    await recordOptOut(pool, { accountId: sender.accountId, agentId: sender.agentId, phone, optedOut: true, source: 'operator' })
    await take([receipt({ messageId, phone })])
    await pool.query('update sms_queue set segments_sent = 1 where message_id = $1', [messageId])
    assert.equal(await judge(messageId), 'go')
    await pool.query(`update sms_queue set expires_at = now() - interval '1 second' where message_id = $1`, [messageId])
    assert.equal(await judge(messageId), 'late')
  })
})

test('what is not submitted says why: SKIPPED, NOT_NEEDED or FAILED, with the reason; what is gone leaves nothing', async (t) => {
  const planned = { planParams: { consentIDS: [7] } }
  const { accountId, agentId } = sender
  const phones = Array.from({ length: 4 }, nextPhone) as [string, string, string, string]
  const [skipped, needless, late, optedOut] = (await refusedMessages(pool, sender, { ...planned, recipients: phones })) as [
    string,
    string,
    string,
    string,
  ]
  const gone = await refusedMessage(pool, sender)
  await take([receipt({ messageId: needless, phone: phones[1], kind: 'read' })])
  await pool.query(`update sms_queue set expires_at = now() - interval '1 second' where message_id = $1`, [late])
  await recordOptOut(pool, { accountId, agentId, phone: phones[3], optedOut: true, source: 'word' })
  await pool.query('delete from messages where id = $1', [gone])
  const carrier = createSmsCarrier()
  startSmsWorker(t, url, carrier).wake()
  await until('all are settled', async () => (await countQueued(pool)) === 0)
  assert.deepEqual(carrier.seen, [])
  assert.deepEqual(await Promise.all([skipped, needless, late, optedOut].map((id) => fateOf(pool, id))), [
    ['SKIPPED', 'CONSENT'],
    ['NOT_NEEDED', 'RCS_DELIVERED'],
    ['FAILED', 'TIMED_OUT'],
    ['SKIPPED', 'OPTED_OUT'],
  ])
  const events = await Promise.all([skipped, needless, late].map(async (id) => (await readSms(pool, id)).events.map(({ kind }) => kind)))
  assert.deepEqual(events, [
    ['sms-scheduled', 'sms-skipped'],
    ['sms-scheduled', 'sms-not-needed'],
    ['sms-scheduled', 'sms-failed'],
  ])
})

test('while the network wants a pause nothing is taken up; after it, all is', async (t) => {
  const messageId = await refusedMessage(pool, sender)
  let asked = 0
  let pauseMs = 10
  const carrier = createSmsCarrier({
    pausedForMs: () => {
      asked += 1
      return pauseMs
    },
  })
  startSmsWorker(t, url, carrier)
  await until('it has looked a few times', () => asked >= 5)
  const { queue } = await readSms(pool, messageId)
  assert.deepEqual([queue.attempts, queue.lease, carrier.seen.length], [0, null, 0])
  pauseMs = 0
  await until('it is out', async () => (await fateOf(pool, messageId))[0] === 'SENT')
  assert.equal(carrier.seen.length, 1)
})

test('without an SMS network what is due fails, and says so', async (t) => {
  const [messageId, skipped] = [await refusedMessage(pool, sender), await refusedMessage(pool, sender, { planParams: { consentIDS: [1] } })]
  startSmsWorker(t, url, undefined)
  await until('both are settled', async () => (await countQueued(pool)) === 0)
  assert.deepEqual(await fateOf(pool, messageId), ['FAILED', 'NO_SMS_NETWORK'])
  assert.deepEqual(await fateOf(pool, skipped), ['SKIPPED', 'CONSENT'])
  const { fallback, events } = await readSms(pool, messageId)
  assert.equal(fallback.detail, 'The service has no SMS network.')
  assert.deepEqual(
    events.map(({ kind, reason }) => [kind, reason]),
    [
      ['sms-scheduled', 'RCS_FAILED'],
      ['sms-failed', 'NO_SMS_NETWORK'],
    ],
  )
})
