import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createFramer, MAX_PDU_OCTETS } from '../../../src/carriers/smpp/framing.ts'
import { decodePdu, encodePdu, NO_TLVS, type Pdu, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { cpuMs } from '../../support/cpu.ts'
import { foreign } from './foreign.ts'
import { part } from './support.ts'

const seed = Date.now() % 2 ** 31
const octet = fc.nat(255)
const sequence = fc.integer({ min: 1, max: 0x7fffffff })
const asciiField = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 20 })
const latinField = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 20 })
const buffer = (maxLength: number) => fc.uint8Array({ maxLength }).map((octets) => Buffer.from(octets))
const tlvs = fc.oneof(
  fc.constant(NO_TLVS),
  fc.array(fc.tuple(fc.nat(0xffff), buffer(300)), { maxLength: 4 }).map((list) => new Map(list)),
)
const common = { status: fc.constant(0), sequence, tlvs }

const message = (field: fc.Arbitrary<string>) => ({
  serviceType: field,
  sourceTon: octet,
  sourceNpi: octet,
  source: field,
  destinationTon: octet,
  destinationNpi: octet,
  destination: field,
  esmClass: octet,
  protocolId: octet,
  priority: octet,
  scheduleTime: field,
  validityPeriod: field,
  registeredDelivery: octet,
  replaceIfPresent: octet,
  dataCoding: octet,
  defaultMessageId: octet,
  shortMessage: buffer(254),
})
const bindFields = (field: fc.Arbitrary<string>) => ({
  systemId: field,
  password: field,
  systemType: field,
  interfaceVersion: octet,
  addressTon: octet,
  addressNpi: octet,
  addressRange: field,
})
const anyPdu = (field: fc.Arbitrary<string>): fc.Arbitrary<Pdu> =>
  fc
    .oneof(
      fc.record({ command: fc.constant('bind_transceiver' as const), ...common, ...bindFields(field) }),
      fc.record({ command: fc.constantFrom('submit_sm', 'deliver_sm'), ...common, ...message(field) }),
      fc.record({ command: fc.constant('bind_transceiver_resp' as const), ...common, systemId: field }),
      fc.record({ command: fc.constantFrom('submit_sm_resp', 'deliver_sm_resp'), ...common, messageId: field }),
      fc.record({ command: fc.constantFrom('enquire_link', 'enquire_link_resp', 'unbind', 'unbind_resp', 'generic_nack'), ...common }),
    )
    // Records have no prototype, what is read has one.
    .map((pdu) => ({ ...pdu }) as Pdu)

/** The names of the package for our fields. */
const NAMES = new Map(
  Object.entries({
    serviceType: 'service_type',
    sourceTon: 'source_addr_ton',
    sourceNpi: 'source_addr_npi',
    source: 'source_addr',
    destinationTon: 'dest_addr_ton',
    destinationNpi: 'dest_addr_npi',
    destination: 'destination_addr',
    esmClass: 'esm_class',
    protocolId: 'protocol_id',
    priority: 'priority_flag',
    registeredDelivery: 'registered_delivery',
    replaceIfPresent: 'replace_if_present_flag',
    defaultMessageId: 'sm_default_msg_id',
    dataCoding: 'data_coding',
    systemId: 'system_id',
    password: 'password',
    systemType: 'system_type',
    interfaceVersion: 'interface_version',
    addressTon: 'addr_ton',
    addressNpi: 'addr_npi',
    addressRange: 'address_range',
    messageId: 'message_id',
    sequence: 'sequence_number',
    status: 'command_status',
    command: 'command',
  }),
)
/** Those that the package hands on as they are; it turns times into dates, and messages into texts. */
const plainFields = (pdu: Pdu) =>
  Object.entries(pdu).flatMap(([name, value]) => {
    const theirs = NAMES.get(name)
    return theirs === undefined ? [] : [[theirs, value] as const]
  })

function cutTo(octets: Buffer, length: number): Buffer {
  const cut = Buffer.from(octets.subarray(0, length))
  cut.writeUInt32BE(length, 0)
  return cut
}

