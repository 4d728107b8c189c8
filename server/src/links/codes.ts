import { createHmac } from 'node:crypto'

// 62^11 codes are 65 bits: with a hundred million live links and a thousand guesses a second, a guesser finds one in 16 years.
export const CODE_LENGTH = 11
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export const SHORT_PATH = '/l/'

/**
 * The code of the link at one position in an SMS. It is derived, not random: a retried SMS has exactly the same text. Without the key, a
 * code cannot be derived from a message id.
 */
export function shortCode(key: Buffer, messageId: string, copy: number, index: number): string {
  const digest = createHmac('sha256', key).update(`short-link:${messageId}:${copy}:${index}`).digest('hex')
  // 65 of the 256 bits are used, so the bias of the modulo is one in 2^190.
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

/** `publicUrl` is the service's address from outside, with or without a slash at the end. */
export function shortLink(publicUrl: string, code: string): string {
  return `${publicUrl.replace(/\/+$/, '')}${SHORT_PATH}${code}`
}
