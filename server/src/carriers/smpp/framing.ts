import { HEADER_OCTETS } from './pdu.ts'

// The longest plausible PDU is a deliver_sm whose message_payload has 65,535 octets, the limit of an optional field.
export const MAX_PDU_OCTETS = 70_000

export type Framer = {
  /**
   * Returns the PDUs completed by this chunk. They are views, valid until the next call. An invalid length is a fault: the start of the
   * next PDU is unknown then, and the connection has to be closed.
   */
  push: (chunk: Buffer) => { frames: Buffer[]; fault?: string }
}

/** Splits a stream of chunks into PDUs. Holds at most one PDU and one chunk. */
export function createFramer(): Framer {
  let held = Buffer.alloc(0)
  let heldLength = 0

  function append(chunk: Buffer): Buffer {
    if (heldLength === 0) return chunk
    const length = heldLength + chunk.length
    if (length > held.length) {
      // Grow by doubling, so that a PDU that arrives octet by octet is not copied for each octet.
      const larger = Buffer.allocUnsafe(2 * length)
      held.copy(larger, 0, 0, heldLength)
      held = larger
    }
    chunk.copy(held, heldLength)
    heldLength = length
    return held.subarray(0, length)
  }

  /** Copies the rest: the frames before it are views, and the chunk belongs to the socket. */
  function hold(rest: Buffer): void {
    heldLength = rest.length
    if (heldLength === 0) return
    held = Buffer.allocUnsafe(2 * heldLength)
    rest.copy(held)
  }

  return {
    push(chunk) {
      const octets = append(chunk)
      const frames: Buffer[] = []
      let offset = 0
      while (octets.length - offset >= 4) {
        const length = octets.readUInt32BE(offset)
        if (length < HEADER_OCTETS || length > MAX_PDU_OCTETS) return { frames, fault: 'a PDU with an invalid length' }
        if (octets.length - offset < length) break
        frames.push(octets.subarray(offset, offset + length))
        offset += length
      }
      if (offset > 0 || heldLength === 0) hold(octets.subarray(offset))
      return { frames }
    },
  }
}
