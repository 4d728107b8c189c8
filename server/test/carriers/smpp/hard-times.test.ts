import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../../support/until.ts'
import { longer, pdu, type RawConnection, startRawPeer, withoutBody, withoutNul, withStatus } from './raw-peer.ts'
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
      assert.match(carrier.log(), /an invalid length/)
    }
  })

  test('what follows an answer that is complete, or a text without its NUL, does not undo the answer', async () => {
    const answers = [
      (asked: any) => longer(submitAnswer(asked, 'abc'), '0000'),
      (asked: any) => longer(submitAnswer(asked, 'abc'), '001e00ff41'),
      (asked: any) => withoutNul(submitAnswer(asked, 'abc')),
      (asked: any) => pdu('submit_sm_resp', { sequence_number: asked.sequence_number, message_id: 'a'.repeat(256) }),
      (asked: any) => withStatus(longer(submitAnswer(asked, 'abc'), 'ff'), 0x0b),
      (asked: any) => withStatus(withoutNul(submitAnswer(asked, 'abc')), 0x0b),
    ]
    let count = 0
    const { port } = await startRawPeer(({ socket }, asked) => {
      if (isSubmit(asked)) socket.write(answers[count++]?.(asked) as Buffer)
    })
    const carrier = startCarrier(port)
    const refused = { is: 'failed', reason: 'INVALID_RECIPIENT', detail: 'ESME_RINVDSTADR (0x0000000b)' }
    for (const expected of ['abc', 'abc', 'abc', '', refused, refused]) {
      const outcome = typeof expected === 'string' ? { is: 'sent', carrierMessageId: expected } : expected
      assert.deepEqual(await carrier.submit(part()), outcome)
    }
  })

  test('a generic_nack refuses a message by its status; without one it leaves open what became of it', async () => {
    let status = 3
    const { port } = await startRawPeer(({ send }, asked) => {
      if (isSubmit(asked)) send('generic_nack', { sequence_number: asked.sequence_number, command_status: status })
    })
    const carrier = startCarrier(port)
    assert.deepEqual(await carrier.submit(part()), { is: 'failed', reason: 'REJECTED', detail: 'ESME_RINVCMDID (0x00000003)' })
    status = 0
    assert.equal((await carrier.submit(part())).is, 'unknown')
  })

  test('a bind is taken by an answer without its NUL, without a body, or with stray octets', async () => {
    for (const change of [
      withoutNul,
      withoutBody,
      (answer: Buffer) => longer(answer, '00'),
      (answer: Buffer) => longer(answer, '021000'),
    ]) {
      const { port } = await startRawPeer(({ socket }, asked) => {
        if (isSubmit(asked)) socket.write(submitAnswer(asked, 'x'))
        if (asked.command !== 'bind_transceiver') return false
        return socket.write(change(pdu('bind_transceiver_resp', { sequence_number: asked.sequence_number, system_id: 'raw' })))
      })
      assert.equal((await startCarrier(port).submit(part())).is, 'sent')
    }
  })

  test('a bind that is refused with a body that is none is refused, not slow', async () => {
    for (const [answer, status] of [
      [(refusal: Buffer) => withoutNul(refusal), 'ESME_RINVPASWD'],
      [(refusal: Buffer) => longer(refusal, 'ff'), 'ESME_RINVPASWD'],
      [() => pdu('generic_nack', { sequence_number: 1, command_status: 3 }), 'ESME_RINVCMDID'],
      [() => pdu('generic_nack', { sequence_number: 1 }), 'ESME_RINVCMDID'],
    ] as const) {
      const { port } = await startRawPeer(({ socket }, { command, sequence_number }) => {
        const refusal = pdu('bind_transceiver_resp', { sequence_number, system_id: 'raw' })
        return command === 'bind_transceiver' && socket.write(answer(withStatus(refusal, 0x0e)))
      })
      const carrier = startCarrier(port)
      await lost(carrier, new RegExp(`the bind was refused: ${status}`))
      assert.ok(!carrier.log().includes('timed out'))
      await carrier.close()
    }
  })

  test('a deliver_sm with a stray octet at its end is taken', async () => {
    const { port, connections } = await startRawPeer(() => {})
    const carrier = startCarrier(port)
    await bound(carrier)
    const { socket, received } = connections[0] as RawConnection
    const receipt = { sequence_number: 9, source_addr: '48500', esm_class: 4, short_message: 'id:zz stat:DELIVRD' }
    socket.write(longer(pdu('deliver_sm', receipt), '00'))
    await until('it is answered', () => received.length === 2)
    assert.deepEqual([received[1].command, received[1].command_status, received[1].sequence_number], ['deliver_sm_resp', 0, 9])
    assert.deepEqual(
      carrier.events.map((event) => event.kind),
      ['sms-delivered'],
    )
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
      ['unknown', 'unknown', 'unknown', 'retry', 'retry'],
    )
    assert.equal(connections[0]?.received.filter(isSubmit).length, 3)
    assert.ok(performance.now() - startedAt < carrier.longestCallMs)
  })

  test('a peer that falls silent costs one window in all: nothing more is written, and what waits is sent away', async () => {
    // It takes the first bind and says nothing after it.
    const { port, connections } = await startRawPeer(({ received }) => connections.length > 1 || received.length > 1)
    const carrier = startCarrier(port, { window: 3, timings: { answerMs: 50, waitMs: 220, bindMs: 1_000 } })
    await bound(carrier)
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => carrier.submit(part())))
    assert.deepEqual(
      outcomes.map(({ is }) => is),
      [...Array<string>(3).fill('unknown'), ...Array<string>(9).fill('retry')],
    )
    assert.match(carrier.log(), /no response to enquire_link/)
    await until('it is bound to anew', () => connections[1]?.received.length === 1)
    assert.deepEqual(
      connections.map(({ received }) => received.map(({ command }) => command)),
      [['bind_transceiver', 'submit_sm', 'submit_sm', 'submit_sm', 'enquire_link'], ['bind_transceiver']],
    )
  })

  test('a peer that falls silent is asked for a sign of life, and left for a new connection where none comes', async () => {
    let deaf = false
    const { port, connections } = await startRawPeer((_, asked) => deaf && asked.command === 'enquire_link')
    const carrier = startCarrier(port, { enquireLinkSeconds: 0.03, timings: { answerMs: 60 } })
    await until('it was asked twice and answered', () => (connections[0]?.received.length ?? 0) >= 3)
    assert.equal(connections.length, 1)
    deaf = true
    await lost(carrier, /no response to enquire_link/)
    deaf = false
    await bound(carrier, 2)
  })

  test('a bind that is not answered, or a connection that only opens, is given up and tried again', async () => {
    let mute = true
    const { port, connections } = await startRawPeer((_, asked) => mute && asked.command === 'bind_transceiver')
    const carrier = startCarrier(port, { timings: { bindMs: 30 } })
    await lost(carrier, /the bind timed out/)
    mute = false
    await bound(carrier)
    assert.ok(connections.length >= 2)
    // Over TLS, a connection is one only after the handshake, which this peer never answers.
    const patient = startCarrier(port, { tls: true, timings: { connectMs: 30 } })
    await lost(patient, /the connection timed out/)
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
    const carrier = startCarrier(port, { timings: { reconnectFirstMs: 20, reconnectLongestMs: 640, steadyMs: 50, tickMs: 2 } })
    await until('the wait is at its longest', () => opened.length >= 7)
    const waits = opened.slice(1).map((at, index) => at - (opened[index] as number))
    for (const [index, delay] of [20, 40, 80, 160, 320, 640].entries()) {
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
    assert.ok(performance.now() - droppedAt < 320, 'the connection is back before half of the longest wait')
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
    assert.equal((await carrier.submit(part())).is, 'retry')
    await bound(carrier, 2)
    const outcome = await until('it is sent', async () => {
      const { is } = await carrier.submit(part())
      return is !== 'retry' && is
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
