import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import type { PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { openSession, writeSubmit } from '../../../src/carriers/smpp/session.ts'
import type { Answer } from '../../../src/carriers/smpp/session-state.ts'
import { DEFAULT_TIMINGS } from '../../../src/carriers/smpp/settings.ts'
import { STATUS } from '../../../src/carriers/smpp/statuses.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { until } from '../../support/until.ts'
import { pdu, type RawConnection, startRawPeer } from './raw-peer.ts'
import { part, startCarrier, type TestCarrier } from './support.ts'

const bound = (carrier: TestCarrier) => until('it is bound', () => carrier.log().includes('bound to'))
const submitAnswer = (asked: any, message_id: string) => pdu('submit_sm_resp', { sequence_number: asked.sequence_number, message_id })
const isSubmit = ({ command }: any) => command === 'submit_sm'

async function openBoundSession(port: number) {
  const settings = { name: 'net', host: '127.0.0.1', port, tls: false, systemId: 'herald', password: 'x' }
  const events = { onBound() {}, onRoom() {}, async onDelivery() {}, onEnd() {} }
  const session = openSession(settings, DEFAULT_TIMINGS, events)
  after(() => session.socket.destroy())
  await until('it is bound', () => session.state === 'bound')
  return session
}

describe('a session', () => {
  test('of a peer that asks and does not read keeps little for it, is not read meanwhile, and goes on once it reads', async () => {
    const { port, connections } = await startRawPeer(() => {})
    const session = await openBoundSession(port)
    const { socket } = connections[0] as RawConnection
    socket.removeAllListeners('data')
    socket.pause()
    const asks = Buffer.concat(Array.from({ length: 4_096 }, () => pdu('enquire_link', { sequence_number: 7 })))
    let askedOctets = 0
    let mostHeld = 0
    let answeredOctets = 0
    const ask = () => {
      askedOctets += asks.length
      return socket.write(asks)
    }
    await until('it is not read any more', () => {
      for (let count = 0; count < 8 && socket.writableLength < 2 ** 20; count += 1) ask()
      mostHeld = Math.max(mostHeld, session.socket.writableLength)
      return session.socket.isPaused() && socket.writableLength >= 2 ** 20
    })
    // What was written up to the pause, and the answers to what the chunk after it held.
    assert.ok(mostHeld > 0 && mostHeld <= 2 ** 18, `${mostHeld} octets held`)
    socket.on('data', (chunk) => {
      answeredOctets += chunk.length
    })
    socket.resume()
    await until('all is answered', () => answeredOctets === askedOctets)
    assert.equal(session.socket.isPaused(), false)
  })

  test('numbers its PDUs from 1 to 0x7fffffff, and then from 1 again', async () => {
    const { port, connections } = await startRawPeer(({ socket }, asked) => {
      if (isSubmit(asked)) socket.write(submitAnswer(asked, `m${asked.sequence_number}`))
    })
    const session = await openBoundSession(port)
    session.sequence = 0x7ffffffd
    const answers: Answer[] = []
    for (let count = 0; count < 4; count += 1) {
      writeSubmit(session, submitSm(part()) as PduOf<'submit_sm'>, performance.now(), (answer) => answers.push(answer))
    }
    await until('all are answered', () => answers.length === 4)
    assert.deepEqual(
      connections[0]?.received.map(({ sequence_number }) => sequence_number),
      [1, 0x7ffffffe, 0x7fffffff, 1, 2],
    )
    assert.deepEqual(
      answers.map((answer) => answer.is === 'answered' && answer.messageId),
      ['m2147483646', 'm2147483647', 'm1', 'm2'],
    )
  })
})

describe('closing the SMPP carrier', () => {
  test('sends away what waits, awaits what is under way, unbinds, and submits no more', async () => {
    const asked: any[] = []
    const { port, connections } = await startRawPeer((_, request) => void (isSubmit(request) && asked.push(request)))
    const carrier = startCarrier(port, { window: 2 })
    const outcomes: Promise<SendResult>[] = Array.from({ length: 4 }, () => carrier.submit(part()))
    await until('two are under way', () => asked.length === 2)
    let closed = false
    const closing = carrier.close().then(() => {
      closed = true
    })
    assert.equal((await (outcomes[2] as Promise<SendResult>)).is, 'retry')
    assert.equal((await carrier.submit(part())).is, 'retry')
    assert.equal(closed, false)
    for (const request of asked) connections[0]?.socket.write(submitAnswer(request, 'x'))
    await closing
    assert.deepEqual(
      (await Promise.all(outcomes)).map(({ is }) => is),
      ['sent', 'sent', 'retry', 'retry'],
    )
    assert.deepEqual(
      connections[0]?.received.map(({ command }) => command),
      ['bind_transceiver', 'submit_sm', 'submit_sm', 'unbind'],
    )
    await carrier.close()
    assert.equal(connections.length, 1, 'nothing connects any more')
  })

  test('takes no longer than it may, whatever the peer does: the answers that are due, then the answer to the unbind', async () => {
    const { port, connections } = await startRawPeer((_, { command }) => command === 'unbind')
    const carrier = startCarrier(port, { timings: { leaveMs: 60, unbindMs: 40, answerMs: 10_000 } })
    const outcome = carrier.submit(part())
    const commands = () => connections[0]?.received.map(({ command }) => command) ?? []
    await until('it is under way', () => commands().includes('submit_sm'))
    const startedAt = performance.now()
    await carrier.close()
    const tookMs = performance.now() - startedAt
    assert.ok(tookMs >= 60 + 40 - 1 && tookMs < 1_000, `${tookMs}`)
    assert.equal((await outcome).is, 'unknown')
    assert.deepEqual(commands(), ['bind_transceiver', 'submit_sm', 'unbind'])
  })

  test('answers a deliver_sm that arrives after the unbind with a temporary error, and does not process it', async () => {
    let unbindSequence = 0
    const { port, connections } = await startRawPeer(({ send }, { command, sequence_number }) => {
      if (command === 'deliver_sm_resp') send('unbind_resp', { sequence_number: unbindSequence })
      if (command !== 'unbind') return false
      unbindSequence = sequence_number
      send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
      return true
    })
    let heard = 0
    const carrier = startCarrier(port, {}, async () => {
      heard += 1
    })
    await bound(carrier)
    await carrier.close()
    assert.equal(heard, 0)
    assert.deepEqual(
      connections[0]?.received.map(({ command, command_status }) => [command, command_status]),
      [
        ['bind_transceiver', 0],
        ['unbind', 0],
        ['deliver_sm_resp', STATUS.TEMPORARY],
      ],
    )
  })

  test('logs a delivery that fails meanwhile as a warning: the network sends it again', async () => {
    const { port, connections } = await startRawPeer(() => {})
    const { promise: failing, reject } = Promise.withResolvers<void>()
    let heard = 0
    const carrier = startCarrier(port, {}, () => {
      heard += 1
      return failing
    })
    await bound(carrier)
    connections[0]?.send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
    await until('it is heard', () => heard === 1)
    const closing = carrier.close()
    reject(new Error('Cannot use a pool after calling end on the pool'))
    await closing
    // 40: a warning.
    assert.match(carrier.log(), /"level":40[^\n]*failed to store a receipt or reply/)
  })

  test('takes no longer where the peer has stopped reading, or the one that keeps what it delivers never ends', async () => {
    const { port, connections } = await startRawPeer((_, { command }) => command === 'unbind')
    let heard = 0
    const never = new Promise<void>(() => {})
    const carrier = startCarrier(port, { timings: { leaveMs: 30, unbindMs: 20 } }, () => {
      heard += 1
      return never
    })
    await bound(carrier)
    connections[0]?.send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
    await until('it is heard', () => heard === 1)
    connections[0]?.socket.pause()
    const startedAt = performance.now()
    await carrier.close()
    assert.ok(performance.now() - startedAt < 1_000)
  })

  test('is 3.5 s by default, and what is submitted after it is sent away unwritten', async () => {
    assert.equal(DEFAULT_TIMINGS.leaveMs + DEFAULT_TIMINGS.unbindMs, 3_500)
    const { port, connections } = await startRawPeer(() => {})
    const carrier = startCarrier(port)
    await bound(carrier)
    const closing = carrier.close()
    const during = await carrier.submit(part())
    await closing
    const after = await carrier.submit(part())
    assert.deepEqual([during.is, after.is], ['retry', 'retry'])
    await until('the connection has ended', () => connections[0]?.socket.destroyed)
    assert.deepEqual(
      connections.map(({ received }) => received.map(({ command }) => command)),
      [['bind_transceiver', 'unbind']],
    )
  })

  test('answers what was delivered before it goes', async () => {
    const kept = Promise.withResolvers<void>()
    const { port, connections } = await startRawPeer(() => {})
    let heard = 0
    const carrier = startCarrier(port, {}, () => {
      heard += 1
      return kept.promise
    })
    await bound(carrier)
    connections[0]?.send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
    await until('it is heard', () => heard === 1)
    const closing = carrier.close()
    kept.resolve()
    await closing
    assert.deepEqual(
      connections[0]?.received.map(({ command }) => command),
      ['bind_transceiver', 'deliver_sm_resp', 'unbind'],
    )
  })

  test('works where there never was a connection', async () => {
    const carrier = startCarrier(1)
    const outcome = carrier.submit(part())
    await carrier.close()
    assert.equal((await outcome).is, 'retry')
  })
})
