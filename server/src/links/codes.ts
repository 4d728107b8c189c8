import { createHmac } from 'node:crypto'

// 62^11 codes are 65 bits: with a hundred million links alive and a thousand tries in a second, a guesser finds one in 16 years.
export const CODE_LENGTH = 11
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export const SHORT_PATH = '/l/'

/**
 * What stands for the link at a place of an SMS. Nothing is drawn: an SMS whose sending is tried again says the same, to the letter. Nobody
 * without the key can tell the code of a message whose id they know.
 */
export function shortCode(key: Buffer, messageId: string, copy: number, index: number): string {
  const digest = createHmac('sha256', key).update(`short-link:${messageId}:${copy}:${index}`).digest('hex')
  // 256 bits, of which 65 are used: the remainders that come up once more often do so by one in 2^190.
  let rest = BigInt(`0x${digest}`)
  let code = ''
  while (code.length < CODE_LENGTH) {
    code += ALPHABET[Number(rest % 62n)]
    rest /= 62n
  }
  return code
}

export function isShortCode(text: string): boolean {
  return /^[A-Za-z0-9]{11}$/.test(text)
}

/** `publicUrl` is where this service is reached from outside, with or without a slash at the end. */
export function shortLink(publicUrl: string, code: string): string {
  return `${publicUrl.replace(/\/+$/, '')}${SHORT_PATH}${code}`
}
