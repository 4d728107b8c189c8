import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { eventOf } from '../../../src/carriers/smpp/deliver-sm.ts'
import { normaliseMessageId, readingsOf } from '../../../src/carriers/smpp/message-ids.ts'
import { NO_TLVS, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { cpuMs } from '../../support/cpu.ts'
import { smsSegment } from './support.ts'

const seed = Date.now() % 2 ** 31
const MESSAGE_ID = 0x001e
const MESSAGE_STATE = 0x0427
const NETWORK_ERROR = 0x0423
const PAYLOAD = 0x0424

type Changes = Partial<Omit<PduOf<'deliver_sm'>, 'shortMessage' | 'tlvs'>> & { text?: string | Buffer; tlvs?: [number, Buffer][] }

/** The event of a deliver_sm from 48500100200 to 48600. */
function read({ text = '', tlvs, ...changes }: Changes): any {
  const addresses = { sourceTon: 1, sourceNpi: 1, source: '48500100200', destination: '48600' }
  const fields = { command: 'deliver_sm', sequence: 1, esmClass: 0, dataCoding: 0, ...addresses, ...changes } as const
  const shortMessage = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  const pdu = {
    ...(submitSm(smsSegment()) as PduOf<'submit_sm'>),
    ...fields,
    shortMessage,
    tlvs: tlvs === undefined ? NO_TLVS : new Map(tlvs),
  }
  return eventOf(pdu, 'net')
}
const receipt = (text: string, changes: Changes = {}) => read({ esmClass: 0x04, text, ...changes })

describe('a receipt', () => {
  test('is read in full', () => {
    const before = Date.now()
    const { eventId, occurredAt, ...rest } = receipt(
      'id:zz-17 sub:001 dlvrd:001 submit date:2601021504 done date:2601021505 stat:DELIVRD err:000 text:Hello',
    )
    assert.ok(occurredAt.getTime() >= before && occurredAt.getTime() <= Date.now())
    assert.match(eventId, /^receipt-[\w-]{43}$/)
    const expected = { carrier: 'net', phone: '+48500100200', kind: 'sms-delivered', carrierMessageIds: ['zz-17'], detail: 'DELIVRD' }
    assert.deepEqual(rest, expected)
  })

  test('is understood in every spelling', () => {
    for (const [text, kind, detail] of [
      ['id:zz sub:001 dlvrd:001 submit date:260102150405 done date:260102150406 stat:DELIVRD err:000 Text:Hi', 'sms-delivered', 'DELIVRD'],
      ['Id:zz Sub:001 Dlvrd:001 Submit Date:2601021504 Done Date:2601021505 Stat:DELIVRD Err:000 Text:', 'sms-delivered', 'DELIVRD'],
      ['ID:zz STAT:delivrd', 'sms-delivered', 'DELIVRD'],
      ['id: zz stat: DELIVERED', 'sms-delivered', 'DELIVERED'],
      ['id:zz submit_date:2601021504 done_date:2601021505 stat:UNDELIV err:027', 'sms-failed', 'UNDELIV, error 027'],
      ['id:zz stat:EXPIRED err:0', 'sms-failed', 'EXPIRED'],
      ['id:zz stat:DELETED', 'sms-failed', 'DELETED'],
      ['id:zz stat:REJECTD err:1A text:', 'sms-failed', 'REJECTD, error 1A'],
      ['id:zz stat:FAILED', 'sms-failed', 'FAILED'],
      ['id:zz stat:ACCEPTD', 'sms-underway', 'ACCEPTD'],
      ['id:zz stat:ENROUTE', 'sms-underway', 'ENROUTE'],
      ['id:zz stat:UNKNOWN', 'sms-underway', 'UNKNOWN'],
      ['id:zz stat:WHATEVER', 'sms-underway', 'WHATEVER'],
      ['stat:DELIVRD id:zz', 'sms-delivered', 'DELIVRD'],
      ['id:zz err: stat:UNDELIV', 'sms-failed', 'UNDELIV'],
      ['id:zz route:7 stat:UNDELIV price:0.1', 'sms-failed', 'UNDELIV'],
      ['id:zz', 'sms-underway', 'no state'],
      ['  id:zz\r\nstat:DELIVRD', 'sms-delivered', 'DELIVRD'],
      // The quoted text of the message is not part of the receipt.
      ['id:zz stat:UNDELIV err:001 text:id:other stat:DELIVRD at 12:30', 'sms-failed', 'UNDELIV, error 001'],
      ['id:zz text:my parcel stat:DELIVRD err:999', 'sms-underway', 'no state'],
    ] as const) {
      const event = receipt(text)
      assert.deepEqual([event.kind, event.detail, event.carrierMessageIds], [kind, detail, ['zz']], text)
    }
  })

  test('is understood with every separator, and with its id in quotes or marked as hexadecimal', () => {
    for (const [text, kind, ids] of [
      ['id:8 stat:DELIVRD\0', 'sms-delivered', ['8']],
      ['id:8 stat:UNDELIV\0id:9 stat:DELIVRD', 'sms-failed', ['8']],
      ['id:6 stat:DELIVRD;', 'sms-delivered', ['6']],
      ['id:6;stat:DELIVRD;err:000;', 'sms-delivered', ['6']],
      ['id:3,stat:DELIVRD,err:0', 'sms-delivered', ['3']],
      ['id:0xA stat:DELIVRD', 'sms-delivered', ['0xA', 'a', '10']],
      ['id:"4" stat:"DELIVRD"', 'sms-delivered', ['4']],
    ] as const) {
      for (const esmClass of [0x04, 0x00]) {
        const event = read({ esmClass, text })
        assert.deepEqual([event.kind, event.carrierMessageIds], [kind, ids], `${text} in ${esmClass}`)
      }
    }
    assert.equal(receipt('id:3,stat:DELIVRD,err:0').detail, 'DELIVRD')
  })

  test('has an id of at most 255 characters', () => {
    const longest = 'z'.repeat(255)
    assert.deepEqual(receipt(`id:${longest} stat:DELIVRD`).carrierMessageIds, [longest])
    assert.equal(receipt(`id:${longest}z stat:DELIVRD`).kind, 'unknown')
    const tlvs: Changes['tlvs'] = [[MESSAGE_ID, Buffer.from(`${longest}z`)]]
    assert.deepEqual(receipt('id:zz stat:DELIVRD', { tlvs }).carrierMessageIds, ['zz'])
  })

  test('has its id and state in TLVs, which take precedence over the text', () => {
    const id: [number, Buffer] = [MESSAGE_ID, Buffer.from('zz\0')]
    const failed: Changes['tlvs'] = [id, [MESSAGE_STATE, Buffer.from([5])], [NETWORK_ERROR, Buffer.from([3, 4, 3])]]
    for (const [event, ids] of [
      [receipt('', { tlvs: failed }), ['zz']],
      [receipt('id:yy stat:DELIVRD', { tlvs: failed }), ['zz', 'yy']],
      [read({ tlvs: failed }), ['zz']],
    ]) {
      assert.deepEqual([event.kind, event.carrierMessageIds, event.detail], ['sms-failed', ids, 'UNDELIV, network error 3:1027'])
    }
    assert.deepEqual(receipt('', { tlvs: [[MESSAGE_ID, Buffer.from('zz')]] }).carrierMessageIds, ['zz'], 'without its NUL')
    for (const [kind, states] of Object.entries({ 'sms-underway': [0, 1, 6, 7, 77], 'sms-delivered': [2], 'sms-failed': [3, 4, 8, 9] })) {
      for (const state of states)
        assert.equal(receipt('', { tlvs: [id, [MESSAGE_STATE, Buffer.from([state])]] }).kind, kind, `state ${state}`)
    }
  })

  test('means that the message is underway if it is an intermediate one', () => {
    for (const text of ['id:zz stat:ENROUTE', 'id:zz stat:UNDELIV err:001'])
      assert.equal(read({ esmClass: 0x20, text }).kind, 'sms-underway')
  })

  test('is recognised by its text alone, unlike a reply that mentions an id', () => {
    assert.equal(read({ text: 'id:zz sub:001 dlvrd:001 stat:DELIVRD err:000 text:' }).kind, 'sms-delivered')
    for (const text of ['my id:zz stat:DELIVRD', 'id:zz', 'id: stat:DELIVRD', 'id:zz stat:fine', 'stat:DELIVRD id:zz']) {
      assert.deepEqual(read({ text }).kind, 'wrote', text)
    }
  })

  test('is read as ASCII with any coding, and as UTF-16 with that of UCS-2', () => {
    assert.deepEqual(receipt('id:a_z@x stat:DELIVRD', { dataCoding: 0 }).carrierMessageIds, ['a_z@x'])
    const wide = Buffer.from('id:zz stat:DELIVRD', 'utf16le').swap16()
    assert.equal(read({ esmClass: 0x04, dataCoding: 8, text: wide }).kind, 'sms-delivered')
  })

  test('is of an unknown kind without an id', () => {
    for (const text of ['', 'gibberish', 'stat:DELIVRD', 'id: stat:DELIVRD']) {
      assert.deepEqual([receipt(text).kind, receipt(text).description], ['unknown', 'an SMS receipt without an id'], text)
    }
  })

  test('has the same event id when it is repeated, and another when anything differs', () => {
    const text = 'id:zz stat:DELIVRD done date:2601021505'
    assert.equal(receipt(text, { sequence: 1 }).eventId, receipt(text, { sequence: 99 }).eventId)
    const others = [
      receipt('id:zz stat:DELIVRD done date:2601021506'),
      receipt('id:zy stat:DELIVRD done date:2601021505'),
      receipt(text, { source: '48500100201' }),
      receipt(text, { tlvs: [[MESSAGE_STATE, Buffer.from([2])]] }),
    ]
    assert.equal(new Set([receipt(text), ...others].map(({ eventId }) => eventId)).size, 5)
  })

  test('has the phone number with a plus, however the network writes it', () => {
    const numbers = ['48500100200', '+48500100200', '0048500100200', 'Herald', '']
    assert.deepEqual(
      numbers.map((source) => receipt('id:zz stat:DELIVRD', { source }).phone),
      ['+48500100200', '+48500100200', '+48500100200', '', ''],
    )
  })
})

describe(`a message id (fast-check, seed ${seed})`, () => {
  test('is read as received, and as hexadecimal or decimal if it can be', () => {
    for (const readings of [
      ['255', '597', 'ff'],
      ['00000A3F', 'a3f', '2623'],
      ['2623', '9763', 'a3f'],
      ['0'],
      ['000', '0'],
      ['7'],
      ['ffffffffffffffff', '18446744073709551615'],
      ['zz-17'],
      ['0b9c3c1e-1111-4222-8333-444455556666'],
      ['1'.repeat(65)],
    ]) {
      assert.deepEqual(readingsOf(readings[0] as string), readings)
    }
  })

  test('of the response matches that of the receipt, however the network writes the number in each', () => {
    const spell = fc.constantFrom<(value: bigint) => string>(
      (value) => value.toString(),
      (value) => value.toString(16),
      (value) => value.toString(16).toUpperCase(),
      (value) => value.toString(16).padStart(16, '0'),
      (value) => `0x${value.toString(16)}`,
      (value) => `0X${value.toString(16).toUpperCase()}`,
      (value) => value.toString().padStart(20, '0'),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), spell, spell, (value, inResponse, inReceipt) => {
        assert.ok(readingsOf(inReceipt(value)).includes(normaliseMessageId(inResponse(value))))
      }),
      { numRuns: 500, seed },
    )
  })
})

