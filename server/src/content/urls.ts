// Of an address after its host, as RFC 3986 has it: in ASCII, and not all of that. URL alone is more lenient: it leaves `|`, `^`, brackets
// and a percent sign that begins nothing as they are.
const ENCODED = /^(?:[!#$&-;=?-Z_a-z~]|%[0-9a-f]{2})*$/i
const NOT_IN_AN_ADDRESS = /[^!#$%&-;=?-Z_a-z~]/g
const LONE_PERCENT = /%(?![0-9a-f]{2})/gi

/** The address as the network takes it. One that is so already stays as it was written. */
export function encodedUrl(url: string): string {
  const [authority, rest] = partsOf(url)
  if (/^[!-~]*$/.test(authority) && ENCODED.test(rest)) return url
  const [asciiAuthority, asciiRest] = partsOf(new URL(url).href)
  return `${asciiAuthority}${asciiRest.replaceAll(LONE_PERCENT, '%25').replaceAll(NOT_IN_AN_ADDRESS, encodeURIComponent)}`
}

/** Scheme and host, which has a character at the least; and what follows them. */
function partsOf(url: string): [authority: string, rest: string] {
  const end = url.slice('https://'.length).search(/[/?#]/)
  return end === -1 ? [url, ''] : [url.slice(0, 'https://'.length + end), url.slice('https://'.length + end)]
}
