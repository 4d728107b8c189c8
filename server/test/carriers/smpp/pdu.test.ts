import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createFramer, MAX_PDU_OCTETS } from '../../../src/carriers/smpp/framing.ts'
import { decodePdu, encodePdu, NO_TLVS, type Pdu, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { cpuMs } from '../../support/cpu.ts'
import { foreign } from './foreign.ts'
import { smsSegment } from './support.ts'

const seed = Date.now() % 2 ** 31
const octet = fc.nat(255)
const sequence = fc.integer({ min: 1, max: 0x7fffffff })
const field = (maxCode: number) =>
  fc.string({ unit: fc.integer({ min: 0x20, max: maxCode }).map((code) => String.fromCharCode(code)), maxLength: 20 })
const ascii = field(0x7e)
const latin = field(0xff)
const buffer = (maxLength: number) => fc.uint8Array({ maxLength }).map((octets) => Buffer.from(octets))
const tlvs = fc.oneof(
  fc.constant(NO_TLVS),
  fc.array(fc.tuple(fc.nat(0xffff), buffer(300)), { maxLength: 4 }).map((list) => new Map(list)),
)

/** Our names of the fields that the package returns unchanged, and the package's. It turns times into dates, and messages into texts. */
const NAMES = new Map(
  `command:command status:command_status sequence:sequence_number messageId:message_id systemId:system_id password:password
  systemType:system_type interfaceVersion:interface_version addressTon:addr_ton addressNpi:addr_npi addressRange:address_range
  serviceType:service_type sourceTon:source_addr_ton sourceNpi:source_addr_npi source:source_addr destinationTon:dest_addr_ton
  destinationNpi:dest_addr_npi destination:destination_addr esmClass:esm_class protocolId:protocol_id priority:priority_flag
  registeredDelivery:registered_delivery replaceIfPresent:replace_if_present_flag defaultMessageId:sm_default_msg_id dataCoding:data_coding`
    .split(/\s+/)
    .map((pair) => pair.split(':') as [string, string]),
)
const BIND_TEXTS = ['systemId', 'password', 'systemType', 'addressRange']
const BIND_OCTETS = ['interfaceVersion', 'addressTon', 'addressNpi']
const MESSAGE_TEXTS = ['serviceType', 'source', 'destination', 'scheduleTime', 'validityPeriod']
const ADDRESS_OCTETS = ['sourceTon', 'sourceNpi', 'destinationTon', 'destinationNpi']
const FLAG_OCTETS = ['esmClass', 'protocolId', 'priority', 'registeredDelivery', 'replaceIfPresent', 'dataCoding', 'defaultMessageId']

/** PDUs of these commands with these fields. */
function pduOf(commands: string[], text: fc.Arbitrary<string>, texts: string[] = [], octets: string[] = [], more = {}): fc.Arbitrary<Pdu> {
  const fields = [...texts.map((name) => [name, text]), ...octets.map((name) => [name, octet])]
  const common = { command: fc.constantFrom(...commands), status: fc.constant(0), sequence, tlvs }
  // Records have no prototype, and decoded PDUs have one.
  return fc.record({ ...common, ...Object.fromEntries(fields), ...more }).map((pdu) => ({ ...pdu }) as Pdu)
}

const anyPdu = (text: fc.Arbitrary<string>): fc.Arbitrary<Pdu> =>
  fc.oneof(
    pduOf(['bind_transceiver'], text, BIND_TEXTS, BIND_OCTETS),
    pduOf(['submit_sm', 'deliver_sm'], text, MESSAGE_TEXTS, [...ADDRESS_OCTETS, ...FLAG_OCTETS], { shortMessage: buffer(254) }),
    pduOf(['bind_transceiver_resp'], text, ['systemId']),
    pduOf(['submit_sm_resp', 'deliver_sm_resp'], text, ['messageId']),
    pduOf(['enquire_link', 'enquire_link_resp', 'unbind', 'unbind_resp', 'generic_nack'], text),
  )

const plainFields = (pdu: Pdu) => Object.entries(pdu).flatMap(([name, value]) => (NAMES.has(name) ? [[NAMES.get(name), value]] : []))

/** Fails if the property does not hold for some PDU. */
function check(numRuns: number, property: fc.IRawProperty<any>): void {
  fc.assert(property as any, { numRuns, seed })
}

function cutTo(octets: Buffer, length: number): Buffer {
  const cut = Buffer.from(octets.subarray(0, length))
  cut.writeUInt32BE(length, 0)
  return cut
}

describe(`the SMPP codec (fast-check, seed ${seed})`, () => {
  test('decodes every PDU that it encodes', () => {
    check(
      1_000,
      fc.property(anyPdu(latin), (pdu) => assert.deepEqual(decodePdu(encodePdu(pdu)), { is: 'pdu', pdu })),
    )
  })

  test('encodes what another implementation decodes', () => {
    check(
      500,
      fc.property(anyPdu(ascii), (pdu) => {
        const readable = 'shortMessage' in pdu ? { ...pdu, scheduleTime: '', validityPeriod: '', dataCoding: 4, esmClass: 0 } : pdu
        const theirs = new foreign.PDU(encodePdu({ ...readable, tlvs: new Map([[0x001e, Buffer.from('abc\0')]]) } as Pdu))
        for (const [name, value] of plainFields(readable)) assert.deepEqual(theirs[name as string], value, name as string)
        if ('shortMessage' in readable) assert.deepEqual(theirs.short_message.message, readable.shortMessage)
        assert.equal(theirs.receipted_message_id, 'abc')
      }),
    )
  })

  test('decodes what another implementation encodes', () => {
    check(
      500,
      fc.property(anyPdu(ascii), ascii, octet, (pdu, id, state) => {
        const [message, times] =
          'shortMessage' in pdu ? [{ short_message: pdu.shortMessage }, { scheduleTime: '', validityPeriod: '' }] : []
        const fields = { ...Object.fromEntries(plainFields(pdu)), ...message, receipted_message_id: id, message_state: state }
        const theirs = new foreign.PDU(pdu.command, fields).toBuffer()
        const expected = new Map([
          [0x001e, Buffer.from(`${id}\0`)],
          [0x0427, Buffer.from([state])],
        ])
        assert.deepEqual(decodePdu(theirs), { is: 'pdu', pdu: { ...pdu, ...times, tlvs: expected } })
      }),
    )
  })

  test('encodes a refusal without a body, and decodes it', () => {
    const refusal = { command: 'submit_sm_resp', status: 0x58, sequence: 7, tlvs: NO_TLVS } as const
    const octets = encodePdu({ ...refusal, messageId: 'x' })
    assert.equal(octets.toString('hex'), '00000010800000040000005800000007')
    assert.deepEqual(decodePdu(octets), { is: 'pdu', pdu: { ...refusal, tlvs: new Map(), messageId: '' } })
  })

  test('replaces characters that would end a text or its octet', () => {
    const messageId = 'a\0b\u0100c\u2000d'
    const octets = encodePdu({ command: 'deliver_sm_resp', status: 0, sequence: 1, tlvs: NO_TLVS, messageId })
    assert.equal(octets.subarray(16).toString('latin1'), 'a?b?c?d\0')
  })

  test('reports a truncated request as broken, and an unknown command as unfamiliar', () => {
    const whole = encodePdu({ ...(submitSm(smsSegment()) as PduOf<'submit_sm'>), sequence: 9 })
    for (let length = 16; length < whole.length; length += 1) {
      const decoded = decodePdu(cutTo(whole, length))
      assert.ok(decoded.is === 'broken' && decoded.sequence === 9 && decoded.commandId === 0x00000004, `cut to ${length}`)
    }
    assert.equal(decodePdu(whole.subarray(0, 18)).is, 'broken', 'its length field differs from its length')
    assert.equal(decodePdu(Buffer.alloc(3)).is, 'broken')
    assert.deepEqual(decodePdu(Buffer.from('00000010000001030000000000000005', 'hex')), { is: 'unfamiliar', commandId: 0x103, sequence: 5 })
  })

  test('decodes a truncated response as far as it goes', () => {
    const response = { command: 'submit_sm_resp', status: 0, sequence: 9, messageId: 'id' } as const
    const whole = encodePdu({ ...response, tlvs: new Map([[1, Buffer.from('xyz')]]) })
    for (let length = 16; length < whole.length; length += 1) {
      const messageId = 'id'.slice(0, length - 16)
      assert.deepEqual(decodePdu(cutTo(whole, length)), { is: 'pdu', pdu: { ...response, messageId, tlvs: NO_TLVS } }, `cut to ${length}`)
    }
  })

  test('decodes TLVs up to the first broken one', () => {
    const pdu = { ...(submitSm(smsSegment()) as PduOf<'submit_sm'>), command: 'deliver_sm' as const, sequence: 9 }
    const good = [0x001e, Buffer.from('zz\0')] as const
    const whole = encodePdu({ ...pdu, tlvs: new Map([good, [0x0427, Buffer.from([2])]]) })
    const tooLong = Buffer.from(whole)
    tooLong.writeUInt16BE(0xffff, whole.length - 3)
    for (const octets of [tooLong, ...[1, 2, 3, 4].map((missing) => cutTo(whole, whole.length - missing))]) {
      assert.deepEqual(decodePdu(octets), { is: 'pdu', pdu: { ...pdu, tlvs: new Map([good]) } })
    }
  })

  test('decodes the header of a response, whatever follows it', () => {
    const commandId = fc.constantFrom(0x80000009, 0x80000004, 0x80000005, 0x80000015, 0x80000006, 0x80000000)
    check(
      500,
      fc.property(commandId, sequence, octet, buffer(60), (id, number, status, body) => {
        const octets = Buffer.concat([Buffer.alloc(16), body])
        for (const [index, value] of [octets.length, id, status, number].entries()) octets.writeUInt32BE(value, 4 * index)
        const decoded = decodePdu(octets)
        assert.ok(decoded.is === 'pdu' && decoded.pdu.status === status && decoded.pdu.sequence === number)
      }),
    )
  })

  test('returns a value for each of 10,000 damaged PDUs', () => {
    const damaged = fc
      .tuple(anyPdu(latin), fc.array(fc.tuple(fc.nat(600), octet), { maxLength: 6 }), fc.nat(40))
      .map(([pdu, changes, cut]) => {
        const octets = encodePdu(pdu)
        for (const [at, value] of changes) octets[at % octets.length] = value
        const shorter = octets.subarray(0, Math.max(16, octets.length - (cut > 20 ? cut : 0)))
        return cut % 2 === 0 ? cutTo(shorter, shorter.length) : shorter
      })
    const noise = buffer(400).map((octets) => (octets.length >= 8 ? cutTo(octets, octets.length) : octets))
    const results = new Set<string>()
    check(
      10_000,
      fc.property(fc.oneof({ weight: 4, arbitrary: damaged }, { weight: 1, arbitrary: noise }), (octets) => {
        results.add(decodePdu(octets).is)
        assert.ok(
          createFramer()
            .push(octets)
            .frames.every((frame) => frame.length <= octets.length),
        )
      }),
    )
    assert.deepEqual(results, new Set(['broken', 'pdu', 'unfamiliar']), 'the damage reaches every result')
  })
})

describe(`the framing (fast-check, seed ${seed})`, () => {
  test('finds the same PDUs however the stream is cut', () => {
    const stream = fc.array(anyPdu(latin), { minLength: 1, maxLength: 12 })
    check(
      300,
      fc.property(stream, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 20 }), (pdus, sizes) => {
        const octets = Buffer.concat(pdus.map(encodePdu))
        const framer = createFramer()
        const decoded: unknown[] = []
        for (let from = 0, turn = 0; from < octets.length; turn += 1) {
          const size = sizes[turn % sizes.length] as number
          // A socket uses the memory of a chunk again for the next one.
          const chunk = Buffer.from(octets.subarray(from, from + size))
          decoded.push(...framer.push(chunk).frames.map(decodePdu))
          chunk.fill(0xee)
          from += size
        }
        assert.deepEqual(
          decoded,
          pdus.map((pdu) => ({ is: 'pdu', pdu })),
        )
      }),
    )
  })

  test('reports an impossible length after the PDUs before it', () => {
    const good = encodePdu({ command: 'enquire_link', status: 0, sequence: 1, tlvs: NO_TLVS })
    for (const length of [0, 15, MAX_PDU_OCTETS + 1, 0xffffffff]) {
      const impossible = Buffer.alloc(4)
      impossible.writeUInt32BE(length, 0)
      const { frames, fault } = createFramer().push(Buffer.concat([good, impossible]))
      assert.deepEqual(frames, [good])
      assert.ok(fault !== undefined, `${length}`)
    }
  })

  test('copies the octets of the longest PDU once, even if they come one by one', () => {
    const octets = cutTo(Buffer.alloc(MAX_PDU_OCTETS), MAX_PDU_OCTETS)
    const framer = createFramer()
    let frames: Buffer[] = []
    const tookMs = cpuMs(() => {
      for (let at = 0; at < octets.length; at += 1) frames = framer.push(octets.subarray(at, at + 1)).frames
    })
    assert.equal(frames[0]?.length, MAX_PDU_OCTETS)
    // Copied anew with each octet it would be 2.4 GB.
    assert.ok(tookMs < 500, `${tookMs} ms`)
  })
})
