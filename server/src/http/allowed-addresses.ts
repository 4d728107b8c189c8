import { BlockList, isIPv6 } from 'node:net'
import { plainAddress } from './limits.ts'

type Family = 'ipv4' | 'ipv6'
type Allowed = { networks: Record<Family, BlockList>; known: Set<string> }

// By the list of a caller: a cached caller keeps its list, so that nearly all its requests find their address in `known`. On a busy
// machine, a check in the networks took 14 µs, and making a list of one network 28 µs.
const byList = new WeakMap<readonly string[], Allowed>()
const MAX_KNOWN = 1_000

/** Whether a request from this address may use a key that is limited to these networks. An unknown address is in no network. */
export function isAllowedAddress(addresses: readonly string[], ip: string): boolean {
  let allowed = byList.get(addresses)
  if (allowed === undefined) {
    allowed = { networks: networksOf(addresses), known: new Set() }
    byList.set(addresses, allowed)
  }
  const { networks, known } = allowed
  if (known.has(ip)) return true
  const address = plainAddress(ip)
  const family = familyOf(address)
  if (address === 'unknown' || !networks[family].check(address, family)) return false
  if (known.size === MAX_KNOWN) known.clear()
  known.add(ip)
  return true
}

/** A list for each family: a network of IPv6 such as ::/0 would also match every IPv4 address. */
function networksOf(addresses: readonly string[]): Record<Family, BlockList> {
  const networks = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const network of addresses) {
    const [address = '', prefix] = network.split('/')
    networks[familyOf(address)].addSubnet(address, Number(prefix), familyOf(address))
  }
  return networks
}

const familyOf = (address: string): Family => (isIPv6(address) ? 'ipv6' : 'ipv4')
