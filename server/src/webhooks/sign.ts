import { createHmac, randomBytes } from 'node:crypto'

// Signatures according to Standard Webhooks 1.0.0, which has libraries for verification in most languages.

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
// The minimum in the specification.
const MIN_SECRET_BYTES = 24

export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** The signed content. `timestamp` is the time of this attempt in seconds; the body is exactly as sent. */
type Signed = { eventId: string; timestamp: number; body: string }

/** The header `webhook-signature`: one signature per secret, in order. The receiver accepts the event if any of them verifies. */
export function sign(secrets: string[], { eventId, timestamp, body }: Signed): string {
  return secrets
    .map((secret) => `v1,${createHmac('sha256', keyOf(secret)).update(`${eventId}.${timestamp}.${body}`).digest('base64')}`)
    .join(' ')
}

function keyOf(secret: string): Buffer {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  // An empty key would let anyone sign.
  if (!secret.startsWith(PREFIX) || key.length < MIN_SECRET_BYTES) throw new Error('the webhook secret is malformed')
  return key
}
