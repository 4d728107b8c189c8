import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../support/until.ts'
import { stopClock } from '../clock.ts'
import {
  commandsOf,
  longer,
  onSubmit,
  type PeerConnection,
  pdu,
  roundTrip,
  startPeer,
  withoutBody,
  withoutNul,
  withStatus,
} from './peer.ts'
import { assertOutcomes, bound, smsSegment, startCarrier, submitMany, type TestCarrier } from './support.ts'

const lost = (carrier: TestCarrier, why: RegExp) => until(`the connection is lost: ${why}`, () => why.test(carrier.log()))
const submitResponse = (request: any, message_id: string) => pdu('submit_sm_resp', { sequence_number: request.sequence_number, message_id })
const isBind = ({ command }: any) => command === 'bind_transceiver'
const isSubmit = ({ command }: any) => command === 'submit_sm'
const RECEIPT = { sequence_number: 9, source_addr: '48500', esm_class: 4, short_message: 'id:zz stat:DELIVRD' }

describe('with malformed PDUs, the SMPP carrier', () => {
  test('reads a PDU that comes octet by octet, and several that come in one piece', async () => {
    const { port } = await startPeer(({ socket }, request) => {
      const { sequence_number } = request
      if (isBind(request)) for (const octet of pdu('bind_transceiver_resp', { sequence_number })) socket.write(Buffer.from([octet]))
      if (!isSubmit(request)) return isBind(request)
      const response = submitResponse(request, 'zz')
      // The receipt comes before the response, in one piece with its first half.
      socket.write(Buffer.concat([pdu('deliver_sm', RECEIPT), response.subarray(0, 10)]))
      setImmediate(() => socket.write(Buffer.concat([response.subarray(10), pdu('enquire_link', { sequence_number: 10 })])))
      return true
    })
    const carrier = startCarrier(port)
    assert.deepEqual(await carrier.submit(smsSegment()), { is: 'sent', carrierMessageId: 'zz' })
    assert.deepEqual(
      carrier.events.map((event) => [event.kind, event.phone]),
      [['sms-delivered', '+48500']],
    )
  })

  test('responds to enquire_link and to a deliver_sm with a stray octet, nacks unexpected requests, ignores unexpected responses', async () => {
    const { port, connections } = await startPeer()
    const carrier = startCarrier(port)
    await bound(carrier)
    const { socket, received } = connections[0] as PeerConnection
    socket.write(
      Buffer.concat([
        submitResponse({ sequence_number: 77 }, 'to no request'),
        pdu('enquire_link', { sequence_number: 5 }),
        pdu('data_sm', { sequence_number: 6 }),
        pdu('submit_sm', { sequence_number: 7 }),
        // A deliver_sm that ends in the middle of its fields.
        Buffer.from('00000014000000050000000000000008414141ff', 'hex'),
        pdu('unbind_resp', { sequence_number: 78 }),
        longer(pdu('deliver_sm', RECEIPT), '00'),
      ]),
    )
    await until('all have a response', () => received.length >= 6)
    assert.deepEqual(
      received.slice(1).map(({ command, sequence_number, command_status }) => [command, sequence_number, command_status]),
      [
        ['enquire_link_resp', 5, 0],
        ['generic_nack', 6, 3],
        ['generic_nack', 7, 3],
        ['generic_nack', 8, 2],
        ['deliver_sm_resp', 9, 0],
      ],
    )
    assert.deepEqual(
      carrier.events.map((event) => event.kind),
      ['sms-delivered'],
    )
  })

  for (const length of ['0000000f', 'ffffffff', '00000000', '00011171']) {
    test(`ends a connection after the length ${length}, and uses the next one`, async () => {
      const { port, connections } = await startPeer(
        onSubmit((request, { socket }) =>
          socket.write(connections.length > 1 ? submitResponse(request, 'x') : Buffer.from(`${length}8000000400000000`, 'hex')),
        ),
      )
      const carrier = startCarrier(port)
      assert.equal((await carrier.submit(smsSegment())).is, 'unknown')
      assert.equal((await carrier.submit(smsSegment())).is, 'sent')
      assert.match(carrier.log(), /an invalid length/)
    })
  }

  const refused = { is: 'failed', reason: 'INVALID_RECIPIENT', detail: 'ESME_RINVDSTADR (0x0000000b)' }
  const sentAs = (carrierMessageId: string) => ({ is: 'sent', carrierMessageId })
  const nack = (command_status: number) => (_: Buffer, sequence_number: number) => pdu('generic_nack', { sequence_number, command_status })
  for (const [what, respond, expected] of [
    ['a response with stray octets', (response) => longer(response, '0000'), sentAs('abc')],
    ['a response with a broken TLV', (response) => longer(response, '001e00ff41'), sentAs('abc')],
    ['a response without its NUL', withoutNul, sentAs('abc')],
    ['a response with an id of 256 characters', (_, sequence_number) => submitResponse({ sequence_number }, 'a'.repeat(256)), sentAs('')],
    ['a refusal with stray octets', (response) => withStatus(longer(response, 'ff'), 0x0b), refused],
    ['a refusal without its NUL', (response) => withStatus(withoutNul(response), 0x0b), refused],
    ['a generic_nack with a status', nack(3), { is: 'failed', reason: 'REJECTED', detail: 'ESME_RINVCMDID (0x00000003)' }],
    [
      'a generic_nack without a status',
      nack(0),
      { is: 'unknown', afterMs: 0, detail: 'The network’s response does not say whether it accepted the message.' },
    ],
  ] as [string, (response: Buffer, sequence: number) => Buffer, object][]) {
    test(`understands ${what}`, async () => {
      const { port } = await startPeer(
        onSubmit((request, { socket }) => socket.write(respond(submitResponse(request, 'abc'), request.sequence_number))),
      )
      assert.deepEqual(await startCarrier(port).submit(smsSegment()), expected)
    })
  }

  for (const [what, change] of [
    ['without its NUL', withoutNul],
    ['without a body', withoutBody],
    ['with a stray octet', (response: Buffer) => longer(response, '00')],
    ['with a TLV that is cut short', (response: Buffer) => longer(response, '021000')],
  ] as const) {
    test(`accepts the response to a bind ${what}`, async () => {
      const { port } = await startPeer(({ socket }, request) => {
        if (isSubmit(request)) socket.write(submitResponse(request, 'x'))
        const response = pdu('bind_transceiver_resp', { sequence_number: request.sequence_number, system_id: 'peer' })
        return isBind(request) && socket.write(change(response))
      })
      assert.equal((await startCarrier(port).submit(smsSegment())).is, 'sent')
    })
  }

  for (const [what, respond, status] of [
    ['without its NUL', (refusal: Buffer) => withoutNul(refusal), 'ESME_RINVPASWD'],
    ['with a stray octet', (refusal: Buffer) => longer(refusal, 'ff'), 'ESME_RINVPASWD'],
    ['by a generic_nack', () => pdu('generic_nack', { sequence_number: 1, command_status: 3 }), 'ESME_RINVCMDID'],
    ['by a generic_nack without a status', () => pdu('generic_nack', { sequence_number: 1 }), 'ESME_RINVCMDID'],
  ] as const) {
    test(`understands the refusal of a bind ${what}`, async () => {
      const { port } = await startPeer(({ socket }, request) => {
        const refusal = pdu('bind_transceiver_resp', { sequence_number: request.sequence_number, system_id: 'peer' })
        return isBind(request) && socket.write(respond(withStatus(refusal, 0x0e)))
      })
      const carrier = startCarrier(port)
      await lost(carrier, new RegExp(`the bind was refused: ${status}`))
      await carrier.close()
    })
  }
})

