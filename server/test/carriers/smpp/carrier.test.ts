import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import tls from 'node:tls'
import { createSmppCarrier } from '../../../src/carriers/smpp/carrier.ts'
import { splitText } from '../../../src/sms/segments.ts'
import { until } from '../../support/until.ts'
import { acceptSubmits, commandsOf, onSubmit, type PeerConnection, roundTrip, startPeer } from './peer.ts'
import { assertOutcomes, bound, PASSWORD, smsSegment, startCarrier } from './support.ts'

describe('the SMPP carrier', () => {
  test('binds as a transceiver, submits, and returns the network’s message id', async () => {
    const { port, connections } = await startPeer(acceptSubmits())
    const carrier = startCarrier(port, { systemType: 'VMA' })
    assert.deepEqual(await carrier.submit(smsSegment({ text: 'Hi €' })), { is: 'sent', carrierMessageId: 'm1' })
    const unicode = smsSegment({ encoding: 'UCS2', text: 'żółć', sender: '48600' })
    assert.deepEqual(await carrier.submit(unicode), { is: 'sent', carrierMessageId: 'm2' })
    const [bind, first, second] = connections.flatMap(({ received }) => received)
    assert.deepEqual(
      [
        bind.command,
        bind.system_id,
        bind.password,
        bind.system_type,
        bind.interface_version,
        bind.addr_ton,
        bind.addr_npi,
        bind.address_range,
      ],
      ['bind_transceiver', 'herald', PASSWORD, 'VMA', 0x34, 0, 0, ''],
    )
    assert.deepEqual(
      [first.source_addr, first.source_addr_ton, first.source_addr_npi, first.destination_addr, first.dest_addr_ton, first.dest_addr_npi],
      ['Herald', 5, 0, '48500100200', 1, 1],
    )
    assert.deepEqual([first.data_coding, first.registered_delivery, first.esm_class, first.short_message.message], [0, 1, 0, 'Hi €'])
    assert.deepEqual([second.data_coding, second.short_message.message, second.source_addr_ton], [8, 'żółć', 3])
    assert.ok(Math.abs(first.validity_period.getTime() - Date.now() - 3_600_000) < 60_000)
    assert.deepEqual([carrier.name, carrier.concurrency], ['net', 10])
  })

  test('submits the segments of a long text with headers by which a phone joins them', async () => {
    const seen: any[] = []
    const { port } = await startPeer(
      onSubmit((request, { respond }) => {
        seen.push(request)
        respond(request, { message_id: 'x' })
      }),
    )
    const carrier = startCarrier(port)
    const text = 'Ünïcödé 😀 '.repeat(20)
    await Promise.all(splitText(text, 42).map((piece) => carrier.submit(smsSegment(piece))))
    assert.equal(seen.map((pdu) => pdu.short_message.message).join(''), text)
    assert.deepEqual(
      seen.map((pdu) => pdu.short_message.udh[0].toString('hex')),
      seen.map((_, index) => `00032a0${seen.length}0${index + 1}`),
    )
  })

  test('reports a permanent status with its reason', async () => {
    const cases = [
      [0x0a, 'INVALID_SENDER', 'ESME_RINVSRCADR (0x0000000a)'],
      [0x0b, 'INVALID_RECIPIENT', 'ESME_RINVDSTADR (0x0000000b)'],
      [0x45, 'REJECTED', 'ESME_RSUBMITFAIL (0x00000045)'],
      [0xfe, 'UNDELIVERABLE', 'ESME_RDELIVERYFAILURE (0x000000fe)'],
      [0x45a, 'REJECTED', 'SMPP status 0x0000045a'],
    ] as const
    let index = 0
    const { port } = await startPeer(onSubmit((request, { respond }) => respond(request, { command_status: cases[index]?.[0] })))
    const carrier = startCarrier(port)
    for (const [, reason, detail] of cases) {
      assert.deepEqual(await carrier.submit(smsSegment()), { is: 'failed', reason, detail })
      index += 1
    }
  })

  test('logs a wrong password once, and binds once it is right', async () => {
    let command_status = 0x0e
    const accept = acceptSubmits()
    const { port, connections } = await startPeer((connection, request) => {
      accept(connection, request)
      if (request.command === 'bind_transceiver') connection.respond(request, { command_status })
      return request.command === 'bind_transceiver'
    })
    const carrier = startCarrier(port, { timings: { waitMs: 50 } })
    const released = await carrier.submit(smsSegment())
    assert.ok(released.is === 'retry' && released.afterMs >= 1_000)
    await until('it has tried several times', () => connections.length >= 4)
    assert.equal(carrier.log().match(/ESME_RINVPASWD/g)?.length, 1)
    assert.equal(JSON.parse(carrier.log().split('\n')[0] as string).level, 50)
    command_status = 0
    await bound(carrier)
    assert.equal((await carrier.submit(smsSegment())).is, 'sent')
  })

  test('submits a message once the network is reachable, at the first connection and after a loss', async () => {
    const { port, close } = await startPeer()
    close()
    const carrier = startCarrier(port)
    const early = carrier.submit(smsSegment())
    await until('it has tried', () => carrier.log().includes('ECONNREFUSED'))
    const second = await startPeer(acceptSubmits(), { port })
    await assertOutcomes([early], ['sent'])
    second.close()
    await until('the loss is noticed', () => carrier.log().match(/no connection/g)?.length === 2)
    const between = carrier.submit(smsSegment())
    await startPeer(acceptSubmits(), { port })
    await assertOutcomes([between], ['sent'])
  })

  function deliver({ send }: PeerConnection, sequence_number: number, fields: Record<string, unknown>): void {
    send('deliver_sm', { sequence_number, source_addr: '48500100200', destination_addr: '48600', ...fields })
  }
  const responsesIn = ({ received }: PeerConnection) =>
    received
      .filter(({ command }) => command === 'deliver_sm_resp')
      .map(({ sequence_number, command_status }) => [sequence_number, command_status])

  test('passes on receipts and replies, and responds to the network once they are stored', async () => {
    const { port, connections } = await startPeer()
    const stored = Promise.withResolvers<void>()
    const events: any[] = []
    const carrier = startCarrier(port, {}, async (batch) => {
      events.push(...batch)
      await stored.promise
    })
    await bound(carrier)
    const connection = connections[0] as PeerConnection
    deliver(connection, 1, { esm_class: 4, receipted_message_id: 'zz', message_state: 2 })
    deliver(connection, 2, { short_message: 'Tak € ok' })
    await until('both are passed on', () => events.length === 2)
    // The link works meanwhile, so the missing responses are held back.
    await roundTrip(connection)
    assert.deepEqual(responsesIn(connection), [])
    stored.resolve()
    await until('both have a response', () => responsesIn(connection).length === 2)
    assert.deepEqual(responsesIn(connection), [
      [1, 0],
      [2, 0],
    ])
    assert.deepEqual([events[0].kind, events[0].carrierMessageIds, events[0].carrier], ['sms-delivered', ['zz'], 'net'])
    assert.deepEqual([events[1].kind, events[1].senderNumber, events[1].phone], ['wrote', '48600', '+48500100200'])
  })

  test('refuses temporarily what could not be stored, so that the network sends it again', async () => {
    const { port, connections } = await startPeer()
    let stored = 0
    let failing = true
    const carrier = startCarrier(port, {}, async () => {
      if (failing) throw new Error('the database is away')
      stored += 1
    })
    await bound(carrier)
    const connection = connections[0] as PeerConnection
    for (const [sequence, status] of [
      [1, 0x64],
      [2, 0],
    ] as const) {
      deliver(connection, sequence, { esm_class: 4, short_message: 'id:zz stat:DELIVRD' })
      await until('it has a response', () => responsesIn(connection).length === sequence)
      assert.deepEqual(responsesIn(connection).at(-1), [sequence, status])
      failing = false
    }
    assert.equal(stored, 1)
  })

  test('logs no number, text, name or password', async () => {
    const statuses = [0x0b, 0x58]
    const { port, connections } = await startPeer(
      onSubmit((request, { socket, respond }) => {
        const command_status = statuses.shift()
        if (command_status === undefined) socket.destroy()
        else respond(request, { command_status })
      }),
    )
    const carrier = startCarrier(port, { timings: { throttleFirstMs: 1 } })
    await bound(carrier)
    deliver(connections[0] as PeerConnection, 9, { short_message: 'CANARY' })
    const outcomes = new Set<string>()
    await until('there were a refusal, a pause and a loss', async () => {
      outcomes.add((await carrier.submit(smsSegment({ text: 'CANARY' }))).is)
      return outcomes.size === 3
    })
    await carrier.close()
    for (const canary of [PASSWORD, 'CANARY', '48500100200', '48600', 'Herald']) assert.ok(!carrier.log().includes(canary), canary)
    assert.ok(carrier.log().split('\n').length > 3)
  })

  test('with TLS, connects only to a network that proves its name', async (t) => {
    const known = tls.getCACertificates('default')
    t.after(() => tls.setDefaultCACertificates(known))
    const key = readFileSync(new URL('../../support/tls/key.pem', import.meta.url))
    const cert = readFileSync(new URL('../../support/tls/cert.pem', import.meta.url))
    const { port, connections } = await startPeer(acceptSubmits(), { key, cert })
    const wary = startCarrier(port, { tls: true, host: 'localhost', timings: { waitMs: 100 } })
    assert.equal((await wary.submit(smsSegment())).is, 'retry')
    await until('the certificate is refused', () => /DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY|SELF_SIGNED/.test(wary.log()))
    await wary.close()
    assert.deepEqual(commandsOf(connections).flat(), [])
    tls.setDefaultCACertificates([cert.toString()])
    const trusting = startCarrier(port, { tls: true, host: 'localhost' })
    assert.equal((await trusting.submit(smsSegment())).is, 'sent')
  })

  test('does not submit an expired message', async () => {
    const { port, connections } = await startPeer()
    const carrier = startCarrier(port)
    assert.deepEqual(await carrier.submit(smsSegment({ expiresAt: new Date(Date.now() - 1) })), { is: 'expired' })
    await carrier.close()
    assert.deepEqual(commandsOf(connections), [['bind_transceiver', 'unbind']])
  })

  test('has a longest call of its wait and its response timeout together', () => {
    const carrier = createSmppCarrier(
      { name: 'n', host: '127.0.0.1', port: 1, tls: false, systemId: 'a', password: 'b' },
      { onEvents: async () => {}, logger: { info() {}, warn() {}, error() {} } },
    )
    assert.equal(carrier.longestCallMs, 3_000 + 10_000 + 100 + 1_000)
    return carrier.close()
  })
})
