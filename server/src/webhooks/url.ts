import { wrongUsage } from '../errors.ts'
import { isPublicHost } from '../public-host.ts'

const MAX_URL_LENGTH = 2048

/**
 * Returns the URL of an endpoint in the form it is stored, or throws an error that says what is wrong with it. Does not resolve the name;
 * that happens when connecting.
 */
export function checkEndpointUrl(url: string, allowPrivate: boolean): string {
  const parsed = URL.parse(url)
  if (parsed === null) throw wrongUsage('This is not a URL; an example is https://hooks.example.com/herald.')
  if (parsed.protocol !== 'https:' && !(allowPrivate && parsed.protocol === 'http:')) {
    throw wrongUsage(`The URL must begin with ${allowPrivate ? 'https:// or http://' : 'https://'}.`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw wrongUsage('The URL must have no user name and no password; the endpoint recognises Herald by the signature.')
  }
  // `hash` omits an empty fragment; any other # is escaped in `href`.
  if (parsed.href.includes('#')) throw wrongUsage('The URL must have no fragment (the part from # on), which is never sent.')
  if (parsed.href.length > MAX_URL_LENGTH) throw wrongUsage(`The URL must have at most ${MAX_URL_LENGTH} characters.`)
  if (parsed.port === '0') throw wrongUsage('The URL must have a port from 1 to 65535, or none.')
  if (!allowPrivate && !isPublicHost(parsed.hostname)) {
    throw wrongUsage(`${parsed.hostname} is not a host of the public internet.`)
  }
  return parsed.href
}
