import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { type PeerConnection, pdu, startPeer } from './peer.ts'
import { smsSegment, startCarrier } from './support.ts'

const seed = Date.now() % 2 ** 31
const MESSAGES = 2_000
const CALLERS = 40
const WINDOW = 10

/** What the peer does with a connection: responds to so many submits, accepts some more without a response, then drops it. */
type Plan = { responses: number; unanswered: number; how: 'reset' | 'end' | 'mid-response' | 'at-bind' }
const plan: fc.Arbitrary<Plan> = fc.record({
  responses: fc.nat(30),
  unanswered: fc.integer({ min: 1, max: WINDOW }),
  how: fc.constantFrom('reset', 'end', 'mid-response', 'at-bind'),
})

async function startDroppingPeer(plans: Plan[]) {
  /** How often each text was accepted. */
  const accepted = new Map<string, number>()
  const states = new Map<PeerConnection, Plan & { count: number }>()
  let drops = 0

  function accept({ socket }: PeerConnection, state: Plan & { count: number }, request: any): void {
    state.count += 1
    const { message } = request.short_message
    accepted.set(message, (accepted.get(message) ?? 0) + 1)
    const response = pdu('submit_sm_resp', { sequence_number: request.sequence_number, message_id: `id ${message}` })
    if (state.count <= state.responses) socket.write(response)
    if (state.count < state.responses + state.unanswered) return
    drops += 1
    if (state.how === 'mid-response') socket.write(response.subarray(0, 9))
    if (state.how === 'reset') socket.resetAndDestroy()
    else socket.destroySoon()
  }

  const peer = await startPeer((connection, request) => {
    const state = states.get(connection) ?? { ...(plans[states.size % plans.length] as Plan), count: 0 }
    states.set(connection, state)
    // A network would not see what was written to a connection that it has dropped.
    const isDropped = state.count >= state.responses + state.unanswered
    if (request.command === 'submit_sm' && !isDropped) accept(connection, state, request)
    if (request.command !== 'bind_transceiver' || state.how !== 'at-bind') return false
    drops += 1
    connection.socket.destroy()
    return true
  })
  return { ...peer, accepted, drops: () => drops }
}

describe(`a connection that drops in the middle of a window (fast-check, seed ${seed})`, () => {
  test('loses no message and submits none twice', async () => {
    const plans = fc.sample(fc.array(plan, { minLength: 200, maxLength: 200 }), { numRuns: 1, seed })[0] as Plan[]
    const peer = await startDroppingPeer(plans)
    // The last submits may stay without a response: then too few follow for the peer to drop the connection.
    const timings = { reconnectFirstMs: 1, reconnectLongestMs: 4, tickMs: 2, throttleFirstMs: 1, responseMs: 1_000 }
    const carrier = startCarrier(peer.port, { window: WINDOW, timings })
    const outcomes = new Map<string, SendResult>()
    let next = 0
    async function call(): Promise<void> {
      while (next < MESSAGES) {
        const text = `message ${next++}`
        let outcome: SendResult
        do outcome = await carrier.submit(smsSegment({ text }))
        while (outcome.is === 'retry')
        outcomes.set(text, outcome)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, call))

    const count = { sent: 0, unknown: 0, unknownButAccepted: 0 }
    for (const [text, outcome] of outcomes) {
      const times = peer.accepted.get(text) ?? 0
      assert.ok(times <= 1, `${text} was submitted ${times} times`)
      if (outcome.is === 'sent') {
        assert.deepEqual([outcome.carrierMessageId, times], [`id ${text}`, 1])
        count.sent += 1
      } else {
        assert.equal(outcome.is, 'unknown', text)
        count[times === 1 ? 'unknownButAccepted' : 'unknown'] += 1
      }
    }
    assert.equal(outcomes.size, MESSAGES, 'every message has its outcome')
    assert.ok(peer.drops() >= 10 && count.sent >= 20 && count.unknownButAccepted >= 10, JSON.stringify({ ...count, drops: peer.drops() }))
  })

  test('releases submits that were never written, and the network has not seen them', async () => {
    const peer = await startDroppingPeer([{ responses: 1, unanswered: 2, how: 'reset' }])
    const timings = { waitMs: 60, reconnectFirstMs: 600_000, reconnectLongestMs: 600_000 }
    const carrier = startCarrier(peer.port, { window: 5, timings })
    const texts = Array.from({ length: 12 }, (_, index) => `message ${index}`)
    const outcomes = await Promise.all(texts.map((text) => carrier.submit(smsSegment({ text }))))
    const released = texts.filter((_, index) => outcomes[index]?.is === 'retry')
    assert.ok(released.length >= 6, `${released.length} were released`)
    for (const text of released) assert.equal(peer.accepted.get(text), undefined)
    assert.equal(outcomes.filter(({ is }) => is === 'sent' || is === 'unknown').length, 12 - released.length)
  })
})
