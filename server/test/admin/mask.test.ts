import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { maskBody, maskNumbers, maskText } from '../../src/admin/mask.ts'
import { maskEntry } from '../../src/audit/mask.ts'

const GROUPS = [
  ['48500100200'],
  ['0048500100200'],
  ['48', '500', '100', '200'],
  ['48', '50', '010', '02', '00'],
  ['1', '555', '123', '4567'],
  ['20', '10', '12', '25', '4567'],
  ['4', '8', '5', '0', '0', '1', '0', '0', '2', '0', '0'],
  ['1234567'],
  ['123456789012345'],
]
const BETWEEN = [
  ...[' ', '-', '.', '/', '_', '·', '•', '\n', '\r\n', '\t', '\u00a0', '\u202f', '\u200b', '‑', ' - ', ') ', ' (', '*', '|', '\\'],
  ...['%20', '%C2%A0', '\\n', '\\t', '\\\\n', '\\u0020', '+', '%2D', '️⃣'],
]
const BEFORE = [
  '',
  '+',
  '＋',
  '%2B',
  '(+',
  '\\u002b',
  'tel:',
  'Call ',
  'nr',
  'https://wa.me/',
  'https://example.com/?phone=',
  'id=5&phone=',
  '5, ',
  '%20',
]
const AFTER = ['', ' now', '!', ', thanks', 'x', '&from=2027-01-31T09:00:00Z', ': 2 people', '"']
const wide = (text: string) => text.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
const digitsOf = (text: string) => text.normalize('NFKC').replace(/%[\dA-F]{2}|\\u[\da-f]{4}|\D/gi, '')

describe('a phone number', () => {
  test('is masked in every spelling, alone and inside JSON', () => {
    for (const groups of GROUPS)
      for (const between of BETWEEN)
        for (const before of BEFORE)
          for (const after of AFTER) {
            const [written, number] = [groups.join(between), groups.join('')]
            const text = `${before}${written}${after}`
            const seen = maskText(text)
            const bare = seen.slice(before.length, seen.length - after.length)
            assert.equal(digitsOf(bare), number.slice(0, 2) + number.slice(-2), JSON.stringify({ text, seen }))
            assert.deepEqual(JSON.parse(maskBody(JSON.stringify({ text, list: [text] })) as string), { text: seen, list: [seen] })
          }
  })

  test('is masked in the digits of other scripts, as a name and in bytes', () => {
    assert.equal(maskText(wide('+48 500 100 200')), `+${wide('48')} ••• ••• •${wide('00')}`)
    assert.deepEqual(maskNumbers({ '48500100200': 1 }), { '48•••••••00': 1 })
    assert.equal(String(maskBody(Buffer.from('["48500100200"]'))), '["48•••••••00"]')
  })

  test('is masked beside another one, and has no part in its mask', () => {
    for (const between of [' ', ', ', ' / ', '\n', ''])
      assert.ok(digitsOf(maskText(`48500100200${between}48511222399`)).length <= 8, JSON.stringify(between))
    assert.equal(maskText('48 500 100 200 48 511 222 399'), '48 ••• ••• ••• •• ••• ••• •99')
  })

  test('is masked where a field should have an id or an address', () => {
    assert.deepEqual(maskNumbers({ agentId: '48500100200', after: '+48 500 100 200' }), {
      agentId: '48•••••••00',
      after: '+48 ••• ••• •00',
    })
    assert.equal(maskText('https://48500100200.example.com/'), 'https://48•••••••00.example.com/')
    assert.equal(maskText('https://example.com,48500100200'), 'https://example.com,48•••••••00')
    assert.equal(maskText('https://485.001.002.00/'), 'https://48•.•••.•••.00/')
    assert.equal(maskText('call 501.2345678'), 'call 50•.•••••78')
  })

  test('is masked in an attribute whose name is that of another field', () => {
    const attributes = { subject: '48500100200', agentId: 'x48500100200', imageUrl: '48500100200', phoneId: '48500100200' }
    const masked = { subject: '48•••••••00', agentId: 'x48•••••••00', imageUrl: '48•••••••00', phoneId: '48•••••••00' }
    assert.deepEqual(maskNumbers({ attributes }), { attributes: masked })
  })

  test('is masked in the address of a picture only with its plus sign, so that the picture is found', () => {
    const fileUrl = 'https://media.example.com/photo-1512345678901-abc/20271231.png'
    assert.deepEqual(maskNumbers({ fileUrl: `${fileUrl}?to=%2B48500100200` }), { fileUrl: `${fileUrl}?to=%2B48•••••••00` })
  })
})

test('ids, times, amounts, hosts and JSON numbers stay whole', () => {
  const whole = {
    messageId: '01980123-4567-7000-8000-000000000009',
    text: 'The message 01980123-4567-7000-8000-000000000009 has come.',
    at: '2027-01-31T09:00:00.123456Z',
    zone: '2027-01-31T09:00:00+01:00',
    day: 'order-2027-01-31-a',
    written: 'on 31.01.2027, at 09:00:00',
    number: 48500100200,
    amount: '+1 234.50 PLN or 12 345.67 PLN',
    place: '52.229676, 21.012229',
    nextCursor: 'W1231234567_1234-5678x',
    agentIds: ['agent-1234567'],
    phoneId: 'a1234567b1234567c12345',
    addresses: ['203.0.113.0/24'],
    url: 'http://192.168.100.200:41234/hook',
    host: 'https://ec2-54-123-45-67.shop1234567.example.com:8443/hook',
    subject: '1234567 agent-1234567',
    attemptId: 'wa-1767225600000-12345-1-20-200',
    headers: { 'webhook-timestamp': '1767225600' },
  }
  assert.deepEqual(maskNumbers(whole), whole)
  assert.equal(maskBody(JSON.stringify(whole)), JSON.stringify(whole))
})

test('masking takes time in proportion to the length', () => {
  const parts = [
    '1',
    '1 ',
    '1   ',
    '1    ',
    '%20',
    '1%20%20%20',
    '\\',
    '1\\n',
    '+',
    '+1',
    '1.',
    ' ',
    '2027-01-31 ',
    '123 456.    ',
    'abcdef01-',
  ]
  const texts = [...parts.map((part) => part.repeat(1e6 / part.length)), `https://${'a.'.repeat(5e5)}`, `https://${'1-'.repeat(5e5)}`]
  for (const text of [...texts, 'https://'.repeat(1e5)]) {
    const start = performance.now()
    maskText(text)
    // It takes up to 0.3 s; a quadratic pattern would take hours.
    assert.ok(performance.now() - start < 10_000, text.slice(0, 20))
  }
})

test('an entry of the audit log stores all digits but those of numbers with a plus sign', () => {
  const order = { url: 'https://hooks.example.com/services/12345678', text: 'Order 4711000123 for +48 500 100 200' }
  assert.deepEqual(maskEntry(order), { ...order, text: 'Order 4711000123 for +48 ••• ••• •00' })
})
