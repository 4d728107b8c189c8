import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { SmsEntry } from '../../../src/delivery/sms/claim.ts'
import { recordOptOut } from '../../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../../support/database.ts'
import { joinGroup } from '../../support/groups.ts'
import { until } from '../../support/until.ts'
import { createReceiver, createSender, kinds, receipt, type Sender } from '../support.ts'
import { countQueued, LONG_TEXT, nextPhone, readSms, refusedMessage, refusedMessages, smsStatusOf } from './support.ts'
import { claimDueSms, claimSmsOf, createSmsCarrier, recordSent, recordSms, startSmsWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed by hand' })
const receive = createReceiver(pool)
let sender: Sender

// No test checks the SMS of another one.
beforeEach(async () => {
  await pool.query('delete from sms_queue')
  await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
  sender = await createSender(pool)
})

const idsOf = (entries: SmsEntry[]) => entries.map(({ messageId }) => messageId)
const decisionsOf = (entries: SmsEntry[]) => entries.map(({ decision }) => decision)

/** An opt-out of the recipient from the sender's agent, or the end of one. */
const optOut = ({ accountId, agentId }: Sender, phone: string, optedOut = true, block = false) =>
  recordOptOut(pool, { accountId, agentId, phone, optedOut, block, source: 'operator' })

describe('a claim of SMS', () => {
  test('gives every account one SMS before any account gets a second one', async () => {
    const senders = [sender, await createSender(pool), await createSender(pool)] as const
    for (const [index, count] of [30, 3, 1].entries()) await refusedMessages(pool, senders[index] as Sender, { count })
    const entries = await claimDueSms(pool, { free: 10 })
    const shares = senders.map(({ accountId }) => entries.filter((entry) => entry.accountId === accountId).length)
    assert.deepEqual(shares, [6, 3, 1])
  })

  test('takes transactional SMS before SMS of campaigns, however long those have waited', async () => {
    const promotions = await refusedMessages(pool, sender, { count: 5, traffic: 'PROMOTION' })
    await pool.query(`update sms_queue set due_at = now() - interval '1 hour'`)
    const transactions = await refusedMessages(pool, await createSender(pool), { count: 5 })
    for (const expected of [transactions, promotions])
      assert.deepEqual(new Set(idsOf(await claimDueSms(pool, { free: 5 }))), new Set(expected))
  })

  test('takes one SMS of an account at a time to a person; other persons and accounts need not wait', async () => {
    const [person, another] = [nextPhone(), nextPhone()]
    const [one = '', two = '', other] = await refusedMessages(pool, sender, { recipients: [person, person, another] })
    const elsewhere = await refusedMessage(pool, await createSender(pool), { recipients: [person] })
    const first = await claimDueSms(pool)
    const ofPerson = first.find(({ messageId }) => messageId === one || messageId === two) as SmsEntry
    assert.deepEqual([first.length, new Set(idsOf(first))], [3, new Set([ofPerson.messageId, other, elsewhere])])
    assert.deepEqual(await claimDueSms(pool), [])
    await recordSent(pool, ofPerson, ['1'])
    const second = await claimDueSms(pool)
    assert.deepEqual([idsOf(second), decisionsOf(second)], [[ofPerson.messageId === one ? two : one], ['go']])
  })

  test('counts an SMS for the quarantine of the next SMS to the same person', async () => {
    const person = nextPhone()
    await refusedMessages(pool, sender, { recipients: [person, person], planParams: { quarantine: true } })
    const [first] = (await claimDueSms(pool)) as [SmsEntry]
    await recordSent(pool, first, ['2'])
    assert.deepEqual([first.decision, ...decisionsOf(await claimDueSms(pool))], ['go', 'QUARANTINE'])
  })

  test('takes no SMS that another worker has leased, at the same moment or before', async () => {
    await refusedMessages(pool, sender, { count: 50 })
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimDueSms(pool)))
    const all = idsOf([...claims.flat(), ...(await claimDueSms(pool))])
    assert.deepEqual([all.length, new Set(all).size], [50, 50])
  })
})

