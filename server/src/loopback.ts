import { BlockList, isIP } from 'node:net'

const addresses = new BlockList()
addresses.addSubnet('127.0.0.0', 8, 'ipv4')
addresses.addAddress('::1', 'ipv6')

/** Whether the host of a parsed URL, or of a request, can only be this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
}

/** Whether a host name or address can only be reached from this machine. A name such as 127.example.com is not. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  return host === 'localhost' || (family !== 0 && addresses.check(host, family === 6 ? 'ipv6' : 'ipv4'))
}
