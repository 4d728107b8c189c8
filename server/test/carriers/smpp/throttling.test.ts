import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { until } from '../../support/until.ts'
import { stopClock } from '../clock.ts'
import { onSubmit, type PeerConnection, roundTrip, startPeer } from './peer.ts'
import { assertOutcomes, bound, smsSegment, startCarrier, submitMany } from './support.ts'

const THROTTLED = 0x58
const FULL_MAILBOX = 0x14
const INVALID_RECIPIENT = 0x0b

/** A network that responds to each submit at once, with the status that the function returns. */
async function startRespondingPeer(statusOf: (request: any, index: number) => number) {
  let submits = 0
  const { port } = await startPeer(
    onSubmit((request, { respond }) => {
      respond(request, { command_status: statusOf(request, submits), message_id: 'x' })
      submits += 1
    }),
  )
  return { port, submits: () => submits }
}

/** A network that responds to a submit only when the test calls `respond` with its index and the status. */
async function startHoldingPeer() {
  const requests: any[] = []
  const { port, connections } = await startPeer(onSubmit((request) => requests.push(request)))
  const connection = () => connections[0] as PeerConnection
  return {
    port,
    respond: (index: number, command_status = 0) => connection().respond(requests[index], { command_status, message_id: `m${index}` }),
    /** Waits for this number of submits in all, and asserts that there are no more. */
    submits: async (count: number) => {
      await until(`${count} submits`, () => requests.length >= count)
      await roundTrip(connection())
      assert.equal(requests.length, count)
    },
  }
}

describe('an SMS network that refuses messages temporarily', () => {
  test('pauses submits for a time that doubles while it is busy, and starts anew once it accepts one', async (t) => {
    const clock = stopClock(t)
    let status = THROTTLED
    const { port, submits } = await startRespondingPeer(() => status)
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 1_000, throttleLongestMs: 3_000 } })
    const assertPause = async (longestMs: number) => {
      const before = submits()
      for (const submit of ['failed', 'not written']) {
        const outcome = await carrier.submit(smsSegment())
        assert.ok(outcome.is === 'retry' && outcome.afterMs >= longestMs / 2 && outcome.afterMs <= longestMs, JSON.stringify(outcome))
        assert.equal(submits() - before, 1, submit)
      }
      assert.ok(carrier.pausedForMs() >= longestMs / 2 && carrier.pausedForMs() <= longestMs)
      clock.move(longestMs)
      assert.equal(carrier.pausedForMs(), 0)
    }
    for (const longestMs of [1_000, 2_000, 3_000, 3_000]) await assertPause(longestMs)
    status = 0
    assert.equal((await carrier.submit(smsSegment())).is, 'sent')
    status = THROTTLED
    await assertPause(1_000)
  })

  test('doubles the pause once for a whole window, and releases the submits behind it', async (t) => {
    stopClock(t)
    const { port } = await startRespondingPeer(() => THROTTLED)
    const carrier = startCarrier(port, { window: 10, timings: { throttleFirstMs: 10_000 } })
    for (const outcome of await Promise.all(submitMany(carrier, 30))) {
      assert.ok(outcome.is === 'retry' && outcome.afterMs >= 5_000 && outcome.afterMs <= 10_000)
    }
    assert.equal(carrier.log().match(/is busy/g)?.length, 1)
  })

  test('delays only the message whose mailbox is full', async () => {
    const full = '+48500100999'
    const { port, submits } = await startRespondingPeer((request) => (request.destination_addr === full.slice(1) ? FULL_MAILBOX : 0))
    const carrier = startCarrier(port, { window: 4, timings: { throttleFirstMs: 777 } })
    await bound(carrier)
    let next = 0
    async function call(): Promise<void> {
      while (next < 300) {
        const toFull = next++ % 3 === 0
        const outcome = await carrier.submit(smsSegment(toFull ? { recipient: full } : {}))
        const expected = toFull
          ? { is: 'retry', afterMs: 777, detail: 'ESME_RMSGQFUL (0x00000014)' }
          : { is: 'sent', carrierMessageId: 'x' }
        assert.deepEqual(outcome, expected)
        assert.equal(carrier.pausedForMs(), 0)
      }
    }
    await Promise.all(Array.from({ length: 12 }, call))
    assert.equal(submits(), 300, 'each was submitted once')
    assert.ok(!carrier.log().includes('is busy'))
  })

  for (const status of [FULL_MAILBOX, 0x08, 0x64]) {
    test(`pauses all submits after status ${status} five times in a row`, async (t) => {
      stopClock(t)
      const statuses = [status, status, status, status, 0, status, status, status, status, status]
      const { port, submits } = await startRespondingPeer((_, index) => statuses[index] as number)
      const carrier = startCarrier(port, { timings: { throttleFirstMs: 10_000 } })
      assert.ok(carrier.pausedForMs() > 0, 'it is not bound yet')
      assert.deepEqual(carrier.health(), { circuit: 'closed', sessions: 0 })
      await bound(carrier)
      for (const [index, expected] of statuses.entries()) {
        assert.equal(carrier.pausedForMs(), 0, `not after ${index}`)
        assert.equal((await carrier.submit(smsSegment())).is, expected === 0 ? 'sent' : 'retry')
      }
      assert.ok(carrier.pausedForMs() >= 5_000)
      assert.deepEqual(carrier.health(), { circuit: 'open', sessions: 1 })
      const paused = await carrier.submit(smsSegment())
      assert.ok(paused.is === 'retry' && paused.afterMs >= 5_000)
      assert.equal(submits(), statuses.length)
      assert.equal(carrier.log().match(/is busy/g)?.length, 1)
    })
  }
})

