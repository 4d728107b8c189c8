import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

/** A place in the log: a position, and the last hex digits of the id of its event. */
export type Place = { position: number; mark: string }

export const MARK_LENGTH = 8
export const BEGINNING: Place = { position: 0, mark: '0'.repeat(MARK_LENGTH) }

export type Cursors = {
  encode: (accountId: number, place: Place) => string
  /** Returns undefined if the text is not a cursor that Herald returned to this account. */
  decode: (accountId: number, cursor: string) => Place | undefined
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
// The first byte is the version of the format. Callers may keep a cursor for as long as they like, and later versions of Herald have to read it.
const FORMAT = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const POSITION_BYTES = 8
const PLACE_BYTES = POSITION_BYTES + MARK_LENGTH / 2
const CURSOR_BYTES = 1 + NONCE_BYTES + PLACE_BYTES + TAG_BYTES

/**
 * Encrypts places in the log, so that callers can't compute with cursors and learn nothing from positions. A cursor is bound to its account, and
 * all cursors have the same length.
 *
 * The nonce is a MAC of the plain text. So a place of an account always has the same cursor, and two places share a nonce only if 96 bits of
 * the MAC collide. Random nonces would be safe for only 2^32 cursors of one key.
 */
export function createCursors(secret: Buffer): Cursors {
  const keyFor = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, '', `herald feed cursor ${purpose}`, KEY_BYTES))
  const [encryptionKey, nonceKey] = [keyFor('encryption'), keyFor('nonce')]

  function encode(accountId: number, place: Place): string {
    const owner = ownerOf(accountId)
    const plain = toBytes(place)
    const nonce = createHmac('sha256', nonceKey).update(owner).update(plain).digest().subarray(0, NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, encryptionKey, nonce, { authTagLength: TAG_BYTES }).setAAD(owner)
    const encrypted = [cipher.update(plain), cipher.final()]
    return Buffer.concat([Buffer.of(FORMAT), nonce, ...encrypted, cipher.getAuthTag()]).toString('base64url')
  }

  function decode(accountId: number, cursor: string): Place | undefined {
    const bytes = Buffer.from(cursor, 'base64url')
    // The decoder ignores characters that are not base64url, so without this check one cursor would have many spellings.
    if (bytes.length !== CURSOR_BYTES || bytes[0] !== FORMAT || bytes.toString('base64url') !== cursor) return undefined
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES)
    const decipher = createDecipheriv(CIPHER, encryptionKey, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(ownerOf(accountId)).setAuthTag(bytes.subarray(-TAG_BYTES))
    const plain = decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES))
    try {
      decipher.final()
    } catch {
      return undefined
    }
    return { position: Number(plain.readBigUInt64BE()), mark: plain.toString('hex', POSITION_BYTES) }
  }

  return { encode, decode }
}

/** The additional data that binds a cursor to its format and its account. */
function ownerOf(accountId: number): Buffer {
  const owner = Buffer.alloc(1 + 8)
  owner.writeUInt8(FORMAT)
  owner.writeBigUInt64BE(BigInt(accountId), 1)
  return owner
}

function toBytes({ position, mark }: Place): Buffer {
  const bytes = Buffer.alloc(PLACE_BYTES)
  bytes.writeBigUInt64BE(BigInt(position))
  bytes.write(mark, POSITION_BYTES, 'hex')
  return bytes
}
