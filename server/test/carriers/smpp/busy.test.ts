import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { until } from '../../support/until.ts'
import { acceptBind, startForeignServer } from './foreign.ts'
import { type RawConnection, startRawPeer } from './raw-peer.ts'
import { part, startCarrier, type TestCarrier } from './support.ts'

const THROTTLED = 0x58
const FULL_MAILBOX = 0x14
const INVALID_RECIPIENT = 0x0b

const pauseIsOver = (carrier: TestCarrier) => until('the pause is over', () => carrier.pausedForMs() === 0)

/** A peer that answers submits only where it is told to, with the place of the submit and the status. */
async function startSlowPeer() {
  const asked: any[] = []
  const { port, connections } = await startRawPeer((_, request) => void (request.command === 'submit_sm' && asked.push(request)))
  const connection = () => connections[0] as RawConnection
  const answer = (place: number, command_status = 0) =>
    connection().send('submit_sm_resp', { sequence_number: asked[place].sequence_number, command_status, message_id: `m${place}` })
  /** Once the carrier has answered this, all that it would have written by then is here. */
  async function roundTrip(): Promise<void> {
    const before = connection().received.length
    connection().send('enquire_link', { sequence_number: 1 })
    await until('the link is alive', () =>
      connection()
        .received.slice(before)
        .some(({ command }) => command === 'enquire_link_resp'),
    )
  }
  return { port, asked, answer, roundTrip }
}