describe('with a silent peer, the SMPP carrier', () => {
  test('has at most a window of submits without a response, and releases the others after their wait', async (t) => {
    const clock = stopClock(t)
    const { port, connections } = await startPeer()
    const carrier = startCarrier(port, { window: 3, timings: { waitMs: 60, responseMs: 200 } })
    await bound(carrier)
    const outcomes = submitMany(carrier, 5)
    await until('a window is submitted', () => connections[0]?.received.filter(isSubmit).length === 3)
    clock.move(60)
    await assertOutcomes(outcomes.slice(3), ['retry', 'retry'])
    clock.move(140)
    await assertOutcomes(outcomes.slice(0, 3), ['unknown', 'unknown', 'unknown'])
    assert.equal(connections[0]?.received.filter(isSubmit).length, 3)
  })

  test('gives the place of a submit without a response to the next one, on the same connection', async (t) => {
    const clock = stopClock(t)
    const { port, connections } = await startPeer(
      onSubmit((request, { respond }) => request.short_message.message === 'silence' || respond(request, { message_id: 'x' })),
    )
    const carrier = startCarrier(port, { window: 2, timings: { responseMs: 60 } })
    await bound(carrier)
    // Only silence after a submit makes the carrier ask whether the peer is there.
    clock.move(1)
    const silent = [carrier.submit(smsSegment({ text: 'silence' })), carrier.submit(smsSegment({ text: 'silence' }))]
    const next = submitMany(carrier, 1)
    await until('a window is submitted', () => connections[0]?.received.filter(isSubmit).length === 2)
    clock.move(60)
    await assertOutcomes([...silent, ...next], ['unknown', 'unknown', 'sent'])
    assert.equal(connections.length, 1)
  })

  test('loses one window, submits no more without a response to enquire_link, and binds again', async (t) => {
    const clock = stopClock(t)
    // The peer accepts the first bind and is silent from then on.
    const { port, connections } = await startPeer(({ received }) => connections.length > 1 || received.length > 1)
    const carrier = startCarrier(port, { window: 3, timings: { responseMs: 50, waitMs: 220 } })
    await bound(carrier)
    clock.move(1)
    const outcomes = submitMany(carrier, 12)
    await until('a window is submitted', () => connections[0]?.received.length === 4)
    clock.move(50)
    await assertOutcomes(outcomes.slice(0, 3), ['unknown', 'unknown', 'unknown'])
    await until('it asks whether the peer is there', () => connections[0]?.received.length === 5)
    clock.move(50)
    await lost(carrier, /no response to enquire_link/)
    clock.move(120)
    await assertOutcomes(outcomes.slice(3), Array<'retry'>(9).fill('retry'))
    await until('it binds anew', () => connections[1]?.received.length === 1)
    assert.deepEqual(commandsOf(connections), [
      ['bind_transceiver', 'submit_sm', 'submit_sm', 'submit_sm', 'enquire_link'],
      ['bind_transceiver'],
    ])
  })

  test('sends enquire_link after a time without traffic, and binds again if there is no response', async (t) => {
    const clock = stopClock(t)
    let isSilent = false
    const { port, connections } = await startPeer((_, { command }) => isSilent && command === 'enquire_link')
    const carrier = startCarrier(port, { enquireLinkSeconds: 30, timings: { responseMs: 10_000 } })
    await bound(carrier)
    const enquiries = (count: number) =>
      until(`${count} enquiries`, () => connections[0]?.received.filter(({ command }) => command === 'enquire_link').length === count)
    clock.move(30_000)
    await enquiries(1)
    await roundTrip(connections[0] as PeerConnection)
    isSilent = true
    clock.move(30_000)
    await enquiries(2)
    clock.move(10_000)
    await lost(carrier, /no response to enquire_link/)
    isSilent = false
    clock.move(40)
    await bound(carrier, 2)
  })

  test('connects again after a bind without a response, and after a connection that only opens', async () => {
    let isSilent = true
    const { port, connections } = await startPeer((_, request) => isSilent && isBind(request))
    const carrier = startCarrier(port, { timings: { bindMs: 30 } })
    await lost(carrier, /the bind timed out/)
    isSilent = false
    await bound(carrier)
    assert.ok(connections.length >= 2)
    // With TLS a connection is open after the handshake, to which this peer does not respond.
    await lost(startCarrier(port, { tls: true, timings: { connectMs: 30 } }), /the connection timed out/)
  })
})

