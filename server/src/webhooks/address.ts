import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { buildConnector } from 'undici'
import { isPublicAddress } from '../public-host.ts'

/** Until TCP and TLS are up, looking up the name included. */
export const CONNECT_MS = 5_000
// Node gives an address 250 ms before it tries the next one, which a slow line over an ocean does not keep.
const NEXT_ADDRESS_MS = 500

/** The address refused is not told: whoever names a host would learn from it what is inside. */
export class NotPublic extends Error {}

/** All addresses of a name. */
export type Lookup = (name: string) => Promise<LookupAddress[]>
export type Connector = buildConnector.connector
export type ConnectorOptions = {
  allowPrivate: boolean
  lookup?: Lookup
  isAllowed?: (address: string) => boolean
  tls?: Pick<ConnectionOptions, 'ca'>
}

/**
 * Connects to public addresses only. A name is looked up once for a connection, by us, and what is connected to is what was looked up and
 * checked: between a check and a second look-up, a name could change its mind. Knows no proxy, whatever the environment says.
 */
export function createConnector({
  allowPrivate,
  lookup = allowPrivate ? systemLookup : publicLookup,
  isAllowed = isPublicAddress,
  tls,
}: ConnectorOptions): Connector {
  const mayConnect = (address: string) => allowPrivate || (!address.includes('%') && isAllowed(address))
  const connect = buildConnector({
    ...tls,
    timeout: CONNECT_MS,
    allowH2: false,
    // The name in a certificate is not checked where a session is resumed. Connections are kept, so that resuming would save little.
    maxCachedSessions: 0,
    lookup: checkedLookup(lookup, mayConnect),
    // Said here, since the command line of Node can turn it off. With it, all addresses are asked for at once.
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
  }) as (...args: Parameters<Connector>) => Socket

  return ({ hostname, protocol, port, host }, callback) => {
    const isLiteral = isIP(hostname) !== 0
    // Nobody looks up what is an address already, so that the function for that would never be asked.
    if (isLiteral && !mayConnect(hostname)) {
      queueMicrotask(() => callback(new NotPublic(`${hostname} is not an address of the public internet`), null))
      return
    }
    // In TLS a name stands without the dot that it may end with.
    const name = isLiteral ? {} : { servername: hostname.replace(/\.$/, '') }
    const socket = connect({ hostname, protocol, port, ...(host !== undefined && { host }), ...name }, callback)
    // Before TLS begins, which waits for the same event: not even a greeting goes to an address that slipped through.
    socket.prependOnceListener('connect', () => {
      if (!mayConnect(socket.remoteAddress ?? '')) socket.destroy(notPublic(hostname))
    })
  }
}

/** Also knows names of this machine alone, which development needs. */
const systemLookup: Lookup = (name) => dns.lookup(name, { all: true })

const NAME_SERVER_MS = 1_500
let shared: Lookup | undefined

/** One for the process: each has a socket and a memory of its own. */
const publicLookup: Lookup = (name) => {
  shared ??= createLookup()
  return shared(name)
}

/**
 * Asks the name servers by itself. The system's own look-up takes two names at a time for the whole process, the database's too, and gives up
 * on a dead one after 10 s: measured, beside two names whose servers are silent every other one waits as long. `servers`: others than
 * the system's.
 */
export function createLookup(servers?: string[]): Lookup {
  const resolver = new dns.Resolver({ timeout: NAME_SERVER_MS, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const [v6, v4] = await Promise.allSettled([resolver.resolve6(name), resolver.resolve4(name)])
    const found = [...addressesOf(v6, 6), ...addressesOf(v4, 4)]
    if (found.length > 0) return found
    const codes = [v6, v4].map((answer) => answer.status === 'rejected' && (answer.reason as NodeJS.ErrnoException).code)
    const isUnknown = codes.every((code) => code === 'ENOTFOUND' || code === 'ENODATA')
    throw Object.assign(new Error('no addresses'), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' })
  }
}

function addressesOf(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : []
}

/** As `net` wants it. One address that is not public is enough to refuse a name: which one is taken would be left to chance. */
function checkedLookup(lookup: Lookup, mayConnect: (address: string) => boolean): LookupFunction {
  const lookUpOnce = sharing(lookup)
  return (hostname, _, callback) => {
    lookUpOnce(hostname)
      .then((addresses) => {
        if (addresses.length === 0) throw Object.assign(new Error('no addresses'), { code: 'ENOTFOUND' })
        if (!addresses.every(({ address }) => mayConnect(address))) throw notPublic(hostname)
        return addresses
      })
      .then(
        (addresses) => callback(null, addresses),
        (error: NodeJS.ErrnoException) => callback(error, []),
      )
  }
}

/** Connections that are made at the same time share a look-up; nothing is kept after it. */
function sharing(lookup: Lookup): Lookup {
  const underway = new Map<string, Promise<LookupAddress[]>>()
  return (name) => {
    const shared = underway.get(name) ?? lookup(name).finally(() => underway.delete(name))
    underway.set(name, shared)
    return shared
  }
}

function notPublic(hostname: string): NotPublic {
  return new NotPublic(`${hostname} resolves to an address that is not public`)
}
