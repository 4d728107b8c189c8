import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Outcome } from '../../../src/carriers/carrier.ts'
import { until } from '../../support/until.ts'
import { pdu, type RawConnection, startRawPeer } from './raw-peer.ts'
import { part, startCarrier, type TestCarrier } from './support.ts'

const bound = (carrier: TestCarrier, times = 1) =>
  until(`it is bound ${times} times`, () => (carrier.log().match(/bound to/g)?.length ?? 0) >= times)
const lost = (carrier: TestCarrier, why: RegExp) => until(`the connection is lost: ${why}`, () => why.test(carrier.log()))
const submitAnswer = (asked: any, message_id: string) => pdu('submit_sm_resp', { sequence_number: asked.sequence_number, message_id })
const isSubmit = ({ command }: any) => command === 'submit_sm'

describe('the SMPP carrier, against a peer that misbehaves', () => {
  test('PDUs that come octet by octet, or several in one piece, are read all the same', async () => {
    const { port } = await startRawPeer(({ socket }, asked) => {
      if (asked.command === 'bind_transceiver') {
        for (const octet of pdu('bind_transceiver_resp', { sequence_number: asked.sequence_number })) socket.write(Buffer.from([octet]))
        return true
      }
      if (!isSubmit(asked)) return false
      const receipt = pdu('deliver_sm', { sequence_number: 9, source_addr: '48500', esm_class: 4, short_message: 'id:early stat:DELIVRD' })
      const answer = submitAnswer(asked, 'early')
      // The receipt before the answer, in one piece with the first half of it.
      socket.write(Buffer.concat([receipt, answer.subarray(0, 10)]))
      setImmediate(() => socket.write(Buffer.concat([answer.subarray(10), pdu('enquire_link', { sequence_number: 10 })])))
      return true
    })
    const carrier = startCarrier(port)
    assert.deepEqual(await carrier.submit(part()), { is: 'sent', carrierMessageId: 'early' })
    assert.deepEqual(
      carrier.events.map((event) => [event.kind, event.phone]),
      [['sms-delivered', '+48500']],
    )
  })

  test('its enquire_link is answered; what it should not send is refused by generic_nack; answers to nothing are passed over', async () => {
    const { port, connections } = await startRawPeer(() => {})
    const carrier = startCarrier(port)
    await bound(carrier)
    const { socket, received } = connections[0] as RawConnection
    socket.write(
      Buffer.concat([
        submitAnswer({ sequence_number: 77 }, 'nobody asked'),
        pdu('enquire_link', { sequence_number: 5 }),
        pdu('data_sm', { sequence_number: 6 }),
        pdu('submit_sm', { sequence_number: 7 }),
        // A deliver_sm that ends in the middle of its fields.
        Buffer.from('00000014000000050000000000000008414141ff', 'hex'),
        pdu('unbind_resp', { sequence_number: 78 }),
        pdu('enquire_link', { sequence_number: 9 }),
      ]),
    )
    await until('all are answered', () => received.length >= 6)
    assert.deepEqual(
      received.slice(1).map(({ command, sequence_number, command_status }) => [command, sequence_number, command_status]),
      [
        ['enquire_link_resp', 5, 0],
        ['generic_nack', 6, 3],
        ['generic_nack', 7, 3],
        ['generic_nack', 8, 2],
        ['enquire_link_resp', 9, 0],
      ],
    )
  })

  test('a length that can not be ends the connection, not the carrier, and the next one works', async () => {
    for (const lie of ['0000000f', 'ffffffff', '00000000', '00011171']) {
      let lied = false
      const { port } = await startRawPeer(({ socket }, asked) => {
        if (!isSubmit(asked)) return
        if (lied) socket.write(submitAnswer(asked, 'x'))
        else socket.write(Buffer.from(`${lie}8000000400000000`, 'hex'))
        lied = true
      })
      const carrier = startCarrier(port)
      assert.equal((await carrier.submit(part())).is, 'unknown')
      assert.equal((await carrier.submit(part())).is, 'sent')
      assert.match(carrier.log(), /a length that can not be/)
    }
  })

  test('an answer that can not be read leaves open what became of the message; a refusal without a body does not', async () => {
    let count = 0
    const { port } = await startRawPeer(({ socket }, asked) => {
      if (!isSubmit(asked)) return
      count += 1
      const answer = submitAnswer(asked, 'abc')
      // With half an optional field at its end.
      const broken = Buffer.concat([answer, Buffer.alloc(2)])
      broken.writeUInt32BE(broken.length, 0)
      if (count === 2) broken.writeUInt32BE(0x0b, 8)
      socket.write(count === 3 ? pdu('generic_nack', { sequence_number: asked.sequence_number, command_status: 3 }) : broken)
    })
    const carrier = startCarrier(port)
    assert.equal((await carrier.submit(part())).is, 'unknown')
    assert.deepEqual(await carrier.submit(part()), { is: 'refused', reason: 'INVALID_RECIPIENT', detail: 'ESME_RINVDSTADR (0x0000000b)' })
    assert.deepEqual(await carrier.submit(part()), { is: 'refused', reason: 'REJECTED', detail: 'ESME_RINVCMDID (0x00000003)' })
  })

  test('an id without the NUL that should end it is read all the same', async () => {
    const { port } = await startRawPeer(({ socket }, asked) => {
      if (!isSubmit(asked)) return
      const answer = submitAnswer(asked, 'abc-1')
      const cut = Buffer.from(answer.subarray(0, answer.length - 1))
      cut.writeUInt32BE(cut.length, 0)
      socket.write(cut)
    })
    assert.deepEqual(await startCarrier(port).submit(part()), { is: 'sent', carrierMessageId: 'abc-1' })
  })

  test('no answer in time is unknown, and gives its place in the window to the next', async () => {
    const { port, connections } = await startRawPeer(({ socket }, asked) => {
      if (isSubmit(asked) && asked.short_message.message !== 'silence') socket.write(submitAnswer(asked, 'x'))
    })
    const carrier = startCarrier(port, { window: 2, timings: { answerMs: 60 } })
    const silent = [carrier.submit(part({ text: 'silence' })), carrier.submit(part({ text: 'silence' }))]
    const next = carrier.submit(part())
    assert.deepEqual(
      (await Promise.all(silent)).map(({ is }) => is),
      ['unknown', 'unknown'],
    )
    assert.equal((await next).is, 'sent')
    assert.equal(connections.length, 1, 'the connection stays')
  })

  test('at most a window of submits is unanswered, and what waits too long for its turn is sent away unsent', async () => {
    const { port, connections } = await startRawPeer(() => {})
    const carrier = startCarrier(port, { window: 3, timings: { waitMs: 60, answerMs: 200 } })
    await bound(carrier)
    const startedAt = performance.now()
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => carrier.submit(part())))
    assert.deepEqual(
      outcomes.map(({ is }) => is),
      ['unknown', 'unknown', 'unknown', 'again', 'again'],
    )
    assert.equal(connections[0]?.received.filter(isSubmit).length, 3)
    assert.ok(performance.now() - startedAt < carrier.longestCallMs)
  })

  test('a peer that falls silent is asked for a sign of life, and left for a new connection where none comes', async () => {
    let deaf = false
    const { port, connections } = await startRawPeer((_, asked) => deaf && asked.command === 'enquire_link')
    const carrier = startCarrier(port, { enquireLinkSeconds: 0.03, timings: { answerMs: 60 } })
    await until('it was asked twice and answered', () => (connections[0]?.received.length ?? 0) >= 3)
    assert.equal(connections.length, 1)
    deaf = true
    await lost(carrier, /no sign of life/)
    deaf = false
    await bound(carrier, 2)
  })

  test('a bind that is not answered, or a connection that only opens, is given up and tried again', async () => {
    let mute = true
    const { port, connections } = await startRawPeer((_, asked) => mute && asked.command === 'bind_transceiver')
    const carrier = startCarrier(port, { timings: { bindMs: 30 } })
    await lost(carrier, /answer to the bind took too long/)
    mute = false
    await bound(carrier)
    assert.ok(connections.length >= 2)
    // Over TLS, a connection is one only after the handshake, which this peer never answers.
    const patient = startCarrier(port, { tls: true, timings: { connectMs: 30 } })
    await lost(patient, /the connection took too long/)
  })

  test('the waits between attempts double, and begin anew after a connection that held', async () => {
    const opened: number[] = []
    let hold = false
    const { port, connections } = await startRawPeer(({ socket }, asked) => {
      if (asked.command !== 'bind_transceiver') return false
      opened.push(performance.now())
      if (hold) return false
      socket.destroy()
      return true
    })
    const carrier = startCarrier(port, { timings: { reconnectFirstMs: 20, reconnectLongestMs: 160, steadyMs: 50, tickMs: 2 } })
    await until('the wait is at its longest', () => opened.length >= 6)
    const waits = opened.slice(1).map((at, index) => at - (opened[index] as number))
    for (const [index, delay] of [20, 40, 80, 160, 160].entries()) {
      assert.ok((waits[index] as number) >= delay / 2 - 2, `wait ${index} was ${waits[index]}`)
    }
    hold = true
    await bound(carrier)
    const boundAt = performance.now()
    await until('it has held for a while', () => performance.now() - boundAt > 60)
    const before = connections.length
    const droppedAt = performance.now()
    connections.at(-1)?.socket.destroy()
    await until('it is back', () => connections.length > before)
    assert.ok(performance.now() - droppedAt < 80, 'not after the longest wait')
  })

  test('when the network unbinds, its last answers are awaited, and the next submit goes to the new connection', async () => {
    const { port, connections } = await startRawPeer(({ socket, send }, asked) => {
      if (!isSubmit(asked)) return
      if (connections.length > 1) socket.write(submitAnswer(asked, 'new'))
      else {
        send('unbind', { sequence_number: 1 })
        setTimeout(() => socket.write(submitAnswer(asked, 'late')), 20)
      }
    })
    const carrier = startCarrier(port)
    const first = carrier.submit(part())
    await until('it has unbound', () => connections[0]?.received.some(({ command }) => command === 'unbind_resp'))
    const second = carrier.submit(part())
    assert.deepEqual(await first, { is: 'sent', carrierMessageId: 'late' })
    assert.deepEqual(await second, { is: 'sent', carrierMessageId: 'new' })
  })

  test('a network that says we are not bound is bound to anew, and the message is not lost', async () => {
    const { port, connections } = await startRawPeer(({ socket, send }, asked) => {
      if (!isSubmit(asked)) return
      if (connections.length > 1) socket.write(submitAnswer(asked, 'new'))
      else send('submit_sm_resp', { sequence_number: asked.sequence_number, command_status: 4 })
    })
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 10 } })
    assert.equal((await carrier.submit(part())).is, 'again')
    await bound(carrier, 2)
    const outcome = await until('it is sent', async () => {
      const { is } = await carrier.submit(part())
      return is !== 'again' && is
    })
    assert.equal(outcome, 'sent')
    assert.equal(connections[0]?.received.at(-1).command, 'unbind')
  })

  test('more deliver_sm than anyone keeps up with are sent away, not piled up', async () => {
    const kept = Promise.withResolvers<void>()
    const { port, connections } = await startRawPeer(() => {})
    const carrier = startCarrier(port, {}, () => kept.promise)
    await bound(carrier)
    const { socket, received } = connections[0] as RawConnection
    const flood = Array.from({ length: 1_200 }, (_, index) =>
      pdu('deliver_sm', { sequence_number: index + 1, source_addr: '1', short_message: 'x' }),
    )
    socket.write(Buffer.concat(flood))
    await until('the surplus is sent away', () => received.length === 1 + 200)
    kept.resolve()
    await until('the rest is answered', () => received.length === 1 + 1_200)
    const statuses = received.slice(1).map(({ command_status }) => command_status)
    assert.equal(statuses.filter((status) => status === 0x64).length, 200)
    assert.equal(statuses.filter((status) => status === 0).length, 1_000)
  })
})

