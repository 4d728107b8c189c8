import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { normalisePhoneNumber } from '../phone-numbers.ts'

export type PhoneIds = {
  encode: (phone: string) => string
  /** Takes an id or a phone number. Returns undefined if it is neither. */
  decode: (text: string) => string | undefined
}

const CIPHER = 'aes-256-ecb'
const BLOCK_BYTES = 16

/**
 * Ids with which viewers, who see only masked numbers, name a phone. A number has at most 15 digits, so it fits into one block of the cipher,
 * and a phone always has the same id.
 */
export function createPhoneIds(secret: Buffer): PhoneIds {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'herald phone ids', 32))
  return {
    encode: (phone) => {
      const cipher = createCipheriv(CIPHER, key, null).setAutoPadding(false)
      return Buffer.concat([cipher.update(phone.padEnd(BLOCK_BYTES)), cipher.final()]).toString('base64url')
    },
    decode: (text) => {
      const bytes = Buffer.from(text, 'base64url')
      if (bytes.length !== BLOCK_BYTES || bytes.toString('base64url') !== text) return normalisePhoneNumber(text)
      const decipher = createDecipheriv(CIPHER, key, null).setAutoPadding(false)
      const plain = Buffer.concat([decipher.update(bytes), decipher.final()])
        .toString('latin1')
        .trimEnd()
      return /^\+[1-9]\d{6,14}$/.test(plain) ? plain : undefined
    },
  }
}
