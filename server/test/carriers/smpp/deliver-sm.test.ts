import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { eventOf } from '../../../src/carriers/smpp/deliver-sm.ts'
import { normaliseMessageId, readingsOf } from '../../../src/carriers/smpp/message-ids.ts'
import { NO_TLVS, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { cpuMs } from '../../support/cpu.ts'

const seed = Date.now() % 2 ** 31

type Changes = Partial<Omit<PduOf<'deliver_sm'>, 'shortMessage' | 'tlvs'>> & { text?: string | Buffer; tlvs?: [number, Buffer][] }
function deliverSm({ text = '', tlvs, ...changes }: Changes): PduOf<'deliver_sm'> {
  return {
    command: 'deliver_sm',
    status: 0,
    sequence: 1,
    serviceType: '',
    sourceTon: 1,
    sourceNpi: 1,
    source: '48500100200',
    destinationTon: 1,
    destinationNpi: 1,
    destination: '48600',
    esmClass: 0,
    protocolId: 0,
    priority: 0,
    scheduleTime: '',
    validityPeriod: '',
    registeredDelivery: 0,
    replaceIfPresent: 0,
    dataCoding: 0,
    defaultMessageId: 0,
    shortMessage: typeof text === 'string' ? Buffer.from(text, 'latin1') : text,
    tlvs: tlvs === undefined ? NO_TLVS : new Map(tlvs),
    ...changes,
  }
}
const read = (changes: Changes) => eventOf(deliverSm(changes), 'net') as any
const receipt = (text: string, changes: Changes = {}) => read({ esmClass: 0x04, text, ...changes })

describe('a receipt', () => {
  test('is read in full', () => {
    const before = Date.now()
    const event = receipt('id:zz-17 sub:001 dlvrd:001 submit date:2601021504 done date:2601021505 stat:DELIVRD err:000 text:Hello')
    assert.ok(event.occurredAt.getTime() >= before && event.occurredAt.getTime() <= Date.now())
    assert.match(event.eventId, /^receipt-[\w-]{43}$/)
    assert.deepEqual(
      { ...event, occurredAt: 0, eventId: '' },
      {
        carrier: 'net',
        eventId: '',
        occurredAt: 0,
        phone: '+48500100200',
        kind: 'sms-delivered',
        carrierMessageIds: ['zz-17'],
        detail: 'DELIVRD',
      },
    )
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
    ] as const) {
      const event = receipt(text)
      assert.deepEqual([event.kind, event.detail, event.carrierMessageIds], [kind, detail, ['zz']], text)
    }
  })

  test('is understood however its fields end, and with its id in quotes or marked as hexadecimal', () => {
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
    assert.deepEqual(receipt('id:0xA').carrierMessageIds, ['0xA', 'a', '10'])
    assert.equal(receipt('id:3,stat:DELIVRD,err:0').detail, 'DELIVRD')
  })

  test('has an id of at most 255 characters; a longer one is none', () => {
    const longest = 'z'.repeat(255)
    assert.deepEqual(receipt(`id:${longest} stat:DELIVRD`).carrierMessageIds, [longest])
    assert.equal(receipt(`id:${longest}z stat:DELIVRD`).kind, 'unknown')
    const tlvs: [number, Buffer][] = [[0x001e, Buffer.from(`${longest}z`)]]
    assert.deepEqual(receipt('id:zz stat:DELIVRD', { tlvs }).carrierMessageIds, ['zz'])
  })

  test('is not misled by the text that it quotes', () => {
    const event = receipt('id:zz stat:UNDELIV err:001 text:id:other stat:DELIVRD at 12:30')
    assert.deepEqual([event.kind, event.carrierMessageIds, event.detail], ['sms-failed', ['zz'], 'UNDELIV, error 001'])
    const sparse = receipt('id:zz text:my parcel stat:DELIVRD err:999')
    assert.deepEqual([sparse.kind, sparse.carrierMessageIds, sparse.detail], ['sms-underway', ['zz'], 'no state'])
  })

  test('may come in optional fields, which count more than the text', () => {
    const tlvs: [number, Buffer][] = [
      [0x001e, Buffer.from('zz\0')],
      [0x0427, Buffer.from([5])],
      [0x0423, Buffer.from([3, 4, 3])],
    ]
    const bare = receipt('', { tlvs })
    assert.deepEqual([bare.kind, bare.carrierMessageIds, bare.detail], ['sms-failed', ['zz'], 'UNDELIV, network error 3:1027'])
    const both = receipt('id:yy stat:DELIVRD', { tlvs })
    assert.deepEqual([both.kind, both.carrierMessageIds], ['sms-failed', ['zz', 'yy']])
    const unmarked = read({ tlvs })
    assert.deepEqual([unmarked.kind, unmarked.carrierMessageIds], ['sms-failed', ['zz']])
    const unterminated = receipt('', { tlvs: [[0x001e, Buffer.from('zz')]] })
    assert.deepEqual(unterminated.carrierMessageIds, ['zz'])
    for (const [state, kind] of [
      [0, 'sms-underway'],
      [1, 'sms-underway'],
      [2, 'sms-delivered'],
      [3, 'sms-failed'],
      [4, 'sms-failed'],
      [6, 'sms-underway'],
      [7, 'sms-underway'],
      [8, 'sms-failed'],
      [9, 'sms-failed'],
      [77, 'sms-underway'],
    ] as const) {
      const tlvs: [number, Buffer][] = [
        [0x001e, Buffer.from('zz\0')],
        [0x0427, Buffer.from([state])],
      ]
      assert.equal(receipt('', { tlvs }).kind, kind, `state ${state}`)
    }
  })

  test('that is an intermediate one says that the message is underway', () => {
    assert.equal(read({ esmClass: 0x20, text: 'id:zz stat:ENROUTE' }).kind, 'sms-underway')
    assert.equal(read({ esmClass: 0x20, text: 'id:zz stat:UNDELIV err:001' }).kind, 'sms-underway')
  })

  test('is one also where nothing but its text says so, and a reply that mentions an id is none', () => {
    assert.equal(read({ text: 'id:zz sub:001 dlvrd:001 stat:DELIVRD err:000 text:' }).kind, 'sms-delivered')
    for (const text of ['my id:zz stat:DELIVRD', 'id:zz', 'id: stat:DELIVRD', 'id:zz stat:fine', 'stat:DELIVRD id:zz']) {
      assert.deepEqual(read({ text }).kind, 'wrote', text)
    }
  })

  test('is read in ASCII whatever coding it names, with the underscore of its id; in UTF-16 where it says so', () => {
    assert.deepEqual(receipt('id:a_z@x stat:DELIVRD', { dataCoding: 0 }).carrierMessageIds, ['a_z@x'])
    const wide = Buffer.from('id:zz stat:DELIVRD', 'utf16le').swap16()
    assert.equal(read({ esmClass: 0x04, dataCoding: 8, text: wide }).kind, 'sms-delivered')
  })

  test('without an id is an event of an unknown kind', () => {
    for (const text of ['', 'gibberish', 'stat:DELIVRD', 'id: stat:DELIVRD']) {
      assert.deepEqual([receipt(text).kind, receipt(text).description], ['unknown', 'an SMS receipt without an id'], text)
    }
  })

  test('has the same id when it is repeated, and another when anything else differs', () => {
    const text = 'id:zz stat:DELIVRD done date:2601021505'
    assert.equal(receipt(text, { sequence: 1 }).eventId, receipt(text, { sequence: 99 }).eventId)
    const others = [
      receipt('id:zz stat:DELIVRD done date:2601021506'),
      receipt('id:zy stat:DELIVRD done date:2601021505'),
      receipt(text, { source: '48500100201' }),
      receipt(text, { tlvs: [[0x0427, Buffer.from([2])]] }),
    ]
    assert.equal(new Set([receipt(text), ...others].map(({ eventId }) => eventId)).size, 5)
  })

  test('has its number with a plus, however the network writes it', () => {
    for (const [source, phone] of [
      ['48500100200', '+48500100200'],
      ['+48500100200', '+48500100200'],
      ['0048500100200', '+48500100200'],
      ['Herald', ''],
      ['', ''],
    ] as const) {
      assert.equal(receipt('id:zz stat:DELIVRD', { source }).phone, phone)
    }
  })
})

