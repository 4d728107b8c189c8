/**
 * A hash table of pairs of 32-bit numbers. Its key is the first number without its lowest `shift` bits. The pairs are outside of V8's heap, and
 * each takes 10 bytes: memory has nothing else of a finished message. It uses open addressing and grows by a sixteenth, since doubling would take
 * 16 bytes a message. Nothing is ever removed. Two zeros mark an empty slot, so no pair may be two zeros.
 */
export type Table = { slots: Uint32Array; pairs: number; shift: number }

const MIN_SLOTS = 1024
const GROWTH = 1 + 1 / 16
const MAX_FILL = 0.85

export const createTable = (shift: number): Table => ({ slots: new Uint32Array(2 * MIN_SLOTS), pairs: 0, shift })

export function addPair(table: Table, first: number, second: number): void {
  if (table.pairs >= (table.slots.length / 2) * MAX_FILL) grow(table)
  table.pairs++
  put(table, first, second)
}

/** Returns all pairs whose first number is the same except for its lowest bits. */
export function findPairs(table: Table, first: number): [first: number, second: number][] {
  const { slots, shift } = table
  const found: [number, number][] = []
  const key = first >>> shift
  for (let at = placeOf(table, first); ; at = at + 2 === slots.length ? 0 : at + 2) {
    const [one, other] = [slots[at] as number, slots[at + 1] as number]
    if (one === 0 && other === 0) return found
    if (one >>> shift === key) found.push([one, other])
  }
}

export function* allPairs({ slots }: Table): Generator<[first: number, second: number]> {
  for (let at = 0; at < slots.length; at += 2) {
    const [one, other] = [slots[at] as number, slots[at + 1] as number]
    if (one !== 0 || other !== 0) yield [one, other]
  }
}

/** Returns the first slot to search. It multiplies by the golden ratio, which spreads consecutive numbers. */
function placeOf({ slots, shift }: Table, first: number): number {
  const spread = Math.imul(first >>> shift, 0x9e3779b1) >>> 0
  return 2 * Math.floor((spread / 2 ** 32) * (slots.length / 2))
}

function put(table: Table, first: number, second: number): void {
  const { slots } = table
  let at = placeOf(table, first)
  while (slots[at] !== 0 || slots[at + 1] !== 0) at = at + 2 === slots.length ? 0 : at + 2
  slots[at] = first
  slots[at + 1] = second
}

function grow(table: Table): void {
  const pairs = allPairs({ ...table })
  table.slots = new Uint32Array(2 * Math.ceil((table.slots.length / 2) * GROWTH))
  for (const [first, second] of pairs) put(table, first, second)
}

/** Returns a hash of 32 bits (FNV-1a, mixed at the end). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}
