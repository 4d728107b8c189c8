// The characters that RFC 3986 allows after the host. Node's URL is more lenient: it keeps `|`, `^`, brackets and a lone percent sign.
const ENCODED = /^(?:[!#$&-;=?-Z_a-z~]|%[0-9a-f]{2})*$/i
const NOT_ALLOWED = /[^!#$%&-;=?-Z_a-z~]/g
const LONE_PERCENT = /%(?![0-9a-f]{2})/gi

/** The URL in the form that the network accepts. A URL that is already valid is not changed. */
export function encodedUrl(url: string): string {
  const [authority, rest] = partsOf(url)
  if (/^[!-~]*$/.test(authority) && ENCODED.test(rest)) return url
  const [asciiAuthority, asciiRest] = partsOf(new URL(url).href)
  return `${asciiAuthority}${asciiRest.replaceAll(LONE_PERCENT, '%25').replaceAll(NOT_ALLOWED, encodeURIComponent)}`
}

/** Splits a URL into scheme and host (at least one character), and the rest. */
function partsOf(url: string): [authority: string, rest: string] {
  const end = url.slice('https://'.length).search(/[/?#]/)
  return end === -1 ? [url, ''] : [url.slice(0, 'https://'.length + end), url.slice('https://'.length + end)]
}
