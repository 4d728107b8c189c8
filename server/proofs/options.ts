/** An option of a command; undefined where it is not given. */
export function wholeNumber(name: string, value: string | undefined, least: number): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,10}$/.test(value) || Number(value) < least) throw new Error(`${name} must be a whole number from ${least} on.`)
  return Number(value)
}
