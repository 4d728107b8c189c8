import assert from 'node:assert/strict'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import { transaction } from '../../src/db/pool.ts'
import type { ClaimRequest, Entry } from '../../src/delivery/claim.ts'
import { ensureRate } from '../../src/delivery/rate.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { watchStalls } from '../support/stalls.ts'
import { until } from '../support/until.ts'
import { untilBlocked } from './locks.ts'
import { createSender, queueMessage, queueMessages, type Sender } from './support.ts'
import { CARRIER, type CarrierOptions, claimNow, createCarrier, createHold, NO_RATE, sent, startWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed between the tests' })
await ensureRate(pool, CARRIER)
const [one, two, three] = [await createSender(pool), await createSender(pool), await createSender(pool)]

beforeEach(async () => {
  await ownerOf(pool).query('truncate queue, expiries, messages')
  await pool.query(`update carrier_rates set next_slot_at = '-infinity'`)
  await pool.query(`update agents set next_slot_at = '-infinity'`)
})

const claimRated = (carrier: Partial<ClaimRequest['carrier']>) => claimNow(pool, { carrier: { ...NO_RATE, ...carrier } })

describe('a rate', () => {
  const RATE = 20
  const SLOT_MS = 1_000 / RATE
  // Node truncates a delay to whole milliseconds, so a timer may be early by this.
  const TIMER_MS = 2
  const carrier = { messagesPerSecond: RATE }

  /** By the database's clock, in milliseconds. */
  async function times(): Promise<{ now: number; carrierSlot: number; agentSlot: number }> {
    const ms = (time: string) => `coalesce(extract(epoch from nullif(${time}, '-infinity')) * 1000, 0)::float8`
    const { rows } = await pool.query(
      `select ${ms('clock_timestamp()')} as now, ${ms('c.next_slot_at')} as "carrierSlot", ${ms('a.next_slot_at')} as "agentSlot"
       from carrier_rates c, agents a where c.carrier = $1 and a.agent_id = $2`,
      [CARRIER, one.agentId],
    )
    return rows[0]
  }

  for (const [name, rates, slot] of [
    ['a carrier', { messagesPerSecond: RATE }, 'carrierSlot'],
    ['an agent', { messagesPerSecondPerAgent: RATE }, 'agentSlot'],
    ['a carrier and an agent', { messagesPerSecond: 10 * RATE, messagesPerSecondPerAgent: RATE }, 'agentSlot'],
  ] as const) {
    /** Claims once. The slots begin where the last ones ended or, if that time has passed, at the time of the claim. */
    async function claimSlots(): Promise<Entry[]> {
      const before = await times()
      const { entries } = await claimRated(rates)
      const after = await times()
      const begin = after[slot] - entries.length * SLOT_MS
      const [earliest, latest] = [Math.max(before[slot], before.now), Math.max(before[slot], after.now)]
      assert.ok(entries.length === 0 || (begin > earliest - 0.01 && begin < latest + 0.01), `${begin}, not ${earliest} to ${latest}`)
      return entries
    }

    test(`of ${name} gives each message its own slot, without gaps`, async () => {
      await queueMessages(pool, one, { count: 12 })
      const first = await claimSlots()
      const gaps = first.slice(1).map(({ slotAt }, index) => slotAt - (first[index] as Entry).slotAt)
      assert.deepEqual(gaps.map(Math.round), [SLOT_MS, SLOT_MS], 'slots are taken for 100 ms ahead')
      let claimed = first.length
      await until('all are claimed', async () => {
        claimed += (await claimSlots()).length
        return claimed === 12
      })
    })
  }

  test('gives no slot that passed while the claim waited for a lock', async () => {
    await queueMessage(pool, one)
    const { claiming, now } = await transaction(pool, async (tx) => {
      await tx.query('update agents set name = name where agent_id = $1', [one.agentId])
      const rated = claimRated({ messagesPerSecondPerAgent: RATE })
      await untilBlocked(pool, 1)
      return { claiming: rated, now: (await times()).now }
    })
    await claiming
    const begin = (await times()).agentSlot - SLOT_MS
    assert.ok(begin >= now, `${begin} is before ${now}`)
  })

  test('is claimed by one worker at a time', async () => {
    await queueMessage(pool, one)
    const claimed = await transaction(pool, async (tx) => {
      await tx.query('select from carrier_rates where carrier = $1 for update', [CARRIER])
      return await claimRated(carrier)
    })
    assert.deepEqual(claimed, { entries: [], isBusy: true, mayBeMore: false })
  })

  test('does not stop the carrier after the clock was set back by an hour', async () => {
    await pool.query(`update carrier_rates set next_slot_at = now() + interval '1 hour'`)
    await queueMessage(pool, one)
    assert.equal((await claimRated(carrier)).entries.length, 1)
  })

  /** The times of the calls of two workers, and the allowance for a machine that stood still meanwhile. */
  async function sendAll(t: TestContext, rates: CarrierOptions, senders: Sender[], count: number) {
    for (const sender of senders) await queueMessages(pool, sender, { count: count / senders.length })
    const stalls = watchStalls(pool)
    const startedAt = performance.now()
    // Calls that do not end wake no worker. One worker alone makes 15 of these calls, so that both are needed.
    const { released, release } = createHold(t)
    const slow: CarrierOptions = { concurrency: 24, longestCallMs: 600_000, onSend: (message) => released.then(() => sent(message)) }
    const carriers = [createCarrier({ ...slow, ...rates }), createCarrier({ ...slow, ...rates })]
    for (const each of carriers) startWorker(t, url, each)
    const calls = () => carriers.flatMap(({ seen }) => seen)
    await until('all calls are made', () => calls().length === count)
    release()
    assert.ok(carriers.every(({ seen }) => seen.length > 0))
    // Eight claims of about five steps: a machine that stands still delays each step.
    return { calls: calls().toSorted((a, b) => a.at - b.at), startedAt, allowedMs: 300 + 40 * (await stalls.end()) }
  }

  /** The nth call is made after n - 1 slots, and not much later. */
  function assertRate(calls: { at: number }[], rate: number, startedAt: number, allowedMs = Number.POSITIVE_INFINITY): void {
    for (const [index, { at }] of calls.entries())
      assert.ok(at - startedAt > (index * 1_000) / rate - TIMER_MS, `call ${index} after ${at - startedAt} ms`)
    const [first, last] = [calls[0]?.at as number, calls.at(-1)?.at as number]
    assert.ok(
      last - first < ((calls.length - 1) * 1_000) / rate + allowedMs,
      `${calls.length} calls in ${last - first} ms, ${allowedMs} ms allowed`,
    )
  }

  test('holds for two workers, which use it up', async (t) => {
    const { calls, startedAt, allowedMs } = await sendAll(t, { messagesPerSecond: RATE }, [one, two], 24)
    assertRate(calls, RATE, startedAt, allowedMs)
  })

  test('of each agent holds for two workers beside the rate of the carrier', async (t) => {
    const rates = { messagesPerSecond: RATE, messagesPerSecondPerAgent: RATE / 2 }
    const { calls, startedAt, allowedMs } = await sendAll(t, rates, [one, two, three], 24)
    assertRate(calls, RATE, startedAt, allowedMs)
    for (const own of Map.groupBy(calls, ({ agentId }) => agentId).values()) assertRate(own, RATE / 2, startedAt)
  })
})
