import { createHmac, timingSafeEqual } from 'node:crypto'

// A tap event carries only the button's postback, so the postback holds the message and the button. It is signed, because it comes from
// outside and changes a message's state: without a signature, any sender of events for an agent could tap buttons of messages that it never
// received. The longest postback has 2 + 22 + 1 + 66 + 1 + 22 characters; the network allows 2048.

type Postback = { messageId: string; buttonId: string }

const VERSION = '1'
const SIGNATURE_BYTES = 16

export function writePostback(key: Buffer, { messageId, buttonId }: Postback): string {
  const signed = `${VERSION}:${Buffer.from(messageId.replaceAll('-', ''), 'hex').toString('base64url')}:${buttonId}`
  return `${signed}:${signature(key, signed).toString('base64url')}`
}

/** Returns undefined if Herald did not sign the postback. */
export function readPostback(key: Buffer, postback: string): Postback | undefined {
  const found = /^(1:([\w-]{22}):([\w.$-]{1,66})):([\w-]{22})$/.exec(postback)
  const [, signed = '', id = '', buttonId = '', given = ''] = found ?? []
  // Compare the texts: several base64url texts decode to the same bytes.
  const expected = signature(key, signed).toString('base64url')
  if (found === null || !timingSafeEqual(Buffer.from(expected), Buffer.from(given))) return undefined
  const messageId = Buffer.from(id, 'base64url')
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { messageId, buttonId }
}

function signature(key: Buffer, signed: string): Buffer {
  return createHmac('sha256', key).update(signed).digest().subarray(0, SIGNATURE_BYTES)
}
