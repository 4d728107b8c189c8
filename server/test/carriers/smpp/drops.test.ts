import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { pdu, type RawConnection, startRawPeer } from './raw-peer.ts'
import { part, startCarrier } from './support.ts'

const seed = Date.now() % 2 ** 31
const MESSAGES = 2_000
const CALLERS = 40

const WINDOW = 10

/** What the peer does with a connection: answers so many submits, takes some more unanswered, then drops, in one of several ways. */
type Plan = { answers: number; unanswered: number; how: 'reset' | 'end' | 'mid-answer' | 'at-bind' }
const plan: fc.Arbitrary<Plan> = fc.record({
  answers: fc.nat(30),
  unanswered: fc.integer({ min: 1, max: WINDOW }),
  how: fc.constantFrom('reset', 'end', 'mid-answer', 'at-bind'),
})

async function startDroppingPeer(plans: Plan[]) {
  const ledger = new Map<string, number>()
  const states = new Map<RawConnection, Plan & { taken: number }>()
  let drops = 0

  function take({ socket }: RawConnection, state: Plan & { taken: number }, asked: any): void {
    state.taken += 1
    const { message } = asked.short_message
    ledger.set(message, (ledger.get(message) ?? 0) + 1)
    const answer = pdu('submit_sm_resp', { sequence_number: asked.sequence_number, message_id: `id ${message}` })
    if (state.taken <= state.answers) socket.write(answer)
    if (state.taken < state.answers + state.unanswered) return
    drops += 1
    if (state.how === 'mid-answer') socket.write(answer.subarray(0, 9))
    if (state.how === 'reset') socket.resetAndDestroy()
    else socket.destroySoon()
  }

  const peer = await startRawPeer((connection, asked) => {
    const state = states.get(connection) ?? { ...(plans[states.size % plans.length] as Plan), taken: 0 }
    states.set(connection, state)
    // What arrives after the drop was written to a connection that is gone: a network would not see it.
    const gone = state.taken >= state.answers + state.unanswered
    if (asked.command === 'submit_sm' && !gone) take(connection, state, asked)
    if (asked.command !== 'bind_transceiver' || state.how !== 'at-bind') return false
    drops += 1
    connection.socket.destroy()
    return true
  })
  return { ...peer, ledger, drops: () => drops }
}

describe(`a connection that drops in the middle of a window (fast-check, seed ${seed})`, () => {
  test('loses no message and submits none twice, many times over', async () => {
    const plans = fc.sample(fc.array(plan, { minLength: 200, maxLength: 200 }), { numRuns: 1, seed })[0] as Plan[]
    const peer = await startDroppingPeer(plans)
    const carrier = startCarrier(peer.port, {
      window: WINDOW,
      timings: { reconnectFirstMs: 1, reconnectLongestMs: 4, tickMs: 2, throttleFirstMs: 1, answerMs: 300 },
    })
    const outcomes = new Map<string, SendResult>()
    let next = 0
    async function call(): Promise<void> {
      while (next < MESSAGES) {
        const text = `message ${next++}`
        let outcome: SendResult
        // As the service does: again is tried again, anything else is the end of it.
        do outcome = await carrier.submit(part({ text }))
        while (outcome.is === 'retry')
        outcomes.set(text, outcome)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, call))

    const kinds = { sent: 0, unknownTaken: 0, unknownNot: 0 }
    for (const [text, outcome] of outcomes) {
      const taken = peer.ledger.get(text) ?? 0
      assert.ok(taken <= 1, `${text} was submitted ${taken} times`)
      if (outcome.is === 'sent') {
        assert.equal(outcome.carrierMessageId, `id ${text}`)
        assert.equal(taken, 1, `${text} is said to be sent, and the network never saw it`)
        kinds.sent += 1
      } else {
        assert.equal(outcome.is, 'unknown', text)
        kinds[taken === 1 ? 'unknownTaken' : 'unknownNot'] += 1
      }
    }
    assert.equal(outcomes.size, MESSAGES, 'every message has its outcome')
    assert.ok(peer.drops() >= 10 && kinds.sent >= 20 && kinds.unknownTaken >= 10, JSON.stringify({ ...kinds, drops: peer.drops() }))
  })

  test('what was never written is sent away, and the network has not seen it', async () => {
    const peer = await startDroppingPeer([{ answers: 1, unanswered: 2, how: 'reset' }])
    const carrier = startCarrier(peer.port, { window: 5, timings: { waitMs: 60, reconnectFirstMs: 5_000, reconnectLongestMs: 5_000 } })
    const texts = Array.from({ length: 12 }, (_, index) => `message ${index}`)
    const outcomes = await Promise.all(texts.map((text) => carrier.submit(part({ text }))))
    const away = texts.filter((_, index) => outcomes[index]?.is === 'retry')
    assert.ok(away.length >= 6, `${away.length} were sent away`)
    for (const text of away) assert.equal(peer.ledger.get(text), undefined)
    assert.equal(outcomes.filter(({ is }) => is === 'sent' || is === 'unknown').length, 12 - away.length)
  })
})