describe('the network’s rate', () => {
  test('holds for two workers, and counts segments', async (t) => {
    const messagesPerSecond = 25
    await refusedMessages(pool, sender, { count: 4 })
    await refusedMessages(pool, sender, { count: 6, content: LONG_TEXT })
    const carriers = [createSmsCarrier({ messagesPerSecond }), createSmsCarrier({ messagesPerSecond })]
    const startedAt = performance.now()
    const workers = carriers.map((carrier) => startSmsWorker(t, url, carrier))
    await until('all are submitted', async () => {
      for (const { wake } of workers) wake()
      return (await countQueued(pool)) === 0
    })
    const times = carriers.flatMap(({ seen }) => seen.map(({ at }) => at - startedAt)).toSorted((a, b) => a - b)
    assert.equal(times.length, 4 + 6 * 3)
    // Node truncates a delay to whole milliseconds.
    for (const [index, at] of times.entries()) assert.ok(at > (index * 1_000) / messagesPerSecond - 2, `segment ${index} after ${at} ms`)
  })

  test('gives each SMS of a claim its slot after all segments of the SMS before it', async () => {
    await refusedMessages(pool, sender, { count: 4, content: LONG_TEXT })
    const claimed = await claimDueSms(pool, { messagesPerSecond: 50 })
    // Slots are taken for 100 ms ahead: the third SMS would begin after 120.
    const [first = 0, second = 0, ...others] = claimed.map(({ slotAt }) => slotAt).toSorted((a, b) => a - b)
    assert.deepEqual([Math.round(second - first), others], [60, []])
  })

  test('makes the next SMS wait for all segments of a long one', async () => {
    await refusedMessages(pool, sender, { content: 'x'.repeat(1_530) })
    const [{ decision, segments }] = (await claimDueSms(pool, { messagesPerSecond: 2 })) as [SmsEntry]
    assert.deepEqual([decision, segments], ['go', 10])
    await refusedMessages(pool, await createSender(pool))
    assert.deepEqual(await claimDueSms(pool, { messagesPerSecond: 2 }), [])
    await pool.query(`update carrier_rates set next_slot_at = next_slot_at - interval '5 seconds'`)
    assert.equal((await claimDueSms(pool, { messagesPerSecond: 2 })).length, 1)
  })

  test('does not delay SMS that are skipped', async () => {
    await refusedMessages(pool, sender, { count: 20, planParams: { consentIDS: [7] } })
    assert.deepEqual(decisionsOf(await claimDueSms(pool, { messagesPerSecond: 1 })), Array(20).fill('CONSENT'))
  })
})

