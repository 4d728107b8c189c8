/** What people write between the digits of a number. In an address, %20 stands for a space. */
const BETWEEN = String.raw`(?:[\s()./\u2010-\u2015-]|%20){0,3}`
/** An amount, such as `+1 234.50`, which is no phone number. */
const AMOUNT = String.raw`[\d\s]{1,5}\.\d\d?(?!${BETWEEN}\d)`
/**
 * A phone number with its `+`, wherever it stands in a text. In an address, %2B stands for the `+`. The shortest have six digits. Eleven digits in a
 * row are a whole number, so a date after them stays as it is; after a number with separators, digits may be masked, too. A number with separators
 * begins with the code of a country, which has no leading zero.
 */
const WITH_PLUS = new RegExp(String.raw`(?<=\+|%2B)(?!${AMOUNT})(?:\d{11,15}|[1-9](?:${BETWEEN}\d){5,14}|\d{6,15})`, 'gi')

/** Hides all but the first two and the last two digits of each phone number with a plus sign. */
export function maskWithPlus(text: string): string {
  return text.replace(WITH_PLUS, (number) => maskParts(number, /%20|\d/g))
}

/** `parts`: finds the digits, and the escapes whose digits belong to no number. */
export function maskParts(number: string, parts: RegExp): string {
  const isDigit = (part: string) => !/^[%\\]/.test(part)
  const total = (number.match(parts) ?? []).filter(isDigit).length
  let digits = 0
  return number.replace(parts, (part) => {
    if (!isDigit(part)) return part
    digits += 1
    return digits <= 2 || digits > total - 2 ? part : '•'
  })
}

/**
 * What an entry of the audit log stores of a value. Herald writes numbers with a plus sign. All other digits stay, such as those of an order or an
 * address: the entry has to show what was changed, and can't be corrected later.
 */
export function maskEntry(value: unknown): unknown {
  if (typeof value === 'string') return maskWithPlus(value)
  if (Array.isArray(value)) return value.map(maskEntry)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [maskWithPlus(name), maskEntry(inner)]))
}
