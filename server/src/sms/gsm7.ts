// The alphabet of 3GPP TS 23.038, unpacked: one octet a septet, as SMPP carries it. The network packs it for the air.

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

// Every submit looks up each of its characters here, so it is an array by code unit; the euro sign has the highest. Characters of the
// extension have the escape in their upper octet. The escape itself is no character: a text with one in it does not fit.
const NONE = -1
const CODES = new Int16Array(0x20ad).fill(NONE)
for (let code = 0; code < BASIC.length; code += 1) if (code !== ESCAPE) CODES[BASIC.charCodeAt(code)] = code
for (const [code, character] of EXTENSION) CODES[character.charCodeAt(0)] = (ESCAPE << 8) | code

/** What a code unit costs in septets: 1, or 2 where it is in the extension; 0 where the alphabet lacks it. */
export function septetsOf(codeUnit: number): 0 | 1 | 2 {
  const code = CODES[codeUnit] ?? NONE
  if (code === NONE) return 0
  return code > 0x7f ? 2 : 1
}

/** How many septets a text takes; undefined where a character of it is not in the alphabet. */
export function countSeptets(text: string): number | undefined {
  let septets = 0
  for (let index = 0; index < text.length; index += 1) {
    const cost = septetsOf(text.charCodeAt(index))
    if (cost === 0) return undefined
    septets += cost
  }
  return septets
}

/** One octet a septet; undefined where a character is not in the alphabet. */
export function encodeGsm7(text: string): Buffer | undefined {
  const octets = Buffer.allocUnsafe(2 * text.length)
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
 * Any octets make a text. As TS 23.038 asks, an escape before a code that the extension lacks is passed over and the code read from the
 * basic table, and one before nothing or before another escape shows as a space. An octet that is no septet shows as U+FFFD.
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
