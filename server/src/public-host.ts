import { BlockList, isIP } from 'node:net'

/**
 * The hosts that webhooks may go to. `loopback`: the public internet and this machine itself, as suits a trial with the simulated network.
 * `any`: private addresses too.
 */
export type WebhookHosts = 'public' | 'loopback' | 'any'

// Addresses outside the public internet, from IANA's registries of special-purpose addresses.
const RESERVED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Not in a registry: the address at which Azure's machines reach their host.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
// In IPv6 only 2000::/3 is public, except for addresses that wrap an IPv4 address (Teredo, 6to4) or are for documentation.
const PUBLIC_IPV6 = ['2000::/3']
const RESERVED_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const reserved = blockList([...RESERVED_IPV4, ...RESERVED_IPV6])
const publicIpv6 = blockList(PUBLIC_IPV6)

function blockList(ranges: string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    list.addSubnet(network, Number(prefix), isIP(network) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/** Takes an IPv4 or IPv6 address in its usual notation. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !reserved.check(address, 'ipv4')
  return isIP(address) === 6 && publicIpv6.check(address, 'ipv6') && !reserved.check(address, 'ipv6')
}

/**
 * Whether the name or address of a host is a public one. Makes no DNS query. `host` is the host of a parsed URL: there an address has its usual
 * notation, whether the caller wrote it in decimal, hex or octal, escaped, or in wide digits.
 */
export function isPublicHost(host: string): boolean {
  if (host.startsWith('[')) return isPublicAddress(host.slice(1, -1))
  if (isIP(host) === 4) return isPublicAddress(host)
  const name = host.replace(/\.$/, '')
  const labels = name.split('.')
  const isName = name.length <= 253 && labels.length > 1 && labels.every((label) => LABEL.test(label))
  return isName && !['localhost', 'local', 'internal'].includes(labels.at(-1) ?? '')
}

// A label as DNS allows it, and the underscore that some hosts use anyway.
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