describe(`the SMPP codec (fast-check, seed ${seed})`, () => {
  test('reads back every PDU that it writes', () => {
    fc.assert(
      fc.property(anyPdu(latinField), (pdu) => {
        assert.deepEqual(decodePdu(encodePdu(pdu)), { is: 'pdu', pdu })
      }),
      { numRuns: 1_000, seed },
    )
  })

  test('writes what another implementation reads', () => {
    fc.assert(
      fc.property(anyPdu(asciiField), (pdu) => {
        const readable = 'shortMessage' in pdu ? { ...pdu, scheduleTime: '', validityPeriod: '', dataCoding: 4, esmClass: 0 } : pdu
        const tlvs = new Map([[0x001e, Buffer.from('abc\0')]])
        const theirs = new foreign.PDU(encodePdu({ ...readable, tlvs } as Pdu))
        for (const [name, value] of plainFields(readable)) assert.deepEqual(theirs[name], value, name)
        if ('shortMessage' in readable) assert.deepEqual(theirs.short_message.message, readable.shortMessage)
        assert.equal(theirs.receipted_message_id, 'abc')
      }),
      { numRuns: 500, seed },
    )
  })

  test('reads what another implementation writes', () => {
    fc.assert(
      fc.property(anyPdu(asciiField), asciiField, octet, (pdu, id, state) => {
        const fields = Object.fromEntries(plainFields(pdu))
        const extra = 'shortMessage' in pdu ? { short_message: pdu.shortMessage } : {}
        const theirs = new foreign.PDU(pdu.command, { ...fields, ...extra, receipted_message_id: id, message_state: state }).toBuffer()
        const times = 'shortMessage' in pdu ? { scheduleTime: '', validityPeriod: '' } : {}
        const tlvs = new Map([
          [0x001e, Buffer.from(`${id}\0`)],
          [0x0427, Buffer.from([state])],
        ])
        assert.deepEqual(decodePdu(theirs), { is: 'pdu', pdu: { ...pdu, ...times, tlvs } })
      }),
      { numRuns: 500, seed },
    )
  })

  test('a refusal has no body, and is read without one', () => {
    const refusal = encodePdu({ command: 'submit_sm_resp', status: 0x58, sequence: 7, tlvs: NO_TLVS, messageId: 'x' })
    assert.equal(refusal.toString('hex'), '00000010800000040000005800000007')
    assert.deepEqual(decodePdu(refusal), {
      is: 'pdu',
      pdu: { command: 'submit_sm_resp', status: 0x58, sequence: 7, tlvs: new Map(), messageId: '' },
    })
  })

  test('no text gets out of its field', () => {
    const hostile = 'a\0b\u0100c\u2000d'
    const octets = encodePdu({ command: 'deliver_sm_resp', status: 0, sequence: 1, tlvs: NO_TLVS, messageId: hostile })
    assert.equal(octets.subarray(16).toString('latin1'), 'a?b?c?d\0')
  })

  test('a request that was cut short in its fields is an error value', () => {
    const whole = encodePdu({ ...(submitSm(part()) as PduOf<'submit_sm'>), sequence: 9 })
    for (let length = 16; length < whole.length; length += 1) {
      const decoded = decodePdu(cutTo(whole, length))
      assert.ok(decoded.is === 'broken' && decoded.sequence === 9 && decoded.commandId === 0x00000004, `cut to ${length}`)
    }
    assert.equal(decodePdu(whole.subarray(0, 18)).is, 'broken', 'its length is not what it says')
    assert.equal(decodePdu(Buffer.alloc(3)).is, 'broken')
    assert.deepEqual(decodePdu(Buffer.from('00000010000001030000000000000005', 'hex')), { is: 'unfamiliar', commandId: 0x103, sequence: 5 })
  })

  test('an answer that was cut short is read as far as it goes', () => {
    const answer = { command: 'submit_sm_resp', status: 0, sequence: 9, messageId: 'id' } as const
    const whole = encodePdu({ ...answer, tlvs: new Map([[1, Buffer.from('xyz')]]) })
    for (let length = 16; length < whole.length; length += 1) {
      const messageId = 'id'.slice(0, length - 16)
      assert.deepEqual(decodePdu(cutTo(whole, length)), { is: 'pdu', pdu: { ...answer, messageId, tlvs: NO_TLVS } }, `cut to ${length}`)
    }
  })

  test('optional fields are read up to the first that is not one', () => {
    const pdu = { ...(submitSm(part()) as PduOf<'submit_sm'>), command: 'deliver_sm' as const, sequence: 9 }
    const good = [0x001e, Buffer.from('zz\0')] as const
    const whole = encodePdu({ ...pdu, tlvs: new Map([good, [0x0427, Buffer.from([2])]]) })
    for (let octets = 1; octets <= 4; octets += 1) {
      assert.deepEqual(decodePdu(cutTo(whole, whole.length - octets)), { is: 'pdu', pdu: { ...pdu, tlvs: new Map([good]) } })
    }
    const liar = Buffer.from(whole)
    liar.writeUInt16BE(0xffff, whole.length - 3)
    assert.deepEqual(decodePdu(liar), { is: 'pdu', pdu: { ...pdu, tlvs: new Map([good]) } })
  })

  test('whatever follows the header of an answer, the answer is read', () => {
    const commandId = fc.constantFrom(0x80000009, 0x80000004, 0x80000005, 0x80000015, 0x80000006, 0x80000000)
    fc.assert(
      fc.property(commandId, sequence, octet, buffer(60), (id, number, status, body) => {
        const octets = Buffer.concat([Buffer.alloc(16), body])
        for (const [index, value] of [octets.length, id, status, number].entries()) octets.writeUInt32BE(value, 4 * index)
        const decoded = decodePdu(octets)
        assert.ok(decoded.is === 'pdu' && decoded.pdu.status === status && decoded.pdu.sequence === number)
      }),
      { numRuns: 500, seed },
    )
  })

  test('10,000 damaged PDUs: each gives a value, in no time', () => {
    const damaged = fc
      .tuple(anyPdu(latinField), fc.array(fc.tuple(fc.nat(600), octet), { maxLength: 6 }), fc.nat(40))
      .map(([pdu, changes, cut]) => {
        const octets = encodePdu(pdu)
        for (const [at, value] of changes) octets[at % octets.length] = value
        const shorter = octets.subarray(0, Math.max(16, octets.length - (cut > 20 ? cut : 0)))
        if (cut % 2 === 0) shorter.writeUInt32BE(shorter.length, 0)
        return shorter
      })
    const noise = buffer(400).map((octets) => {
      if (octets.length >= 8) octets.writeUInt32BE(octets.length, 0)
      return octets
    })
    const outcomes = new Map<string, number>()
    fc.assert(
      fc.property(fc.oneof({ weight: 4, arbitrary: damaged }, { weight: 1, arbitrary: noise }), (octets) => {
        const { is } = decodePdu(octets)
        outcomes.set(is, (outcomes.get(is) ?? 0) + 1)
        const { frames } = createFramer().take(octets)
        assert.ok(frames.every((frame) => frame.length <= octets.length))
      }),
      { numRuns: 10_000, seed },
    )
    assert.deepEqual([...outcomes.keys()].sort(), ['broken', 'pdu', 'unfamiliar'], 'the fuzz reaches every outcome')
  })
})

