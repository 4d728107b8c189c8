import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodePdu, type PduOf } from '../../../src/carriers/smpp/pdu.ts'
import { submitSm } from '../../../src/carriers/smpp/submit-sm.ts'
import { splitText } from '../../../src/sms/parts.ts'
import { part } from './support.ts'

const pduOf = (changes: Parameters<typeof part>[0]) => {
  const pdu = submitSm(part(changes))
  assert.ok(!('is' in pdu))
  return pdu as PduOf<'submit_sm'>
}

describe('submit_sm', () => {
  test('is these octets for a part in GSM-7 from a name', () => {
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

  test('is these octets of text in UCS-2, surrogates included', () => {
    const { dataCoding, esmClass, shortMessage } = pduOf({ encoding: 'UCS2', text: 'Zażółć 😀' })
    assert.deepEqual([dataCoding, esmClass], [8, 0])
    assert.equal(shortMessage.toString('hex'), '005a0061017c00f3014201070020d83dde00')
  })

  test('tells names, numbers and short codes apart', () => {
    for (const [sender, ton, npi, source] of [
      ['Herald', 5, 0, 'Herald'],
      ['1a', 5, 0, '1a'],
      ['48500100200', 1, 1, '48500100200'],
      ['+48500100200', 1, 1, '48500100200'],
      ['123456', 3, 0, '123456'],
      ['7055', 3, 0, '7055'],
      ['+29012', 1, 1, '29012'],
      ['1234567', 1, 1, '1234567'],
      ['A & B+1', 5, 0, 'A & B+1'],
    ] as const) {
      const pdu = pduOf({ sender })
      assert.deepEqual([pdu.sourceTon, pdu.sourceNpi, pdu.source], [ton, npi, source])
      assert.deepEqual([pdu.destinationTon, pdu.destinationNpi, pdu.destination], [1, 1, '48500100200'])
    }
  })

  test('takes every part that a text is split into', () => {
    for (const text of ['a'.repeat(160), '€'.repeat(80), 'a€'.repeat(300), 'ł'.repeat(70), '😀'.repeat(200)]) {
      for (const piece of splitText(text, 255)) {
        const { shortMessage } = pduOf(piece)
        assert.ok(shortMessage.length <= (piece.encoding === 'GSM7' ? 160 : 140))
      }
    }
  })

  test('has room for 160 septets or 70 units alone, for 153 or 67 as a part, and for no more', () => {
    const concatenation = { reference: 1, total: 2, number: 1 }
    for (const [fits, tooLong] of [
      [{ text: 'a'.repeat(160) }, { text: 'a'.repeat(161) }],
      [{ text: '€'.repeat(80) }, { text: `${'€'.repeat(80)}a` }],
      [
        { text: 'a'.repeat(153), concatenation },
        { text: 'a'.repeat(154), concatenation },
      ],
      [
        { text: `${'€'.repeat(76)}a`, concatenation },
        { text: '€'.repeat(77), concatenation },
      ],
      [
        { text: 'ł'.repeat(70), encoding: 'UCS2' },
        { text: 'ł'.repeat(71), encoding: 'UCS2' },
      ],
      [
        { text: 'ł'.repeat(67), encoding: 'UCS2', concatenation },
        { text: 'ł'.repeat(68), encoding: 'UCS2', concatenation },
      ],
    ] as const) {
      pduOf(fits)
      const refused = submitSm(part(tooLong))
      assert.ok('is' in refused && refused.reason === 'REJECTED', JSON.stringify(tooLong))
    }
  })

  test('is refused where no network could take it', () => {
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
      const refused = submitSm(part(changes))
      assert.ok('is' in refused && refused.reason === reason, JSON.stringify(changes))
    }
  })
})
