import { wrongUsage } from '../errors.ts'
import { isLoopbackHost } from '../loopback.ts'
import { isPublicHost, type WebhookHosts } from '../public-host.ts'

const MAX_URL_LENGTH = 2048

/** What is wrong with the URL of an endpoint; undefined if nothing is. Does not resolve the name; that happens when connecting. */
export function urlProblem(url: string, hosts: WebhookHosts): string | undefined {
  const parsed = URL.parse(url)
  if (parsed === null) return 'must be a URL, such as https://hooks.example.com/herald'
  const mayUseHttp = hosts === 'any' || (hosts === 'loopback' && isLoopbackHost(parsed.hostname))
  const scheme = `must begin with ${mayUseHttp ? 'https:// or http://' : 'https://'}`
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:') return scheme
  if (parsed.username !== '' || parsed.password !== '') {
    return 'must have no user name and no password'
  }
  // `hash` omits an empty fragment; any other # is escaped in `href`.
  if (parsed.href.includes('#')) return 'must have no fragment (the part from # on), which is never sent'
  if (parsed.href.length > MAX_URL_LENGTH) return `must have at most ${MAX_URL_LENGTH} characters`
  if (parsed.port === '0') return 'must have a port from 1 to 65535, or none'
  if (!mayBeHost(parsed.hostname, hosts)) {
    return `must have a host of the public internet, unlike ${parsed.hostname}; for development, HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it`
  }
  return parsed.protocol === 'http:' && !mayUseHttp ? scheme : undefined
}

/** The URL in the form it is stored. Throws an error that says what is wrong with it. */
export function checkEndpointUrl(url: string, hosts: WebhookHosts): string {
  const problem = urlProblem(url, hosts)
  if (problem !== undefined) throw wrongUsage(`The URL ${problem}.`)
  return new URL(url).href
}

function mayBeHost(hostname: string, hosts: WebhookHosts): boolean {
  return hosts === 'any' || isPublicHost(hostname) || (hosts === 'loopback' && isLoopbackHost(hostname))
}