describe('an SMS network that turns messages away for now', () => {
  test('a busy network is left alone for a time that doubles while it stays busy, and no longer once it takes a message', async () => {
    let busy = true
    let asked = 0
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      session.on('submit_sm', (pdu: any) => {
        asked += 1
        session.send(pdu.response(busy ? { command_status: THROTTLED } : { message_id: 'x' }))
      })
    })
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 40, throttleLongestMs: 100 } })
    const submitWhenAllowed = () =>
      until('a submit is let through', async () => {
        const before = asked
        const outcome = await carrier.submit(part())
        return asked > before ? outcome : undefined
      })
    const waits: number[] = []
    for (let round = 0; round < 4; round += 1) {
      const outcome: SendResult = await submitWhenAllowed()
      assert.ok(outcome.is === 'retry')
      waits.push(outcome.afterMs)
      const before = asked
      const meanwhile = await carrier.submit(part())
      assert.ok(meanwhile.is === 'retry' && meanwhile.afterMs <= outcome.afterMs && meanwhile.afterMs > 0)
      assert.equal(asked, before, 'nothing is sent meanwhile')
    }
    for (const [index, delay] of [40, 80, 100, 100].entries()) {
      const wait = waits[index] as number
      assert.ok(wait >= delay / 2 - 1 && wait <= delay, `wait ${index} was ${wait}`)
    }
    busy = false
    assert.equal((await submitWhenAllowed()).is, 'sent')
    busy = true
    const afterwards = await submitWhenAllowed()
    assert.ok(afterwards.is === 'retry' && afterwards.afterMs <= 40)
  })

  test('a window that is turned away as a whole counts once, and what waits behind it is sent away too', async () => {
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      session.on('submit_sm', (pdu: any) => session.send(pdu.response({ command_status: THROTTLED })))
    })
    const carrier = startCarrier(port, { window: 10, timings: { throttleFirstMs: 10_000 } })
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => carrier.submit(part())))
    for (const outcome of outcomes) assert.ok(outcome.is === 'retry' && outcome.afterMs > 4_000 && outcome.afterMs <= 10_000)
    assert.equal(carrier.log().match(/is busy/g)?.length, 1)
  })

  test('one full mailbox is that message’s own trouble: all others go on', async () => {
    const full = '+48500100999'
    let asked = 0
    const { port } = await startForeignServer((session) => {
      acceptBind(session)
      session.on('submit_sm', (pdu: any) => {
        asked += 1
        const isFull = pdu.destination_addr === full.slice(1)
        session.send(pdu.response(isFull ? { command_status: FULL_MAILBOX } : { message_id: 'x' }))
      })
    })
    const carrier = startCarrier(port, { window: 4, timings: { throttleFirstMs: 777 } })
    let next = 0
    const away: SendResult[] = []
    const others = new Map<string, number>()
    async function call(): Promise<void> {
      while (next < 600) {
        const toFull = next++ % 3 === 0
        const outcome = await carrier.submit(part(toFull ? { recipient: full } : {}))
        if (toFull) away.push(outcome)
        else others.set(outcome.is, (others.get(outcome.is) ?? 0) + 1)
        assert.equal(carrier.pausedForMs(), 0)
      }
    }
    await Promise.all(Array.from({ length: 12 }, call))
    assert.deepEqual([...others], [['sent', 400]])
    assert.equal(away.length, 200)
    for (const outcome of away) assert.deepEqual(outcome, { is: 'retry', afterMs: 777, detail: 'ESME_RMSGQFUL (0x00000014)' })
    assert.equal(asked, 600, 'each was asked about once')
    assert.ok(!carrier.log().includes('is busy'))
  })

  test('five in a row, with none taken between them, pause all submits', async () => {
    for (const status of [FULL_MAILBOX, 0x08, 0x64]) {
      const answers = [status, status, status, status, 0, status, status, status, status, status]
      let asked = 0
      const { port } = await startForeignServer((session) => {
        acceptBind(session)
        session.on('submit_sm', (pdu: any) => session.send(pdu.response({ command_status: answers[asked++], message_id: 'x' })))
      })
      const carrier = startCarrier(port, { timings: { throttleFirstMs: 10_000 } })
      assert.ok(carrier.pausedForMs() > 0, 'it is not bound yet')
      await pauseIsOver(carrier)
      for (const [index, answer] of answers.entries()) {
        assert.equal(carrier.pausedForMs(), 0, `not after ${index}`)
        assert.equal((await carrier.submit(part())).is, answer === 0 ? 'sent' : 'retry')
      }
      assert.ok(carrier.pausedForMs() >= 4_500)
      const meanwhile = await carrier.submit(part())
      assert.ok(meanwhile.is === 'retry' && meanwhile.afterMs >= 4_500)
      assert.equal(asked, answers.length)
      assert.equal(carrier.log().match(/is busy/g)?.length, 1)
    }
  })

  test('after a pause one submit goes ahead alone, whatever becomes of it, until one is taken; then the others follow', async () => {
    const { port, asked, answer, roundTrip } = await startSlowPeer()
    const carrier = startCarrier(port, { window: 6, timings: { throttleFirstMs: 30 } })
    const first = carrier.submit(part())
    await until('it is asked', () => asked.length === 1)
    answer(0, THROTTLED)
    assert.equal((await first).is, 'retry')
    await pauseIsOver(carrier)
    const outcomes = Array.from({ length: 9 }, () => carrier.submit(part()))
    await until('one went ahead', () => asked.length === 2)
    await roundTrip()
    assert.equal(asked.length, 2, 'and no other')
    answer(1, INVALID_RECIPIENT)
    await until('the next went ahead', () => asked.length === 3)
    await roundTrip()
    assert.equal(asked.length, 3, 'alone: a refusal is not a message taken')
    answer(2)
    await until('a whole window follows', () => asked.length === 3 + 6)
    for (let place = 3; place < 9; place += 1) answer(place)
    await until('and the rest', () => asked.length === 10)
    answer(9)
    assert.deepEqual(
      (await Promise.all(outcomes)).map(({ is }) => is),
      ['failed', ...Array<string>(8).fill('sent')],
    )
  })

  test('where the one that went ahead is turned away too, the pause doubles and what waits behind it is sent away', async () => {
    const { port, asked, answer } = await startSlowPeer()
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 30, throttleLongestMs: 10_000 } })
    const first = carrier.submit(part())
    await until('it is asked', () => asked.length === 1)
    answer(0, THROTTLED)
    await first
    await pauseIsOver(carrier)
    const outcomes = Array.from({ length: 5 }, () => carrier.submit(part()))
    await until('one went ahead', () => asked.length === 2)
    // Any code of this kind will do here: the network has not shown yet that it takes messages again.
    answer(1, FULL_MAILBOX)
    for (const outcome of await Promise.all(outcomes)) assert.ok(outcome.is === 'retry' && outcome.afterMs >= 29 && outcome.afterMs <= 60)
    assert.equal(asked.length, 2)
  })

  test('a message that was written before the pause and is taken in it, or after it, does not end it', async () => {
    const { port, asked, answer, roundTrip } = await startSlowPeer()
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 200 } })
    const early = Array.from({ length: 3 }, () => carrier.submit(part()))
    await until('all are asked', () => asked.length === 3)
    answer(0, THROTTLED)
    answer(1)
    assert.deepEqual(
      (await Promise.all(early.slice(0, 2))).map(({ is }) => is),
      ['retry', 'sent'],
    )
    assert.ok(carrier.pausedForMs() > 0)
    await pauseIsOver(carrier)
    answer(2)
    assert.equal((await (early[2] as Promise<SendResult>)).is, 'sent')
    const late = Array.from({ length: 4 }, () => carrier.submit(part()))
    await until('one went ahead', () => asked.length === 4)
    await roundTrip()
    assert.equal(asked.length, 4, 'and no other')
    answer(3)
    await until('the others follow', () => asked.length === 7)
    for (const place of [4, 5, 6]) answer(place)
    for (const outcome of await Promise.all(late)) assert.equal(outcome.is, 'sent')
  })
})
