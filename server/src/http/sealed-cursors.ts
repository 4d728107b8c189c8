import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { invalidCursor } from './paging.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
// The first byte is the version of the format. Callers may keep a cursor for as long as they like, and later versions of Herald have to read it.
const FORMAT = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

type Sealer = {
  seal: (accountId: number, plain: Buffer) => string
  /** Returns undefined if the text was not sealed for this account. */
  open: (accountId: number, sealed: string) => Buffer | undefined
}

/**
 * Encrypts cursors, so that callers can't compute with them and learn nothing from them. A cursor is bound to its account, and works on every
 * node and after a restart. `purpose`: cursors of one purpose can't be used for another.
 *
 * The nonce is a MAC of the plain text. So a place of an account always has the same cursor, and two places share a nonce only if 96 bits of
 * the MAC collide. Random nonces would be safe for only 2^32 cursors of one key.
 */
export function createSealer(secret: Buffer, purpose: string): Sealer {
  const keyFor = (use: string) => Buffer.from(hkdfSync('sha256', secret, '', `herald ${purpose} cursor ${use}`, KEY_BYTES))
  const [encryptionKey, nonceKey] = [keyFor('encryption'), keyFor('nonce')]

  function seal(accountId: number, plain: Buffer): string {
    const owner = ownerOf(accountId)
    const nonce = createHmac('sha256', nonceKey).update(owner).update(plain).digest().subarray(0, NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, encryptionKey, nonce, { authTagLength: TAG_BYTES }).setAAD(owner)
    const encrypted = [cipher.update(plain), cipher.final()]
    return Buffer.concat([Buffer.of(FORMAT), nonce, ...encrypted, cipher.getAuthTag()]).toString('base64url')
  }

  function open(accountId: number, sealed: string): Buffer | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    // The decoder ignores characters that are not base64url, so without this check one cursor would have many spellings.
    if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES || bytes[0] !== FORMAT || bytes.toString('base64url') !== sealed) return undefined
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES)
    const decipher = createDecipheriv(CIPHER, encryptionKey, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(ownerOf(accountId)).setAuthTag(bytes.subarray(-TAG_BYTES))
    const plain = decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES))
    try {
      decipher.final()
      return plain
    } catch {
      return undefined
    }
  }

  return { seal, open }
}

/** The additional data that binds a cursor to its format and its account. */
function ownerOf(accountId: number): Buffer {
  const owner = Buffer.alloc(1 + 8)
  owner.writeUInt8(FORMAT)
  owner.writeBigUInt64BE(BigInt(accountId), 1)
  return owner
}

type ListCursors = {
  seal: (accountId: number, cursor: string) => string
  /** Throws RCS_INVALID_CURSOR for any other text. */
  open: (accountId: number, sealed: string) => string
}

/** Encrypts the cursors of lists, which have the values of a row that the caller may not see. */
export function sealListCursors(secret: Buffer, purpose: string): ListCursors {
  const sealer = createSealer(secret, purpose)
  return {
    seal: (accountId, cursor) => sealer.seal(accountId, Buffer.from(cursor)),
    open: (accountId, sealed) => {
      const plain = sealer.open(accountId, sealed)
      if (plain === undefined) throw invalidCursor('is not a cursor of this list')
      return plain.toString()
    },
  }
}
