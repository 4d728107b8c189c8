import { createHmac, timingSafeEqual } from 'node:crypto'

// A tap tells nothing but the postback that we gave the button, so that holds which message and which button it was. It is signed, since
// what comes back is data from outside that a message's state is changed by: without the signature, one who can send events for an agent
// could tap buttons of messages that they never saw. Longest: 2 + 22 + 1 + 66 + 1 + 22 characters, of the 2048 that the network allows.

export type Postback = { messageId: string; buttonId: string }

const VERSION = '1'
const SIGNATURE_BYTES = 16

export function writePostback(key: Buffer, { messageId, buttonId }: Postback): string {
  const signed = `${VERSION}:${Buffer.from(messageId.replaceAll('-', ''), 'hex').toString('base64url')}:${buttonId}`
  return `${signed}:${signature(key, signed).toString('base64url')}`
}

/** Undefined where it is not one of ours. */
export function readPostback(key: Buffer, postback: string): Postback | undefined {
  const found = /^(1:([\w-]{22}):([\w.$-]{1,66})):([\w-]{22})$/.exec(postback)
  const [, signed = '', id = '', buttonId = '', claimed = ''] = found ?? []
  // As texts: several of them stand for the same bytes.
  const expected = signature(key, signed).toString('base64url')
  if (found === null || !timingSafeEqual(Buffer.from(expected), Buffer.from(claimed))) return undefined
  const messageId = Buffer.from(id, 'base64url')
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { messageId, buttonId }
}

function signature(key: Buffer, signed: string): Buffer {
  return createHmac('sha256', key).update(signed).digest().subarray(0, SIGNATURE_BYTES)
}