describe('a due SMS', () => {
  const ALL_RULES = { controlGroup: true, quarantine: true, consentIDS: [7, 9] }

  /** In the control group, inactive, with one consent of two, and with an SMS 23 hours ago: every rule applies but the opt-out. */
  async function holdAgainst({ accountId, agentId }: Sender, phone: string): Promise<void> {
    await joinGroup(pool, accountId, phone, { consents: [7], controlGroup: true, active: false })
    const contacted = `insert into sms_contacts values ($1, $2, 'MyShop', $3, uuid_v7(), false, now() - interval '23 hours')`
    await pool.query(contacted, [accountId, phone, agentId])
  }

  /** Claims and releases it. Returns the result of the check. */
  async function check(messageId: string): Promise<string> {
    const entry = await claimSmsOf(pool, messageId)
    await recordSms(pool, entry, { is: 'not-tried', afterMs: 0 })
    return entry.decision
  }

  const setQueued = (messageId: string, assignments: string) =>
    pool.query(`update sms_queue set ${assignments} where message_id = $1`, [messageId])
  const SUBMITTED_AND_LATE = `submitted_under = gen_random_uuid(), expires_at = now() - interval '1 second'`

  test('is checked by the rules in their order', async () => {
    const phone = nextPhone()
    const { accountId } = sender
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: ALL_RULES })
    await optOut(sender, phone, true, true)
    await holdAgainst(sender, phone)
    await receive([receipt({ messageId, phone })])
    await setQueued(messageId, SUBMITTED_AND_LATE)
    const setMember = (assignment: string) => pool.query(`update group_members set ${assignment} where account_id = $1`, [accountId])
    // Each rule applies until the step behind it.
    const steps: [decision: string, step: () => Promise<unknown>][] = [
      ['lost', async () => {}],
      ['not-needed', () => pool.query(`delete from message_events where message_id = $1 and kind = 'delivered-late'`, [messageId])],
      ['late', () => setQueued(messageId, `expires_at = now() + interval '1 hour'`)],
      ['BLOCKED', () => optOut(sender, phone)],
      ['OPTED_OUT', () => optOut(sender, phone, false)],
      ['CONTROL_GROUP', () => setMember('control_group = false')],
      ['INACTIVE', () => setMember('active = true')],
      ['CONSENT', () => setMember(`consents = '{9, 8, 7}'`)],
      ['QUARANTINE', () => pool.query(`update sms_contacts set sent_at = now() - interval '25 hours' where account_id = $1`, [accountId])],
      ['go', async () => {}],
    ]
    for (const [decision, step] of steps) {
      assert.equal(await check(messageId), decision)
      await step()
    }
  })

  test('is checked by all groups of the account: consents of any group count, and so does a control group or inactivity', async () => {
    const planParams = { consentIDS: [7, 9], controlGroup: true }
    const known = { go: {}, CONTROL_GROUP: { controlGroup: true }, INACTIVE: { active: false } }
    for (const [decision, fields] of Object.entries(known)) {
      const phone = nextPhone()
      await joinGroup(pool, sender.accountId, phone, { group: 1, consents: [7] })
      await joinGroup(pool, sender.accountId, phone, { group: 2, consents: [9], ...fields })
      assert.equal(await check(await refusedMessage(pool, sender, { recipients: [phone], planParams })), decision)
    }
  })

  test('is checked by no rule that its plan does not have', async () => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: { ignoreStatus: true } })
    await holdAgainst(sender, phone)
    assert.equal(await check(messageId), 'go')
  })

  test('is checked by the opt-outs, groups and contacts of its own account and agent', async () => {
    const [phone, other] = [nextPhone(), await createSender(pool)]
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], planParams: { controlGroup: true, quarantine: true } })
    await optOut(other, phone)
    await holdAgainst(other, phone)
    assert.equal(await check(messageId), 'go')
  })

  test('is gone if its message was dropped, unless a worker may have submitted it', async () => {
    const messageId = await refusedMessage(pool, sender)
    await pool.query('delete from messages where id = $1', [messageId])
    await setQueued(messageId, SUBMITTED_AND_LATE)
    assert.deepEqual([await check(messageId), await check(messageId)], ['lost', 'gone'])
  })

  test('is continued if the recipient has its first segment, unless it has expired', async () => {
    const phone = nextPhone()
    const messageId = await refusedMessage(pool, sender, { recipients: [phone], content: LONG_TEXT, planParams: ALL_RULES })
    await optOut(sender, phone)
    await receive([receipt({ messageId, phone })])
    await setQueued(messageId, 'segments_sent = 1')
    assert.equal(await check(messageId), 'go')
    await setQueued(messageId, `expires_at = now() - interval '1 second'`)
    assert.equal(await check(messageId), 'late')
  })

  test('that is not submitted shows the reason; one whose message was dropped leaves nothing', async (t) => {
    const phones = Array.from({ length: 4 }, nextPhone) as [string, string, string, string]
    const ids = await refusedMessages(pool, sender, { planParams: { consentIDS: [7] }, recipients: phones })
    const gone = await refusedMessage(pool, sender)
    await receive([receipt({ messageId: ids[1] as string, phone: phones[1], kind: 'read' })])
    await setQueued(ids[2] as string, `expires_at = now() - interval '1 second'`)
    await optOut(sender, phones[3])
    await pool.query('delete from messages where id = $1', [gone])
    const carrier = createSmsCarrier()
    startSmsWorker(t, url, carrier).wake()
    await until('all have ended', async () => (await countQueued(pool)) === 0)
    assert.deepEqual(carrier.seen, [])
    const ends = await Promise.all(ids.map(async (id) => [...(await smsStatusOf(pool, id)), ...kinds((await readSms(pool, id)).events)]))
    assert.deepEqual(ends, [
      ['SKIPPED', 'CONSENT', 'sms-scheduled', 'sms-checked', 'sms-skipped'],
      ['NOT_NEEDED', 'RCS_DELIVERED', 'sms-scheduled', 'sms-not-needed'],
      ['FAILED', 'TIMED_OUT', 'sms-scheduled', 'sms-failed'],
      ['SKIPPED', 'OPTED_OUT', 'sms-scheduled', 'sms-checked', 'sms-skipped'],
    ])
  })

  test('is not claimed while the network asks for a pause', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    let polls = 0
    let pauseMs = 10
    const carrier = createSmsCarrier({
      pausedForMs: () => {
        polls += 1
        return pauseMs
      },
    })
    startSmsWorker(t, url, carrier)
    await until('it has polled a few times', () => polls >= 5)
    const { queue } = await readSms(pool, messageId)
    assert.deepEqual([queue.attempts, queue.lease, carrier.seen.length], [0, null, 0])
    pauseMs = 0
    await until('it is sent', async () => (await smsStatusOf(pool, messageId))[0] === 'SENT')
    assert.equal(carrier.seen.length, 1)
  })

  test('fails without an SMS network', async (t) => {
    const messageId = await refusedMessage(pool, sender)
    const skipped = await refusedMessage(pool, sender, { planParams: { consentIDS: [1] } })
    startSmsWorker(t, url, undefined)
    await until('both have ended', async () => (await countQueued(pool)) === 0)
    assert.deepEqual(await smsStatusOf(pool, skipped), ['SKIPPED', 'CONSENT'])
    const { fallback, events } = await readSms(pool, messageId)
    assert.deepEqual([fallback.status, fallback.reason], ['FAILED', 'NO_SMS_NETWORK'])
    assert.equal(fallback.detail, 'The service has no SMS network.')
    assert.deepEqual([kinds(events), events.at(-1).reason], [['sms-scheduled', 'sms-checked', 'sms-failed'], 'NO_SMS_NETWORK'])
  })
})
