import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4, SocketAddress } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

/** At most `quota` requests in any span of `windowMs`. */
export type Policy = { name: string; quota: number; windowMs: number }

export type Verdict = {
  allowed: boolean
  /** How long an allowed request has to wait for its turn: 0, or up to HOLD_MS. */
  waitMs: number
  remaining: number
  /** Until the window has room again for one more. */
  resetMs: number
}

/**
 * A request that comes a moment too early gets the turn that is about to come, and is held until then, instead of being refused. Without
 * this, evenly spaced requests at the limit would not all pass: on their way some gain a fraction of a millisecond on the one before
 * (measured at 35 a second: 1 in 40 was refused). The window is as exact as ever, since the turn is what counts. 25 ms is less than the
 * 28.6 ms between two requests at the limit of POST /messages.
 */
export const HOLD_MS = 25

/** Counts one request of `subject` under `policy`, and says whether it may pass. Refused requests are not counted. */
export type Limiter = (policy: Policy, subject: string) => Promise<Verdict>

/**
 * What the limits count as one address. Of IPv6 the first 64 bits: a single customer has all of the rest. IPv4 written as IPv6 is the same
 * address as without, and a port, which some proxies add, is not part of one. Whatever else a proxy may have passed on counts as one, and so do
 * those who had broken their connection off when their request was read: the system no longer knows whose it was.
 */
export function countedAddress(ip = 'unknown'): string {
  // Almost every one, and in a fiftieth of the 4 µs that the rest takes.
  const short = ip.startsWith('::ffff:') ? ip.slice('::ffff:'.length) : ip
  if (isIPv4(short)) return short
  const plain = ip.replace(/%.*$/, '')
  const { address = 'unknown' } = SocketAddress.parse(isIP(plain) === 6 ? `[${plain}]` : plain) ?? {}
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)
  if (mapped !== null) return mapped[1] as string
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const front = head.split(':').filter(Boolean)
  const back = tail?.split(':').filter(Boolean) ?? []
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return `${[...front, ...zeros, ...back].slice(0, 4).join(':')}::/64`
}

export function addressOf(request: FastifyRequest): string {
  return countedAddress(request.ip as string | undefined)
}

/** The same for a request that Fastify does not see, by the package that Fastify reads X-Forwarded-For with. */
export function createAddressReader(trustProxy: string[]): (request: IncomingMessage) => string {
  if (trustProxy.length === 0) return ({ socket }) => countedAddress(socket.remoteAddress)
  const isTrusted = proxyAddr.compile(trustProxy)
  return (request) => countedAddress(proxyAddr.all(request, isTrusted).at(-1))
}

/** The header pair of the IETF draft "RateLimit header fields for HTTP", and the refusal itself. */
export function applyVerdict(reply: FastifyReply, policy: Policy, verdict: Verdict): void {
  // To the microsecond first: a sum of fractions that is over a whole second by a hair is that second.
  const seconds = Math.ceil(Math.round(verdict.resetMs * 1000) / 1_000_000)
  reply.header('RateLimit-Policy', `"${policy.name}";q=${policy.quota};w=${policy.windowMs / 1000}`)
  reply.header('RateLimit', `"${policy.name}";r=${verdict.remaining};t=${seconds}`)
  if (!verdict.allowed) {
    const headers = { 'Retry-After': String(Math.max(1, seconds)) }
    const reason = `At most ${policy.quota} requests in ${policy.windowMs / 1000} s; try again in ${Math.max(1, seconds)} s.`
    throw new ApiError('RCS_RATE_LIMITED', { headers, details: [{ path: '', reason }] })
  }
}