describe(`the framing (fast-check, seed ${seed})`, () => {
  test('however the stream is cut, the same PDUs come out of it', () => {
    const stream = fc.array(anyPdu(latinField), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(stream, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 20 }), (pdus, sizes) => {
        const octets = Buffer.concat(pdus.map(encodePdu))
        const framer = createFramer()
        const read: unknown[] = []
        for (let from = 0, turn = 0; from < octets.length; turn += 1) {
          const size = sizes[turn % sizes.length] as number
          // As a socket does, in memory that is used again for the next chunk.
          const chunk = Buffer.from(octets.subarray(from, from + size))
          read.push(...framer.take(chunk).frames.map(decodePdu))
          chunk.fill(0xee)
          from += size
        }
        assert.deepEqual(
          read,
          pdus.map((pdu) => ({ is: 'pdu', pdu })),
        )
      }),
      { numRuns: 300, seed },
    )
  })

  test('a length below the header or above all sense is a fault, and what came before it still counts', () => {
    const good = encodePdu({ command: 'enquire_link', status: 0, sequence: 1, tlvs: NO_TLVS })
    for (const length of [0, 15, MAX_PDU_OCTETS + 1, 0xffffffff]) {
      const liar = Buffer.alloc(4)
      liar.writeUInt32BE(length, 0)
      const { frames, fault } = createFramer().take(Buffer.concat([good, liar]))
      assert.deepEqual(frames, [good])
      assert.ok(fault !== undefined, `${length}`)
    }
  })

  test('the longest PDU, octet by octet, costs no more than its octets', () => {
    const octets = Buffer.alloc(MAX_PDU_OCTETS)
    octets.writeUInt32BE(MAX_PDU_OCTETS, 0)
    const framer = createFramer()
    let frames: Buffer[] = []
    const tookMs = cpuMs(() => {
      for (let at = 0; at < octets.length; at += 1) frames = framer.take(octets.subarray(at, at + 1)).frames
    })
    assert.equal(frames[0]?.length, MAX_PDU_OCTETS)
    // Copied anew with each octet it would be 2.4 GB.
    assert.ok(tookMs < 500, `${tookMs} ms`)
  })
})
