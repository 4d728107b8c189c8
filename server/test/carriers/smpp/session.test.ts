import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import type { PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { openSession, writeSubmit } from '../../../src/carriers/smpp/session.ts'
import type { SubmitOutcome } from '../../../src/carriers/smpp/session-state.ts'
import { DEFAULT_TIMINGS, type SmppTimings } from '../../../src/carriers/smpp/settings.ts'
import { STATUS } from '../../../src/carriers/smpp/statuses.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { until } from '../../support/until.ts'
import { commandsOf, onSubmit, type PeerConnection, pdu, startPeer } from './peer.ts'
import { assertOutcomes, bound, smsSegment, startCarrier, submitMany } from './support.ts'

async function openBoundSession(port: number) {
  const settings = { name: 'net', host: '127.0.0.1', port, tls: false, systemId: 'herald', password: 'x' }
  const session = openSession(settings, DEFAULT_TIMINGS, { onBound() {}, onRoom() {}, async onDelivery() {}, onEnd() {} })
  after(() => session.socket.destroy())
  await until('it is bound', () => session.state === 'bound')
  return session
}

describe('a session', () => {
  test('stops reading from a peer that does not read its responses, and continues once the peer does', async () => {
    const { port, connections } = await startPeer()
    const session = await openBoundSession(port)
    const { socket } = connections[0] as PeerConnection
    socket.removeAllListeners('data')
    socket.pause()
    const enquiries = Buffer.concat(Array.from({ length: 4_096 }, () => pdu('enquire_link', { sequence_number: 7 })))
    let sentOctets = 0
    let mostHeld = 0
    let receivedOctets = 0
    await until('it stops reading', () => {
      for (let count = 0; count < 8 && socket.writableLength < 2 ** 20; count += 1) {
        sentOctets += enquiries.length
        socket.write(enquiries)
      }
      mostHeld = Math.max(mostHeld, session.socket.writableLength)
      return session.socket.isPaused() && socket.writableLength >= 2 ** 20
    })
    // What was written up to the pause, and the responses to the chunk after it.
    assert.ok(mostHeld > 0 && mostHeld <= 2 ** 18, `${mostHeld} octets held`)
    socket.on('data', (chunk) => {
      receivedOctets += chunk.length
    })
    socket.resume()
    await until('all have a response', () => receivedOctets === sentOctets)
    assert.equal(session.socket.isPaused(), false)
  })

  test('numbers its PDUs from 1 to 0x7fffffff, and then from 1 again', async () => {
    const { port, connections } = await startPeer(
      onSubmit((request, { respond }) => respond(request, { message_id: `m${request.sequence_number}` })),
    )
    const session = await openBoundSession(port)
    session.sequence = 0x7ffffffd
    const outcomes: SubmitOutcome[] = []
    for (let count = 0; count < 4; count += 1) {
      writeSubmit(session, submitSm(smsSegment()) as PduOf<'submit_sm'>, performance.now(), (outcome) => outcomes.push(outcome))
    }
    await until('all have a response', () => outcomes.length === 4)
    assert.deepEqual(
      connections[0]?.received.map(({ sequence_number }) => sequence_number),
      [1, 0x7ffffffe, 0x7fffffff, 1, 2],
    )
    assert.deepEqual(
      outcomes.map((outcome) => outcome.is === 'responded' && outcome.messageId),
      ['m2147483646', 'm2147483647', 'm1', 'm2'],
    )
  })
})

describe('closing the SMPP carrier', () => {
  /** A carrier that has just passed on a deliver_sm, which `store` keeps. */
  async function startDelivering(store: Promise<void>, timings: Partial<SmppTimings> = {}, onPdu?: Parameters<typeof startPeer>[0]) {
    const { port, connections } = await startPeer(onPdu)
    let delivered = 0
    const carrier = startCarrier(port, { timings }, () => {
      delivered += 1
      return store
    })
    await bound(carrier)
    const connection = connections[0] as PeerConnection
    connection.send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
    await until('it is passed on', () => delivered === 1)
    return { carrier, connections, connection }
  }

  test('releases waiting submits, awaits responses, unbinds, and submits no more', async () => {
    const requests: any[] = []
    const { port, connections } = await startPeer(onSubmit((request) => requests.push(request)))
    const carrier = startCarrier(port, { window: 2, timings: { leaveMs: 600_000, unbindMs: 600_000 } })
    const outcomes = submitMany(carrier, 4)
    await until('two are submitted', () => requests.length === 2)
    let closed = false
    const closing = carrier.close().then(() => {
      closed = true
    })
    await assertOutcomes([outcomes[2] as Promise<SendResult>, carrier.submit(smsSegment())], ['retry', 'retry'])
    assert.equal(closed, false)
    for (const request of requests) connections[0]?.respond(request, { message_id: 'x' })
    await closing
    await assertOutcomes([...outcomes, carrier.submit(smsSegment())], ['sent', 'sent', 'retry', 'retry', 'retry'])
    await carrier.close()
    assert.deepEqual(commandsOf(connections), [['bind_transceiver', 'submit_sm', 'submit_sm', 'unbind']])
  })

  test('waits for responses, and then for the unbind response, no longer than the timeouts', async () => {
    assert.equal(DEFAULT_TIMINGS.leaveMs + DEFAULT_TIMINGS.unbindMs, 3_500)
    const { port, connections } = await startPeer((_, { command }) => command === 'unbind')
    const carrier = startCarrier(port, { timings: { leaveMs: 60, unbindMs: 40 } })
    const outcome = carrier.submit(smsSegment())
    await until('it is submitted', () => commandsOf(connections)[0]?.includes('submit_sm'))
    const startedAt = performance.now()
    await carrier.close()
    assert.ok(performance.now() - startedAt >= 60 + 40 - 1)
    await assertOutcomes([outcome], ['unknown'])
    assert.deepEqual(commandsOf(connections), [['bind_transceiver', 'submit_sm', 'unbind']])
  })

  test('ends even if the peer does not read and a delivery is never stored', async () => {
    const never = new Promise<void>(() => {})
    const { carrier, connection } = await startDelivering(never, { leaveMs: 30, unbindMs: 20 }, (_, { command }) => command === 'unbind')
    connection.socket.pause()
    await carrier.close()
  })

  test('responds to earlier deliveries before it unbinds', async () => {
    const stored = Promise.withResolvers<void>()
    const { carrier, connections } = await startDelivering(stored.promise, { leaveMs: 600_000 })
    const closing = carrier.close()
    stored.resolve()
    await closing
    assert.deepEqual(commandsOf(connections), [['bind_transceiver', 'deliver_sm_resp', 'unbind']])
  })

  test('logs a delivery that fails meanwhile as a warning: the network sends it again', async () => {
    const { promise: failing, reject } = Promise.withResolvers<void>()
    const { carrier } = await startDelivering(failing)
    const closing = carrier.close()
    reject(new Error('Cannot use a pool after calling end on the pool'))
    await closing
    // 40: a warning.
    assert.match(carrier.log(), /"level":40[^\n]*failed to store a receipt or reply/)
  })

  test('refuses a deliver_sm that arrives after the unbind temporarily, and does not process it', async () => {
    let unbind: any
    const { port, connections } = await startPeer(({ send, respond }, request) => {
      if (request.command === 'deliver_sm_resp') respond(unbind)
      if (request.command !== 'unbind') return false
      unbind = request
      send('deliver_sm', { sequence_number: 3, source_addr: '48500', short_message: 'STOP' })
      return true
    })
    const carrier = startCarrier(port, { timings: { unbindMs: 600_000 } })
    await bound(carrier)
    await carrier.close()
    assert.deepEqual(carrier.events, [])
    assert.deepEqual(commandsOf(connections), [['bind_transceiver', 'unbind', 'deliver_sm_resp']])
    assert.equal(connections[0]?.received.at(-1).command_status, STATUS.TEMPORARY)
  })

  test('releases submits if there never was a connection', async () => {
    const carrier = startCarrier(1)
    const outcomes = submitMany(carrier, 1)
    await carrier.close()
    await assertOutcomes(outcomes, ['retry'])
  })
})
