// The values of date fields, which are in the zone of the browser.

/** A time of the API as a value of a field; empty without one. */
export function toField(time: string | undefined): string {
  const date = new Date(time ?? '')
  if (Number.isNaN(date.getTime())) return ''
  const two = (value: number) => String(value).padStart(2, '0')
  // By its parts, since the offset of years long ago has seconds: while a person types a year, the minutes would change.
  const day = [String(date.getFullYear()).padStart(4, '0'), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`
}

export function fromField(value: string): string | undefined {
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
