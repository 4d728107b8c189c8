// Country codes of one and two digits (ITU E.164). All others have three.
const SHORT_CODES = /^(?:1|7|2[07]|3[0-46-9]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/

/** A number in groups, as people read it: `+48 500 100 202`. Masked digits stay masked. */
export function grouped(phone: string): string {
  if (!phone.startsWith('+')) return phone
  const digits = phone.slice(1)
  const code = SHORT_CODES.exec(digits)?.[0] ?? digits.slice(0, 3)
  const groups = digits.slice(code.length).match(/.{1,3}/gu) ?? []
  // No digit stands alone.
  const [last = ''] = groups.slice(-1)
  const joined = last.length === 1 && groups.length > 1 ? [...groups.slice(0, -2), `${groups.at(-2)}${last}`] : groups
  return [`+${code}`, ...joined].join(' ')
}
