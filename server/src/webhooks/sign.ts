import { createHmac, randomBytes } from 'node:crypto'

// Signatures as Standard Webhooks 1.0.0 has them, for which most languages have a library that verifies.

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
// The least that the specification allows.
const MIN_SECRET_BYTES = 24

export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** What is signed. `timestamp` is the time of this try, in seconds; the body is as it is sent, byte for byte. */
export type Signed = { eventId: string; timestamp: number; body: string }

/** The header `webhook-signature`: a signature for each secret, in their order. One that verifies is enough for the receiver. */
export function sign(secrets: string[], { eventId, timestamp, body }: Signed): string {
  return secrets
    .map((secret) => `v1,${createHmac('sha256', keyOf(secret)).update(`${eventId}.${timestamp}.${body}`).digest('base64')}`)
    .join(' ')
}

function keyOf(secret: string): Buffer {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  // With a key of no bytes, anybody could sign.
  if (!secret.startsWith(PREFIX) || key.length < MIN_SECRET_BYTES) throw new Error('the secret of a webhook is not one of ours')
  return key
}
