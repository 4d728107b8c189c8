const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/

/** The length in code points, the unit of all limits. */
export function lengthOf(text: string): number {
  // Most texts have no surrogate pairs. For 256 KiB, the search takes 0.1 ms and the count 1.5 ms.
  if (!SURROGATE_PAIR.test(text)) return text.length
  let pairs = 0
  for (let index = 0; index < text.length; index += 1) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) pairs += 1
  }
  return text.length - pairs
}
