import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { createSmppServer } from '../src/smpp/server.ts'
import { timeOf } from '../src/smpp/times.ts'
import { connectEsme, textOf } from './support/esme.ts'
import { createDataDir, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'

const simulator = await startTestSimulator()
const { carriers } = simulator
const esme = await connectEsme(carriers)

describe('a bind', () => {
  test('is refused with another system id, another password, and a second time', async () => {
    assert.equal((await esme.bind('transceiver', { system_id: 'else' })).command_status, 0x0f)
    assert.equal((await esme.bind('transceiver', { password: 'wrong' })).command_status, 0x0e)
    assert.equal((await esme.submit({})).command_status, 0x04)
    assert.equal((await esme.bind()).command_status, 0)
    assert.equal((await esme.bind()).command_status, 0x05)
  })

  test('as a receiver cannot submit, and as a transmitter gets no receipts', async () => {
    const receiver = await connectEsme(carriers)
    const transmitter = await connectEsme(carriers)
    assert.equal((await receiver.bind('receiver')).command_status, 0)
    assert.equal((await receiver.submit({})).command_status, 0x04)
    assert.equal((await transmitter.bind('transmitter')).command_status, 0)
    const id = await transmitter.submitted({})
    await until('one of the others has the receipt', () =>
      [...receiver.received, ...esme.received].some((pdu) => pdu.receipted_message_id === id),
    )
    assert.deepEqual(transmitter.received, [])
    assert.equal((await receiver.ask('enquire_link')).command_status, 0)
    assert.equal((await receiver.ask('unbind')).command_status, 0)
    await until('the session ends', () => receiver.state.closed)
    transmitter.session.destroy()
  })
})

describe('a submit', () => {
  test('reaches the phone, and gets a receipt with text and TLVs', async () => {
    const { command_status: status, message_id: id = '' } = await esme.submit({
      destination_addr: '48500400110',
      short_message: 'Zażółć? {€}',
    })
    assert.equal(status, 0)
    const receipt = await esme.receipt(id)
    assert.equal(receipt.esm_class, 4)
    assert.deepEqual([receipt.receipted_message_id, receipt.message_state], [id, 2])
    assert.deepEqual([receipt.source_addr, receipt.destination_addr, receipt.dest_addr_ton], ['48500400110', 'Herald', 5])
    assert.match(
      textOf(receipt),
      new RegExp(`^id:${id} sub:001 dlvrd:001 submit date:\\d{10} done date:\\d{10} stat:DELIVRD err:000 text:`),
    )
    const [sms] = await simulator.phone('+48500400110')
    assert.deepEqual([sms.channel, sms.sender, sms.messageIds], ['sms', 'Herald', [id]])
  })

  test('is decoded from GSM 03.38 and UCS-2, in short_message and message_payload', async () => {
    const gsm = 'Grüße à 5 € [x]'
    const ucs2 = 'Zażółć gęślą jaźń 😀'
    const phone = '48500400111'
    await esme.submit({ destination_addr: phone, short_message: gsm })
    await esme.submit({ destination_addr: phone, data_coding: 8, short_message: ucs2 })
    await esme.submit({ destination_addr: phone, data_coding: 8, short_message: '', message_payload: ucs2.repeat(20) })
    assert.deepEqual(
      (await simulator.phone(`+${phone}`)).map(({ text }) => text),
      [gsm, ucs2, ucs2.repeat(20)],
    )
  })

  test('of several segments is joined on the phone, in any order', async () => {
    const phone = '48500400112'
    const udh = (reference: number, total: number, number: number) => Buffer.from([5, 0, 3, reference, total, number])
    const segment = (header: Buffer, message: string) => esme.submit({ destination_addr: phone, short_message: { udh: header, message } })
    const ids = [
      (await segment(udh(7, 3, 2), 'two ')).message_id,
      (await segment(udh(7, 3, 1), 'one ')).message_id,
      (await segment(udh(8, 2, 1), 'another ')).message_id,
      (await segment(udh(7, 3, 3), 'three')).message_id,
    ]
    // The reference 256 + 7 has the same lower octet as the first.
    await segment(Buffer.from([6, 8, 4, 1, 7, 3, 1]), 'of two octets')
    await esme.submit({
      destination_addr: phone,
      sar_msg_ref_num: 9,
      sar_total_segments: 1,
      sar_segment_seqnum: 1,
      short_message: 'by TLV',
    })
    await until('all are delivered', async () => (await simulator.phone(`+${phone}`))[3]?.deliveredAt)
    const shown = await simulator.phone(`+${phone}`)
    assert.deepEqual(
      shown.map(({ text, parts, totalParts, deliveredAt }) => [text, parts, totalParts, deliveredAt !== null]),
      [
        ['one two three', 3, 3, true],
        ['another ', 1, 2, false],
        ['of two octets', 1, 3, false],
        ['by TLV', 1, 1, true],
      ],
    )
    assert.deepEqual(shown[0].messageIds, [ids[1], ids[0], ids[3]])
    for (const id of ids) await esme.receipt(id ?? '')
  })

  test('to a number that ends in 08 fails', async () => {
    const id = await esme.submitted({ destination_addr: '48500400108' })
    const receipt = await esme.receipt(id)
    assert.equal(receipt.message_state, 5)
    assert.match(textOf(receipt), /dlvrd:000 .* stat:UNDELIV /)
  })

  test('gets the receipts that it requests: none, of failures only, intermediate', async () => {
    const fields = [
      { destination_addr: '48500400113', registered_delivery: 0 },
      { destination_addr: '48500400113', registered_delivery: 2 },
      { destination_addr: '48500400208', registered_delivery: 2 },
      { destination_addr: '48500400208', registered_delivery: 3 },
      { destination_addr: '48500400113', registered_delivery: 3 },
      { destination_addr: '48500400113', registered_delivery: 0x11 },
    ]
    const ids: string[] = []
    for (const each of fields) ids.push((await esme.submit(each)).message_id ?? '')
    await until('the receipts of the last', () => esme.receiptsOf(ids[5] ?? '').length === 2)
    const receipts = esme.received.filter((pdu) => ids.includes(pdu.receipted_message_id ?? ''))
    assert.deepEqual(
      receipts.map((pdu) => [ids.indexOf(pdu.receipted_message_id ?? ''), pdu.esm_class, pdu.message_state]),
      [
        [2, 4, 5],
        [4, 4, 2],
        [5, 0x20, 1],
        [5, 4, 2],
      ],
    )
  })

  const withHeader = (octets: number) => Buffer.concat([Buffer.from([5, 0, 3, 1, 2, 1]), Buffer.alloc(octets, 0x41)])
  const sar = { sar_msg_ref_num: 1, sar_total_segments: 2, sar_segment_seqnum: 1 }
  const refused: [string, Record<string, unknown>, number][] = [
    ['a name of 12 characters', { source_addr: 'HeraldHerald' }, 0x0a],
    ['a name without a letter', { source_addr: '12345' }, 0x0a],
    ['a name as a number', { source_addr_ton: 1, source_addr_npi: 1 }, 0x0a],
    ['a number of 21 digits', { source_addr_ton: 1, source_addr: '1'.repeat(21) }, 0x0a],
    ['an unknown type of number', { source_addr_ton: 9 }, 0x48],
    ['an unknown numbering plan', { source_addr_npi: 99 }, 0x49],
    ['a recipient with a plus', { destination_addr: '+48500100110' }, 0x0b],
    ['a recipient of letters', { destination_addr: 'Herald' }, 0x0b],
    ['no recipient', { destination_addr: '' }, 0x0b],
    ['a recipient with the type of a name', { dest_addr_ton: 5 }, 0x50],
    ['255 octets', { short_message: Buffer.alloc(255, 0x41) }, 0x01],
    ['a header and 154 septets', { esm_class: 0x40, short_message: withHeader(154) }, 0x01],
    ['a header and 68 UCS-2 letters', { esm_class: 0x40, data_coding: 8, short_message: withHeader(136) }, 0x01],
    ['a segment number over the total', { esm_class: 0x40, short_message: Buffer.from([5, 0, 3, 1, 2, 3, 0x41]) }, 0x43],
    ['an unknown coding', { data_coding: 5, short_message: Buffer.from('Hello') }, 0x45],
    ['a validity in the past', { validity_period: '200101000000000+' }, 0x62],
    ['a validity on 30 February', { validity_period: '990230000000000+' }, 0x62],
    ['a validity that is too short', { validity_period: '0000000100000R' }, 0x62],
    ['an invalid time of delivery', { schedule_delivery_time: 'tomorrow-morning' }, 0x61],
    ['a time of delivery in the past', { schedule_delivery_time: '200101000000000+' }, 0x61],
    ['a header longer than its message', { esm_class: 0x40, short_message: Buffer.from([200, 0, 3, 1, 2, 1]) }, 0x43],
    ['an element longer than its header', { esm_class: 0x40, short_message: Buffer.from([5, 0, 9, 1, 2, 1, 0x41]) }, 0x43],
    ['a reference of a wrong length', { esm_class: 0x40, short_message: Buffer.from([4, 0, 2, 1, 2, 0x41]) }, 0x43],
    ['half a UCS-2 letter', { data_coding: 8, short_message: Buffer.from([0, 0x41, 0]) }, 0x01],
    ['the type of a receipt', { esm_class: 0x04 }, 0x43],
    ['short_message and message_payload', { message_payload: 'Hello' }, 0x01],
    ['a segment by TLV that is too long', { ...sar, short_message: '', message_payload: Buffer.alloc(161, 0x41) }, 0x01],
    [
      'a segment by its header in message_payload that is too long',
      { esm_class: 0x40, data_coding: 4, short_message: '', message_payload: withHeader(135) },
      0x01,
    ],
  ]
  for (const [name, fields, status] of refused) {
    test(`with ${name} is refused`, async () => assert.equal((await esme.submit(fields)).command_status, status))
  }

  const accepted: [string, Record<string, unknown>][] = [
    ['a name of 11 characters', { source_addr: 'HeraldHeral' }],
    ['a number of 20 digits', { source_addr_ton: 1, source_addr_npi: 1, source_addr: '1'.repeat(20) }],
    ['254 octets', { short_message: Buffer.alloc(254, 0x41) }],
    ['a header and 153 septets', { esm_class: 0x40, short_message: withHeader(153) }],
    ['a header and 67 UCS-2 letters', { esm_class: 0x40, data_coding: 8, short_message: withHeader(134) }],
    ['a validity to come', { validity_period: '000000010000000R' }],
    ['a segment by TLV that just fits', { ...sar, short_message: '', message_payload: Buffer.alloc(160, 0x41) }],
  ]
  for (const [name, fields] of accepted) {
    test(`with ${name} is accepted`, async () =>
      assert.equal((await esme.submit({ destination_addr: '48500400120', ...fields })).command_status, 0))
  }

  test('gets an id of its own if 25 are in progress', async () => {
    const ids = await Promise.all(Array.from({ length: 25 }, () => esme.submitted({ destination_addr: '48500400121' })))
    assert.equal(new Set(ids).size, 25)
    for (const id of ids) await esme.receipt(id)
  })
})

test('responds to an unsupported command with INVCMDID', async () => {
  const response = await new Promise<any>((resolve) => (esme.session as any).query_sm({ message_id: '1', source_addr: '1' }, resolve))
  assert.equal(response.command_status, 0x03)
})

describe('receipts', () => {
  test('without a response at the end of a session go to the next one', async () => {
    const silent = await connectEsme(carriers, 'none')
    await esme.end()
    await silent.bind()
    const id = await silent.submitted({ destination_addr: '48500400132' })
    await silent.receipt(id)
    silent.session.destroy()
    const next = await connectEsme(carriers)
    await next.bind('receiver')
    await next.receipt(id)
    await next.end()
  })

  test('are repeated until the response is 0', async () => {
    const other = await connectEsme(carriers, [0x64])
    await other.bind()
    const id = await other.submitted({ destination_addr: '48500400130' })
    await until('it has come twice', () => other.receiptsOf(id).length === 2)
    await other.end()
  })

  test('wait for the next bind, and come once', async () => {
    const transmitter = await connectEsme(carriers)
    await transmitter.bind('transmitter')
    const id = await transmitter.submitted({ destination_addr: '48500400131' })
    await until('the phone has it', async () => (await simulator.phone('+48500400131'))[0]?.deliveredAt)
    const next = await connectEsme(carriers)
    await next.bind('receiver')
    await next.receipt(id)
    await until('nothing is owed', async () => (await simulator.counts()).owed.deliverSm === 0)
    assert.equal(next.received.length, 1)
    await next.end()
    await transmitter.end()
  })
})

test('sends an SMS from a phone as a deliver_sm', async () => {
  const next = await connectEsme(carriers)
  await next.bind()
  await simulator.call('POST', '/simulator/phones/+48500400140/reply', { number: '4850', text: 'Żółw' })
  const pdu = await until('it comes', () => next.received[0])
  assert.deepEqual([pdu.esm_class, pdu.source_addr, pdu.destination_addr, textOf(pdu)], [0, '48500400140', '4850', 'Żółw'])
  // 35 emoji are 70 units of UCS-2, the most that one SMS holds.
  const emoji = '😀'.repeat(35)
  await simulator.call('POST', '/simulator/phones/+48500400140/reply', { number: '4850', text: emoji })
  assert.equal(textOf(await until('it comes', () => next.received[1])), emoji)
  const { status, body } = await simulator.call('POST', '/simulator/phones/+48500400140/reply', { number: '4850', text: `${emoji}x` })
  assert.deepEqual([status, body.error.message], [400, 'An SMS of a phone may have at most 70 UTF-16 units.'])
  await next.end()
})

test('delivers an SMS at its time of delivery', async () => {
  const next = await connectEsme(carriers)
  await next.bind('transmitter')
  // To the tenth of a second, which is what the format has.
  const at = Math.ceil(Date.now() / 100) * 100 + 200
  const schedule = `${new Date(at).toISOString().replace(/\D/g, '').slice(2, 15)}00+`
  await next.submit({ destination_addr: '48500400150', schedule_delivery_time: schedule, registered_delivery: 0 })
  const deliveredAt = await until('it is delivered', async () => (await simulator.phone('+48500400150'))[0].deliveredAt)
  assert.ok(Date.parse(deliveredAt as string) >= at)
  next.session.destroy()
})

test('reads times with their offset from UTC in quarters of an hour', () => {
  assert.equal(timeOf('270301120000000+'), Date.UTC(2027, 2, 1, 12))
  assert.equal(timeOf('270301120000508+'), Date.UTC(2027, 2, 1, 10, 0, 0, 500))
  assert.equal(timeOf('270301120000004-'), Date.UTC(2027, 2, 1, 13))
  assert.ok(Math.abs((timeOf('000000010203000R') ?? 0) - Date.now() - 3_723_000) < 5000)
  for (const wrong of ['', '270301', '270230120000000+', '270301240000000+', '270301120000049+', '000000010000001R']) {
    assert.equal(timeOf(wrong), undefined)
  }
})

test('stops reading from a peer that does not read its responses, until the peer does', async () => {
  const idle: any = { leave: () => {} }
  const { server, stop } = createSmppServer({ identity: idle, faults: idle, outbox: idle, onSubmit: () => {} })
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  // The system buffers 200 KB for a socket of this kind, and megabytes for TCP.
  const path = `${createDataDir()}/smpp`
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const client = connect(path)
  const count = 60_000
  const enquiries = Buffer.alloc(count * 16)
  for (let index = 0; index < count; index++) {
    enquiries.writeUInt32BE(16, index * 16)
    enquiries.writeUInt32BE(0x15, index * 16 + 4)
    enquiries.writeUInt32BE(index + 1, index * 16 + 12)
  }
  client.write(enquiries)
  const progress: number[] = []
  await until('it stops reading', () => {
    progress.push(sockets[0]?.bytesRead ?? 0)
    return (progress.at(-1) ?? 0) > 0 && progress.at(-1) === progress.at(-20)
  })
  assert.ok((progress.at(-1) ?? 0) < (count * 16) / 2, `${progress.at(-1)} bytes were read`)
  let received = 0
  client.on('data', (chunk) => {
    received += chunk.length
  })
  await until('all have a response', () => received === count * 16)
  client.destroy()
  await stop()
})

test('sends enquire_link, and ends a session without a response', async (t) => {
  const idle: any = { leave: () => {} }
  // The other session responds in time, also on a busy machine.
  const { server, stop } = createSmppServer({ identity: idle, faults: idle, outbox: idle, onSubmit: () => {}, enquireEveryMs: 1_000 })
  t.after(stop)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const live = await connectEsme({ ...carriers, 'simulator-sms': { ...carriers['simulator-sms'], port } })
  let enquiries = 0
  live.session.on('enquire_link', () => enquiries++)
  const silent = connect(port, '127.0.0.1').resume()
  await new Promise((resolve) => silent.once('close', resolve))
  await until('the other gets enquiries', () => enquiries >= 2)
  assert.equal(live.state.closed, false)
})

describe('invalid SMPP:', () => {
  const head = (length: number, command: number) => {
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32BE(length, 0)
    bytes.writeUInt32BE(command, 4)
    bytes.writeUInt32BE(1, 12)
    return bytes
  }
  const submitCutShort = Buffer.concat([head(36, 4), Buffer.alloc(16), Buffer.from([200, 0x41, 0x41, 0x41])])
  const cases: [string, Buffer][] = [
    ['a length below that of a header', Buffer.from([0, 0, 0, 8, 0, 0, 0, 0])],
    ['a length of 0', Buffer.alloc(16)],
    ['a length of 2 GiB', Buffer.from([0x7f, 0xff, 0xff, 0xff])],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['a message longer than its PDU', submitCutShort],
  ]
  for (const [name, bytes] of cases) {
    test(`${name} ends its session, and no other`, async () => {
      const socket = connect(carriers['simulator-sms'].port, '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      socket.write(bytes)
      await new Promise((resolve) => socket.once('close', resolve))
      const other = await connectEsme(carriers)
      assert.equal((await other.bind()).command_status, 0)
      other.session.destroy()
    })
  }
})
