import { createSealer } from '../http/sealed-cursors.ts'

/** A place in the log: a position, and the last hex digits of the id of its event. */
export type Place = { position: number; mark: string }

export const MARK_LENGTH = 8
export const BEGINNING: Place = { position: 0, mark: '0'.repeat(MARK_LENGTH) }

export type Cursors = {
  encode: (accountId: number, place: Place) => string
  /** Returns undefined if the text is not a cursor that Herald returned to this account. */
  decode: (accountId: number, cursor: string) => Place | undefined
}

const POSITION_BYTES = 8
const PLACE_BYTES = POSITION_BYTES + MARK_LENGTH / 2

/** Encrypts places in the log. All cursors have the same length. */
export function createCursors(secret: Buffer): Cursors {
  const { seal, open } = createSealer(secret, 'feed')
  return {
    encode: (accountId, place) => seal(accountId, toBytes(place)),
    decode: (accountId, cursor) => {
      const plain = open(accountId, cursor)
      return plain && { position: Number(plain.readBigUInt64BE()), mark: plain.toString('hex', POSITION_BYTES) }
    },
  }
}

function toBytes({ position, mark }: Place): Buffer {
  const bytes = Buffer.alloc(PLACE_BYTES)
  bytes.writeBigUInt64BE(BigInt(position))
  bytes.write(mark, POSITION_BYTES, 'hex')
  return bytes
}
