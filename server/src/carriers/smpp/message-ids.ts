// The submit_sm_resp and the receipt of a message have the same number as its id, but not always the same text: one may be hexadecimal and the
// other decimal (a habit from SMPP 3.3), and one may be padded with zeros or in capitals.

/** The specification allows 64 characters; anything longer than this is not an id. */
export const MAX_ID_LENGTH = 255
// Also bounds the cost of converting an id.
const MAX_DIGITS = 64
const DECIMAL = /^[0-9]+$/
// Some networks write the prefix 0x.
const HEXADECIMAL = /^(?:0x)?([0-9a-f]+)$/i

function hexadecimalDigits(id: string): string | undefined {
  return id.length > MAX_DIGITS ? undefined : HEXADECIMAL.exec(id)?.[1]
}

/** The normal form of an id that is a number. Any other id, such as a UUID, is returned unchanged. */
export function normaliseMessageId(id: string): string {
  return (
    hexadecimalDigits(id)
      ?.toLowerCase()
      .replace(/^0+(?=.)/, '') ?? id
  )
}

/** The id as received, its normal form, and its value read as hexadecimal and written in decimal, or the reverse. */
export function readingsOf(id: string): string[] {
  const digits = hexadecimalDigits(id)
  if (digits === undefined) return [id]
  const readings = new Set([id, normaliseMessageId(id), BigInt(`0x${digits}`).toString()])
  if (DECIMAL.test(id)) readings.add(BigInt(id).toString(16))
  return [...readings]
}
