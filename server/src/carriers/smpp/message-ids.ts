// What a network calls a message when it takes it and what it calls it in the receipt are the same number, but not always the same text:
// one may be hexadecimal and the other decimal (a habit from SMPP 3.3), one padded with zeros, one in capitals.

/** The specification has 64; what is longer than this is no id. */
export const MAX_ID_LENGTH = 255
// It also bounds what a reading costs.
const MAX_DIGITS = 64
const DECIMAL = /^[0-9]+$/
// Some mark it.
const HEXADECIMAL = /^(?:0x)?([0-9a-f]+)$/i

function hexadecimalDigits(id: string): string | undefined {
  return id.length > MAX_DIGITS ? undefined : HEXADECIMAL.exec(id)?.[1]
}

/** The one text for an id that is a number. Any other id, such as a UUID, is kept as it is. */
export function normaliseMessageId(id: string): string {
  return (
    hexadecimalDigits(id)
      ?.toLowerCase()
      .replace(/^0+(?=.)/, '') ?? id
  )
}

/** As it came, in its normal form, and as it would be where it was decimal but was meant in hexadecimal, or the reverse. */
export function readingsOf(id: string): string[] {
  const digits = hexadecimalDigits(id)
  if (digits === undefined) return [id]
  const readings = new Set([id, normaliseMessageId(id), BigInt(`0x${digits}`).toString()])
  if (DECIMAL.test(id)) readings.add(BigInt(id).toString(16))
  return [...readings]
}