describe('closing the SMPP carrier', () => {
  test('sends away what waits, awaits what is under way, unbinds, and submits no more', async () => {
    const asked: any[] = []
    const { port, connections } = await startRawPeer((_, request) => void (isSubmit(request) && asked.push(request)))
    const carrier = startCarrier(port, { window: 2 })
    const outcomes: Promise<Outcome>[] = Array.from({ length: 4 }, () => carrier.submit(part()))
    await until('two are under way', () => asked.length === 2)
    let closed = false
    const closing = carrier.close().then(() => {
      closed = true
    })
    assert.equal((await (outcomes[2] as Promise<Outcome>)).is, 'again')
    assert.equal((await carrier.submit(part())).is, 'again')
    assert.equal(closed, false)
    for (const request of asked) connections[0]?.socket.write(submitAnswer(request, 'x'))
    await closing
    assert.deepEqual(
      (await Promise.all(outcomes)).map(({ is }) => is),
      ['sent', 'sent', 'again', 'again'],
    )
    assert.deepEqual(
      connections[0]?.received.map(({ command }) => command),
      ['bind_transceiver', 'submit_sm', 'submit_sm', 'unbind'],
    )
    await carrier.close()
    assert.equal(connections.length, 1, 'nothing connects any more')
  })

  test('takes no longer than an answer may take, whatever the peer does', async () => {
    const { port } = await startRawPeer((_, { command }) => command === 'unbind')
    const carrier = startCarrier(port, { timings: { answerMs: 50, bindMs: 50 } })
    await bound(carrier)
    const outcome = carrier.submit(part())
    const startedAt = performance.now()
    await carrier.close()
    assert.ok(performance.now() - startedAt < 1_000)
    assert.equal((await outcome).is, 'again')
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
    assert.equal((await outcome).is, 'again')
  })
})
