import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { buildConnector } from 'undici'
import { isLoopback, isLoopbackHost } from '../loopback.ts'
import { isPublicAddress, type WebhookHosts } from '../public-host.ts'

/** Includes the DNS look-up, TCP and TLS. */
export const CONNECT_MS = 5_000
// Node tries the next address after 250 ms by default, too short for a slow intercontinental connection.
const NEXT_ADDRESS_MS = 500

/** The message does not contain the refused address: a caller that names hosts could learn internal addresses from it. */
export class NotPublic extends Error {}

/** Returns all addresses of a name. */
type Lookup = (name: string) => Promise<LookupAddress[]>
export type Connector = buildConnector.connector
export type ConnectorOptions = {
  hosts: WebhookHosts
  lookup?: Lookup
  isAllowed?: (address: string) => boolean
  tls?: Pick<ConnectionOptions, 'ca'>
}

/**
 * Connects to public addresses only. Herald resolves a name once per connection, and connects to the addresses it has checked: between a
 * check and a second look-up, a name could resolve to another address. Uses no proxy, whatever the environment says.
 *
 * With `loopback`, only a URL that names this machine leads to it. A public name that resolves to 127.0.0.1 is still refused.
 */
export function createConnector({ hosts, lookup, isAllowed = isPublicAddress, tls }: ConnectorOptions): Connector {
  const mayReach = (hostname: string) => (address: string) =>
    hosts === 'any' ||
    (!address.includes('%') && (isAllowed(address) || (hosts === 'loopback' && isLoopbackHost(hostname) && isLoopback(address))))
  const lookUp = lookup ?? (hosts === 'any' ? systemLookup : hosts === 'loopback' ? loopbackOrPublicLookup : publicLookup)
  const connect = buildConnector({
    ...tls,
    timeout: CONNECT_MS,
    allowH2: false,
    // Node does not check the name in the certificate when it resumes a session. Connections are kept open, so resuming would save little.
    maxCachedSessions: 0,
    lookup: checkedLookup(lookUp, mayReach),
    // Set here because Node's command line can turn it off. It makes `lookup` return all addresses at once.
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
  }) as (...args: Parameters<Connector>) => Socket

  return ({ hostname, protocol, port, host }, callback) => {
    const isLiteral = isIP(hostname) !== 0
    const mayConnect = mayReach(hostname)
    // `lookup` is not called for an IP address, so check it here.
    if (isLiteral && !mayConnect(hostname)) {
      queueMicrotask(() => callback(new NotPublic(`${hostname} is not an address of the public internet`), null))
      return
    }
    // The server name in TLS has no trailing dot.
    const name = isLiteral ? {} : { servername: hostname.replace(/\.$/, '') }
    const socket = connect({ hostname, protocol, port, ...(host !== undefined && { host }), ...name }, callback)
    // Runs before TLS, which listens to the same event: not even a ClientHello goes to an address that slipped through.
    socket.prependOnceListener('connect', () => {
      if (!mayConnect(socket.remoteAddress ?? '')) socket.destroy(notPublic(hostname))
    })
  }
}

/** Also resolves names from the hosts file, which development needs. */
const systemLookup: Lookup = (name) => dns.lookup(name, { all: true })

/** Name servers need not know `localhost`. */
const loopbackOrPublicLookup: Lookup = (name) => (isLoopback(name) ? systemLookup : publicLookup)(name)

const NAME_SERVER_MS = 1_500
let shared: Lookup | undefined

/** One resolver per process: each has its own socket and cache. */
const publicLookup: Lookup = (name) => {
  shared ??= createLookup()
  return shared(name)
}

/**
 * Queries the name servers directly. The system resolver handles two names at a time for the whole process, including the database's, and
 * takes 10 s to fail on a silent name server: measured, while two names are stuck, every other look-up waits that long. `servers`: use
 * these instead of the system's.
 */
export function createLookup(servers?: string[]): Lookup {
  const resolver = new dns.Resolver({ timeout: NAME_SERVER_MS, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const [v6, v4] = await Promise.allSettled([resolver.resolve6(name), resolver.resolve4(name)])
    const found = [...addressesOf(v6, 6), ...addressesOf(v4, 4)]
    if (found.length > 0) return found
    const codes = [v6, v4].map((settled) => settled.status === 'rejected' && (settled.reason as NodeJS.ErrnoException).code)
    const isUnknown = codes.every((code) => code === 'ENOTFOUND' || code === 'ENODATA')
    throw Object.assign(new Error('no addresses'), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' })
  }
}

function addressesOf(settled: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return settled.status === 'fulfilled' ? settled.value.map((address) => ({ address, family })) : []
}

/** In the form that `net` expects. Refuses a name if any of its addresses is not public, since which address gets used is left to chance. */
function checkedLookup(lookup: Lookup, mayReach: (hostname: string) => (address: string) => boolean): LookupFunction {
  const lookUpOnce = shareLookups(lookup)
  return (hostname, _, callback) => {
    lookUpOnce(hostname)
      .then((addresses) => {
        if (addresses.length === 0) throw Object.assign(new Error('no addresses'), { code: 'ENOTFOUND' })
        const mayConnect = mayReach(hostname)
        if (!addresses.every(({ address }) => mayConnect(address))) throw notPublic(hostname)
        return addresses
      })
      .then(
        (addresses) => callback(null, addresses),
        (error: NodeJS.ErrnoException) => callback(error, []),
      )
  }
}

/** Concurrent connections to a name share one look-up. Nothing is cached after it. */
function shareLookups(lookup: Lookup): Lookup {
  const inProgress = new Map<string, Promise<LookupAddress[]>>()
  return (name) => {
    const shared = inProgress.get(name) ?? lookup(name).finally(() => inProgress.delete(name))
    inProgress.set(name, shared)
    return shared
  }
}

function notPublic(hostname: string): NotPublic {
  return new NotPublic(`${hostname} resolves to an address that is not public`)
}
