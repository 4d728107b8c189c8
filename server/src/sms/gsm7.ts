// The alphabet of 3GPP TS 23.038, unpacked: one octet per septet, as SMPP carries it. The network packs it for the air interface.

const ESCAPE = 0x1b
const BASIC =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'
const EXTENSION = new Map([
  [0x0a, '\f'],
  [0x14, '^'],
  [0x28, '{'],
  [0x29, '}'],
  [0x2f, '\\'],
  [0x3c, '['],
  [0x3d, '~'],
  [0x3e, ']'],
  [0x40, '|'],
  [0x65, '€'],
])

// Every submit looks up each of its characters, so the table is an array by code unit; the euro sign has the highest code. Characters of
// the extension table have the escape in their upper octet. The escape itself is not a character: a text that contains one does not fit.
const NONE = -1
const CODES = new Int16Array(0x20ad).fill(NONE)
for (let code = 0; code < BASIC.length; code += 1) if (code !== ESCAPE) CODES[BASIC.charCodeAt(code)] = code
for (const [code, character] of EXTENSION) CODES[character.charCodeAt(0)] = (ESCAPE << 8) | code

/** The septets of a code unit: 1, or 2 if it is in the extension table; 0 if the alphabet does not have it. */
export function septetsOf(codeUnit: number): 0 | 1 | 2 {
  const code = CODES[codeUnit] ?? NONE
  if (code === NONE) return 0
  return code > 0x7f ? 2 : 1
}

/** The septets of a text; undefined if the alphabet does not have one of its characters. */
export function countSeptets(text: string): number | undefined {
  let septets = 0
  for (let index = 0; index < text.length; index += 1) {
    const cost = septetsOf(text.charCodeAt(index))
    if (cost === 0) return undefined
    septets += cost
  }
  return septets
}

/** One octet per septet; undefined if the alphabet does not have one of the characters. */
export function encodeGsm7(text: string): Uint8Array | undefined {
  const octets = new Uint8Array(2 * text.length)
  let length = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = CODES[text.charCodeAt(index)] ?? NONE
    if (code === NONE) return undefined
    if (code > 0x7f) octets[length++] = ESCAPE
    octets[length++] = code & 0x7f
  }
  return octets.subarray(0, length)
}

/**
 * Decodes any octets. As TS 23.038 requires, an escape before a code that the extension table does not have is skipped and the code read
 * from the basic table; an escape at the end or before another escape becomes a space. An octet above 0x7f becomes U+FFFD.
 */
export function decodeGsm7(octets: Uint8Array): string {
  let text = ''
  for (let index = 0; index < octets.length; index += 1) {
    const code = octets[index] as number
    if (code !== ESCAPE) {
      text += BASIC[code] ?? '\ufffd'
      continue
    }
    const next = octets[index + 1]
    const extended = next === undefined ? ' ' : next === ESCAPE ? ' ' : EXTENSION.get(next)
    if (extended === undefined) continue
    text += extended
    index += 1
  }
  return text
}