describe(`a reply (fast-check, seed ${seed})`, () => {
  test('has the phone, the sender number, and the text in its coding', () => {
    for (const [dataCoding, octets, text] of [
      [0, '486900021b65', 'Hi@$€'],
      [1, '48695f40', 'Hi_@'],
      [3, '48e9df', 'Héß'],
      [8, '017c00f3d83dde00', 'żó😀'],
      [8, '017c00', 'ż'],
      [0, '', ''],
      // What PostgreSQL cannot store is replaced.
      [1, '610062', 'a\ufffdb'],
      [8, 'd83d0041', '\ufffdA'],
    ] as const) {
      const event = read({ dataCoding, text: Buffer.from(octets, 'hex'), destination: '+48600' })
      assert.deepEqual([event.kind, event.phone, event.senderNumber, event.text], ['wrote', '+48500100200', '48600', text])
    }
  })

  test('has a new event id each time', () => {
    assert.notEqual(read({ text: 'STOP' }).eventId, read({ text: 'STOP' }).eventId)
  })

  test('may have a header, and its text in a TLV', () => {
    const octets = Buffer.from('050003ab02014869', 'hex')
    assert.equal(read({ esmClass: 0x40, text: octets }).text, 'Hi')
    assert.equal(read({ esmClass: 0x40, tlvs: [[PAYLOAD, octets]] }).text, 'Hi')
    assert.equal(read({ tlvs: [[PAYLOAD, Buffer.from('long'.repeat(100))]] }).text, 'long'.repeat(100))
    assert.equal(read({ esmClass: 0x40, text: Buffer.from([200, 1, 2]) }).text, '', 'a header with a wrong length')
  })

  test('or a receipt becomes an event for any octets, at a cost linear in their number', () => {
    const word = fc.constantFrom('id:', 'stat:', 'text:', 'DELIVRD', ' ', '0', 'err:', 'done date:', '\0', 'x')
    const octets = fc.oneof(
      fc.uint8Array({ maxLength: 254 }).map((bytes) => Buffer.from(bytes)),
      fc.array(word, { maxLength: 60 }).map((words) => Buffer.from(words.join(''))),
    )
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), octets, octets, (esmClass, dataCoding, text, tlv) => {
        const tlvs = [MESSAGE_ID, MESSAGE_STATE, NETWORK_ERROR, PAYLOAD].map((tag): [number, Buffer] => [tag, tlv])
        const { kind } = read({ esmClass, dataCoding, text, tlvs })
        assert.ok(['wrote', 'unknown', 'sms-delivered', 'sms-failed', 'sms-underway'].includes(kind))
      }),
      { numRuns: 1_000, seed },
    )
    const long = Buffer.from('id: '.repeat(16_000))
    assert.ok(cpuMs(() => read({ esmClass: 4, tlvs: [[PAYLOAD, long]] })) < 200)
  })
})