describe('the id of a message', () => {
  test('is read as it came, and as hexadecimal or decimal where it can be', () => {
    for (const [id, readings] of [
      ['255', ['255', '597', 'ff']],
      ['00000A3F', ['00000A3F', 'a3f', '2623']],
      ['2623', ['2623', '9763', 'a3f']],
      ['0', ['0']],
      ['000', ['000', '0']],
      ['7', ['7']],
      ['ffffffffffffffff', ['ffffffffffffffff', '18446744073709551615']],
      ['zz-17', ['zz-17']],
      ['0b9c3c1e-1111-4222-8333-444455556666', ['0b9c3c1e-1111-4222-8333-444455556666']],
      ['1'.repeat(65), ['1'.repeat(65)]],
    ] as const) {
      assert.deepEqual(readingsOf(id), readings)
    }
  })

  test('whichever way a network writes a number in its answer and in its receipt, they meet', () => {
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
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), spell, spell, (value, answer, inReceipt) => {
        assert.ok(readingsOf(inReceipt(value)).includes(normaliseMessageId(answer(value))))
      }),
      { numRuns: 500, seed },
    )
  })
})

describe(`a reply (fast-check, seed ${seed})`, () => {
  test('has who wrote it, to which number, and the text by its coding', () => {
    for (const [dataCoding, octets, text] of [
      [0, '486900021b65', 'Hi@$€'],
      [1, '48695f40', 'Hi_@'],
      [3, '48e9df', 'Héß'],
      [8, '017c00f3d83dde00', 'żó😀'],
      [8, '017c00', 'ż'],
      [0, '', ''],
    ] as const) {
      const event = read({ dataCoding, text: Buffer.from(octets, 'hex'), destination: '+48600' })
      assert.deepEqual([event.kind, event.phone, event.number, event.text], ['wrote', '+48500100200', '48600', text])
    }
  })

  test('has an id of its own each time', () => {
    assert.notEqual(read({ text: 'STOP' }).eventId, read({ text: 'STOP' }).eventId)
  })

  test('may be a part with a header, or in the optional field', () => {
    const octets = Buffer.from('050003ab02014869', 'hex')
    assert.equal(read({ esmClass: 0x40, text: octets }).text, 'Hi')
    assert.equal(read({ esmClass: 0x40, tlvs: [[0x0424, octets]] }).text, 'Hi')
    assert.equal(read({ tlvs: [[0x0424, Buffer.from('long'.repeat(100))]] }).text, 'long'.repeat(100))
    assert.equal(read({ esmClass: 0x40, text: Buffer.from([200, 1, 2]) }).text, '', 'a header that lies about its length')
  })

  test('holds nothing that no database stores', () => {
    assert.equal(read({ dataCoding: 1, text: Buffer.from('a\0b') }).text, 'a\ufffdb')
    assert.equal(read({ dataCoding: 8, text: Buffer.from('d83d0041', 'hex') }).text, '\ufffdA')
  })

  test('or a receipt, whatever the octets: an event, in no time', () => {
    const octets = fc.oneof(
      fc.uint8Array({ maxLength: 254 }).map((bytes) => Buffer.from(bytes)),
      fc
        .array(fc.constantFrom('id:', 'stat:', 'text:', 'DELIVRD', ' ', '0', 'err:', 'done date:', '\0', 'x'), { maxLength: 60 })
        .map((words) => Buffer.from(words.join(''))),
    )
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), octets, octets, (esmClass, dataCoding, text, tlv) => {
        const event = read({
          esmClass,
          dataCoding,
          text,
          tlvs: [
            [0x001e, tlv],
            [0x0427, tlv],
            [0x0423, tlv],
            [0x0424, tlv],
          ],
        })
        assert.ok(['wrote', 'unknown', 'sms-delivered', 'sms-failed', 'sms-underway'].includes(event.kind))
      }),
      { numRuns: 1_000, seed },
    )
    const long = Buffer.from('id: '.repeat(16_000))
    assert.ok(cpuMs(() => read({ esmClass: 4, tlvs: [[0x0424, long]] })) < 200)
  })
})
