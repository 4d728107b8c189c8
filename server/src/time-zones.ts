const MAX_CACHED_ZONES = 1_000

export const TIME_ZONE = 'the IANA name of a time zone, such as Europe/Warsaw'
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{1,63}$/
const zonesByText = new Map<string, string>()

/** The name as IANA spells it, null if the text is empty; undefined if there is no such zone. */
export function readTimeZone(text: string): string | null | undefined {
  if (text === '') return null
  const known = zonesByText.get(text)
  if (known !== undefined || !ZONE_NAME.test(text)) return known
  try {
    const zone = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
    if (zonesByText.size < MAX_CACHED_ZONES) zonesByText.set(Buffer.from(text).toString(), zone)
    return zone
  } catch {
    return undefined
  }
}
