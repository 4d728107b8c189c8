import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodePdu, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { splitText } from '../../../src/sms/segments.ts'
import { smsSegment } from './support.ts'

type Changes = Parameters<typeof smsSegment>[0]

function pduOf(changes: Changes): PduOf<'submit_sm'> {
  const pdu = submitSm(smsSegment(changes))
  return 'is' in pdu ? assert.fail(JSON.stringify(pdu)) : pdu
}

describe('submit_sm', () => {
  test('has these octets for a segment in GSM-7 from a name', () => {
    const pdu = pduOf({
      sender: 'Herald',
      recipient: '+48500100200',
      text: 'a€_',
      concatenation: { reference: 0xab, total: 3, number: 2 },
      expiresAt: new Date('2031-02-03T04:05:06.789Z'),
    })
    const expected = [
      '0000004c 00000004 00000000 00000001',
      // No service type; alphanumeric; Herald.
      '00 05 00 486572616c6400',
      // International; 48500100200.
      '01 01 343835303031303032303000',
      // A header; no protocol, priority, schedule; until 310203040506700+; a receipt; GSM-7.
      '40 00 00 00 3331303230333034303530363730302b00 01 00 00 00',
      // Ten octets: the header, then the text.
      '0a 050003ab0302 61 1b65 11',
    ]
    assert.equal(encodePdu({ ...pdu, sequence: 1 }).toString('hex'), expected.join('').replaceAll(' ', ''))
  })

  test('has these octets of text in UCS-2, surrogates included', () => {
    const { dataCoding, esmClass, shortMessage } = pduOf({ encoding: 'UCS2', text: 'Zażółć 😀' })
    assert.deepEqual([dataCoding, esmClass, shortMessage.toString('hex')], [8, 0, '005a0061017c00f3014201070020d83dde00'])
  })

  test('distinguishes names, numbers and short codes', () => {
    for (const [sender, ton, npi, source] of [
      ['Herald', 5, 0, 'Herald'],
      ['1a', 5, 0, '1a'],
      ['48500100200', 1, 1, '48500100200'],
      ['+48500100200', 1, 1, '48500100200'],
      ['123456', 3, 0, '123456'],
      ['+29012', 1, 1, '29012'],
      ['1234567', 1, 1, '1234567'],
      ['A & B+1', 5, 0, 'A & B+1'],
    ] as const) {
      const pdu = pduOf({ sender })
      assert.deepEqual([pdu.sourceTon, pdu.sourceNpi, pdu.source], [ton, npi, source])
      assert.deepEqual([pdu.destinationTon, pdu.destinationNpi, pdu.destination], [1, 1, '48500100200'])
    }
  })

  test('has room for every segment of a split text', () => {
    for (const text of ['a'.repeat(160), '€'.repeat(80), 'a€'.repeat(300), 'ł'.repeat(70), '😀'.repeat(200)]) {
      for (const piece of splitText(text, 255)) assert.ok(pduOf(piece).shortMessage.length <= (piece.encoding === 'GSM7' ? 160 : 140))
    }
  })

  test('has room for 160 septets or 70 units alone, for 153 or 67 as a segment, and for no more', () => {
    const header = { concatenation: { reference: 1, total: 2, number: 1 } }
    const unicode = { encoding: 'UCS2' } as const
    for (const [longest, more, changes] of [
      ['a'.repeat(160), 'a', {}],
      ['€'.repeat(80), 'a', {}],
      ['a'.repeat(153), 'a', header],
      [`${'€'.repeat(76)}a`, 'a', header],
      ['ł'.repeat(70), 'ł', unicode],
      ['ł'.repeat(67), 'ł', { ...unicode, ...header }],
    ] as [string, string, Changes][]) {
      pduOf({ text: longest, ...changes })
      const refused = submitSm(smsSegment({ text: longest + more, ...changes }))
      assert.ok('is' in refused && refused.reason === 'REJECTED', longest + more)
    }
  })

  test('is refused for a sender, recipient or text that no network accepts', () => {
    for (const [changes, reason] of [
      [{ sender: '' }, 'INVALID_SENDER'],
      [{ sender: 'Zażółć' }, 'INVALID_SENDER'],
      [{ sender: 'a\0b' }, 'INVALID_SENDER'],
      [{ sender: 'a'.repeat(21) }, 'INVALID_SENDER'],
      [{ recipient: '48500100200' }, 'INVALID_RECIPIENT'],
      [{ recipient: '+48a' }, 'INVALID_RECIPIENT'],
      [{ recipient: '+48500\x080' }, 'INVALID_RECIPIENT'],
      [{ text: 'ż' }, 'REJECTED'],
    ] as const) {
      const refused = submitSm(smsSegment(changes))
      assert.ok('is' in refused && refused.reason === reason, JSON.stringify(changes))
    }
  })
})
