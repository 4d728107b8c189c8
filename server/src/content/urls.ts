/**
 * The address as the network takes it, which is as RFC 3986 has it: in ASCII, and not all of that. One that is so already stays as it was
 * written. URL alone is more lenient: it leaves `|` and `^` as they are.
 */
export function encodedUrl(url: string): string {
  return isEncoded(url) ? url : new URL(url).href.replaceAll(NOT_IN_AN_ADDRESS, encodeURIComponent)
}

const NOT_IN_AN_ADDRESS = /[^!#$%&-;=?-[\]_a-z~]/gi

function isEncoded(url: string): boolean {
  return /^(?:[!#$&-;=?-[\]_a-z~]|%[0-9a-f]{2})*$/i.test(url)
}
