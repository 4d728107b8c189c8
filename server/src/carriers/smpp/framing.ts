import { HEADER_OCTETS } from './pdu.ts'

// The longest that makes sense is a deliver_sm whose message_payload has the 65,535 octets that an optional field can have.
export const MAX_PDU_OCTETS = 70_000

export type Framer = {
  /**
   * The PDUs that are whole with this chunk. They are views, good until the next call. A length that can't be is a fault: where the next PDU
   * begins is anyone's guess then, and the connection is worth nothing any more.
   */
  take: (chunk: Buffer) => { frames: Buffer[]; fault?: string }
}

/** Puts a stream of chunks, however it was cut, into PDUs. Holds at most one PDU and one chunk. */
export function createFramer(): Framer {
  let held = Buffer.alloc(0)
  let heldLength = 0

  function append(chunk: Buffer): Buffer {
    if (heldLength === 0) return chunk
    const length = heldLength + chunk.length
    if (length > held.length) {
      // By doubling, so that a PDU that comes octet by octet is not copied once for each of them.
      const larger = Buffer.allocUnsafe(2 * length)
      held.copy(larger, 0, 0, heldLength)
      held = larger
    }
    chunk.copy(held, heldLength)
    heldLength = length
    return held.subarray(0, length)
  }

  /** In memory of its own: the frames that precede the rest are views, and the chunk is the socket's. */
  function hold(rest: Buffer): void {
    heldLength = rest.length
    if (heldLength === 0) return
    held = Buffer.allocUnsafe(2 * heldLength)
    rest.copy(held)
  }

  return {
    take(chunk) {
      const octets = append(chunk)
      const frames: Buffer[] = []
      let offset = 0
      while (octets.length - offset >= 4) {
        const length = octets.readUInt32BE(offset)
        if (length < HEADER_OCTETS || length > MAX_PDU_OCTETS) return { frames, fault: 'a PDU of a length that can not be' }
        if (octets.length - offset < length) break
        frames.push(octets.subarray(offset, offset + length))
        offset += length
      }
      if (offset > 0 || heldLength === 0) hold(octets.subarray(offset))
      return { frames }
    },
  }
}