describe('after a pause, the carrier', () => {
  async function startThrottled(t: Parameters<typeof stopClock>[0], early: number) {
    const clock = stopClock(t)
    const peer = await startHoldingPeer()
    const carrier = startCarrier(peer.port, { window: 6, timings: { throttleFirstMs: 1_000, throttleLongestMs: 10_000 } })
    const outcomes = submitMany(carrier, early)
    await peer.submits(early)
    peer.respond(0, THROTTLED)
    assert.equal((await (outcomes[0] as Promise<SendResult>)).is, 'retry')
    return { ...peer, clock, carrier, outcomes }
  }

  test('submits one message at a time until the network accepts one; then the others follow', async (t) => {
    const { carrier, clock, submits, respond } = await startThrottled(t, 1)
    clock.move(1_000)
    const outcomes = submitMany(carrier, 9)
    await submits(2)
    respond(1, INVALID_RECIPIENT)
    await submits(3)
    respond(2)
    await submits(3 + 6)
    for (let index = 3; index < 9; index += 1) respond(index)
    await submits(10)
    respond(9)
    await assertOutcomes(outcomes, ['failed', ...Array<'sent'>(8).fill('sent')])
  })

  test('doubles the pause if the first submit is refused with any temporary status, and releases the others', async (t) => {
    const { carrier, clock, submits, respond } = await startThrottled(t, 1)
    clock.move(1_000)
    const outcomes = submitMany(carrier, 5)
    await submits(2)
    respond(1, FULL_MAILBOX)
    for (const outcome of await Promise.all(outcomes))
      assert.ok(outcome.is === 'retry' && outcome.afterMs >= 1_000 && outcome.afterMs <= 2_000)
    await submits(2)
  })

  test('is not resumed by the acceptance of a message from before the pause', async (t) => {
    const { carrier, clock, submits, respond, outcomes } = await startThrottled(t, 3)
    respond(1)
    await assertOutcomes(outcomes.slice(1, 2), ['sent'])
    assert.ok(carrier.pausedForMs() > 0)
    clock.move(1_000)
    respond(2)
    await assertOutcomes(outcomes.slice(2), ['sent'])
    const late = submitMany(carrier, 4)
    await submits(4)
    respond(3)
    await submits(7)
    for (const index of [4, 5, 6]) respond(index)
    await assertOutcomes(late, ['sent', 'sent', 'sent', 'sent'])
  })
})
