import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { newSecret, sign } from '../../src/webhooks/sign.ts'

const NOW = Math.floor(Date.now() / 1000)
const BODY = JSON.stringify({
  eventId: 'a',
  type: 'message.replied',
  occurredAt: new Date(),
  data: { text: 'Zażółć gęślą jaźń 👍 \u2028 "\\' },
})

/** Whether the Standard Webhooks library verifies it. */
function isVerified(
  secret: string,
  signature: string,
  { eventId, timestamp, body }: { eventId: string; timestamp: string; body: string | Buffer },
) {
  const headers = { 'webhook-id': eventId, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
  try {
    new Webhook(secret).verify(body, headers, { jsonParse: false })
    return true
  } catch {
    return false
  }
}

test('the Standard Webhooks library verifies a signature of any body', () => {
  for (const body of [BODY, '', '{}', 'a.b.c', `"${'x'.repeat(100_000)}"`, '\u0000\r\n', '\u{10ffff}']) {
    const secret = newSecret()
    const eventId = randomUUID()
    const signature = sign([secret], { eventId, timestamp: NOW, body })
    assert.ok(isVerified(secret, signature, { eventId, timestamp: String(NOW), body }))
    assert.ok(isVerified(secret, signature, { eventId, timestamp: String(NOW), body: Buffer.from(body) }))
    assert.equal(signature, new Webhook(secret).sign(eventId, new Date(NOW * 1000), body))
  }
})

test('a published example has its published signature', () => {
  const event = { eventId: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' }
  assert.equal(sign(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], event), 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('a signature fails if any byte of the id, the time or the body changes', () => {
  const secret = newSecret()
  const eventId = randomUUID()
  const timestamp = String(NOW)
  const signature = sign([secret], { eventId, timestamp: NOW, body: BODY })
  assert.ok(isVerified(secret, signature, { eventId, timestamp, body: BODY }))
  for (let index = 0; index < eventId.length; index += 1) {
    const other = eventId.slice(0, index) + (eventId[index] === 'f' ? 'e' : 'f') + eventId.slice(index + 1)
    assert.ok(!isVerified(secret, signature, { eventId: other, timestamp, body: BODY }), `byte ${index} of the id`)
  }
  // At most 99 s: the library rejects times that are further off, whatever the signature.
  for (const other of [NOW - 1, NOW + 1, NOW - 10, NOW + 10, NOW - 99]) {
    assert.ok(!isVerified(secret, signature, { eventId, timestamp: String(other), body: BODY }), `${other} for ${NOW}`)
  }
  const bytes = Buffer.from(BODY)
  for (let index = 0; index < bytes.length; index += 1) {
    const other = Buffer.from(bytes)
    other.writeUInt8((bytes.readUInt8(index) + 1) % 256, index)
    assert.ok(!isVerified(secret, signature, { eventId, timestamp, body: other }), `byte ${index} of the body`)
  }
  for (const other of [bytes.subarray(1), bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.from(' ')])]) {
    assert.ok(!isVerified(secret, signature, { eventId, timestamp, body: other }))
  }
  assert.ok(!isVerified(secret, signature, { eventId: `${eventId}.`, timestamp, body: BODY }))
})

test('both secrets verify after a rotation, and the newest signs first', () => {
  const [newest, older, another] = [newSecret(), newSecret(), newSecret()]
  const event = { eventId: randomUUID(), timestamp: NOW, body: BODY }
  const signature = sign([newest, older], event)
  const sent = { ...event, timestamp: String(NOW) }
  assert.ok(isVerified(newest, signature, sent))
  assert.ok(isVerified(older, signature, sent))
  assert.ok(!isVerified(another, signature, sent))
  assert.equal(signature, `${sign([newest], event)} ${sign([older], event)}`)
  assert.ok(!isVerified(older, sign([newest], event), sent))
})

test('a secret is whsec_ and 32 random bytes in base64', () => {
  const secrets = Array.from({ length: 1000 }, newSecret)
  assert.equal(new Set(secrets).size, 1000)
  for (const secret of secrets) {
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(Buffer.from(secret.slice(6), 'base64').length, 32)
  }
})

test('a malformed secret signs nothing', () => {
  for (const secret of ['', 'whsec_', 'whsec_AAAA', randomBytes(32).toString('base64'), `whsk_${randomBytes(64).toString('base64')}`]) {
    assert.throws(() => sign([secret], { eventId: 'a', timestamp: NOW, body: '{}' }), /is malformed/)
  }
})
