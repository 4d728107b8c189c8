/**
 * The address as the network takes it, which is as RFC 3986 has it: in ASCII, and not all of that. One that is so already stays as it was
 * written. URL alone is more lenient: it leaves `|`, `^` and a percent sign that begins nothing as they are.
 */
export function encodedUrl(url: string): string {
  if (isEncoded(url)) return url
  return new URL(url).href.replaceAll(LONE_PERCENT, '%25').replaceAll(NOT_IN_AN_ADDRESS, encodeURIComponent)
}

const LONE_PERCENT = /%(?![0-9a-f]{2})/gi
const NOT_IN_AN_ADDRESS = /[^!#$%&-;=?-[\]_a-z~]/gi

function isEncoded(url: string): boolean {
  return /^(?:[!#$&-;=?-[\]_a-z~]|%[0-9a-f]{2})*$/i.test(url)
}