describe('on a lost connection, the SMPP carrier', () => {
  test('doubles the wait before each attempt, and starts anew after a stable connection', async (t) => {
    const attempts: number[] = []
    let drops = true
    const { port, connections } = await startPeer(({ socket }, request) => {
      if (isBind(request)) attempts.push(performance.now())
      if (drops) socket.destroy()
      return drops
    })
    const carrier = startCarrier(port, { timings: { reconnectFirstMs: 20, reconnectLongestMs: 640, steadyMs: 10_000, tickMs: 2 } })
    await until('the wait is at its longest', () => attempts.length >= 7)
    for (const [index, longestMs] of [20, 40, 80, 160, 320, 640].entries()) {
      const waitMs = (attempts[index + 1] as number) - (attempts[index] as number)
      assert.ok(waitMs >= longestMs / 2 - 2, `wait ${index} was ${waitMs}`)
    }
    drops = false
    await bound(carrier)
    const clock = stopClock(t)
    clock.move(10_000)
    const before = connections.length
    connections.at(-1)?.socket.destroy()
    await until('the loss is noticed', () => carrier.pausedForMs() > 0)
    clock.move(20)
    await until('the next attempt', () => connections.length > before)
  })

  test('awaits the last responses of a network that unbinds, and submits on a new connection', async () => {
    let held: any
    const { port, connections } = await startPeer(
      onSubmit((request, { respond, send }) => {
        if (connections.length > 1) respond(request, { message_id: 'new' })
        else {
          held = request
          send('unbind', { sequence_number: 1 })
        }
      }),
    )
    const carrier = startCarrier(port, { timings: { leaveMs: 600_000 } })
    const first = carrier.submit(smsSegment())
    await until('it has responded to the unbind', () => commandsOf(connections)[0]?.includes('unbind_resp'))
    const second = carrier.submit(smsSegment())
    connections[0]?.respond(held, { message_id: 'late' })
    assert.deepEqual(await first, { is: 'sent', carrierMessageId: 'late' })
    assert.deepEqual(await second, { is: 'sent', carrierMessageId: 'new' })
  })

  test('binds again if the network responds that it is not bound, and the message can be sent again', async () => {
    const { port, connections } = await startPeer(
      onSubmit((request, { respond }) => respond(request, connections.length > 1 ? { message_id: 'new' } : { command_status: 4 })),
    )
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 10 } })
    assert.equal((await carrier.submit(smsSegment())).is, 'retry')
    await bound(carrier, 2)
    const outcome = await until('it is not refused temporarily', async () => {
      const { is } = await carrier.submit(smsSegment())
      return is !== 'retry' && is
    })
    assert.equal(outcome, 'sent')
    assert.equal(commandsOf(connections)[0]?.at(-1), 'unbind')
  })
})

test('refuses more deliver_sm than a thousand at once, temporarily', async () => {
  const stored = Promise.withResolvers<void>()
  const { port, connections } = await startPeer()
  await bound(startCarrier(port, {}, () => stored.promise))
  const { socket, received } = connections[0] as PeerConnection
  const deliveries = Array.from({ length: 1_200 }, (_, index) =>
    pdu('deliver_sm', { sequence_number: index + 1, source_addr: '1', short_message: 'x' }),
  )
  socket.write(Buffer.concat(deliveries))
  await until('the surplus is refused', () => received.length === 1 + 200)
  stored.resolve()
  await until('the rest has a response', () => received.length === 1 + 1_200)
  const countOf = (status: number) => received.slice(1).filter(({ command_status }) => command_status === status).length
  assert.deepEqual([countOf(0x64), countOf(0)], [200, 1_000])
})
