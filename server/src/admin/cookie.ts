import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { plainAddress } from '../http/limits.ts'
import { isLoopback, isLoopbackHost } from '../loopback.ts'

// Browsers refuse a cookie with this prefix unless it is Secure, has the path / and no Domain: no other host can set or read it.
const SECURE_COOKIE = '__Host-herald'
/** On plain HTTP, which is allowed on loopback only. Browsers would not send a Secure cookie there. */
const LOCAL_COOKIE = 'herald-local'

const cookieName = (request: FastifyRequest) => (request.protocol === 'https' ? SECURE_COOKIE : LOCAL_COOKIE)

/** A cookie that came over an insecure connection could have been read on the way, so it is no session. */
export function sessionSecret(request: FastifyRequest): string | undefined {
  if (insecurityOf(request) !== undefined) return undefined
  const wanted = cookieName(request)
  return cookiesOf(request).find(({ name }) => name === wanted)?.value
}

function cookiesOf(request: FastifyRequest): { name: string; value: string }[] {
  // Without a regular expression: a pattern that trims both ends took 3 s for a header of 16 KiB of spaces.
  return (request.headers.cookie ?? '').split(';').map((each) => {
    const [name = '', ...value] = each.trim().split('=')
    return { name, value: value.join('=') }
  })
}

/** Refuses a sign-in whose password or cookie could be read on the way. */
export function checkSecure(request: FastifyRequest): void {
  // The page of a browser on this machine is at a loopback address. Some proxies replace Host and add no header, and show only here.
  const page = URL.parse(request.headers.origin ?? '')
  const isRemotePage = request.protocol !== 'https' && page !== null && !isLoopbackHost(page.hostname)
  const reason = insecurityOf(request) ?? (isRemotePage ? BEHIND_PROXY : undefined)
  if (reason !== undefined) throw new ApiError('RCS_INSECURE_CONNECTION', { details: [{ path: '', reason }] })
}

const BEHIND_PROXY =
  'The request came through a proxy that Herald does not trust: set HERALD_TRUST_PROXY to its address, and let it send X-Forwarded-For and X-Forwarded-Proto.'

/**
 * Why the connection is insecure; undefined if it is secure. Without HTTPS, the browser must be on this machine. Behind a proxy that Herald does
 * not trust, every client seems to be.
 */
function insecurityOf(request: FastifyRequest): string | undefined {
  const { protocol, ip, ips, hostname, headers } = request
  if (protocol === 'https') return undefined
  if (!isLoopback(plainAddress(ip))) {
    return 'Use HTTPS. If a proxy ends it, set HERALD_TRUST_PROXY to its address, and let it send X-Forwarded-Proto.'
  }
  const isForwarded = Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'))
  // `ips` begins with the address of the connection. More addresses follow only if a trusted proxy named them.
  if (isForwarded && (ips ?? []).length < 2) return BEHIND_PROXY
  return isLoopbackHost(hostname) ? undefined : `Use HTTPS, or open the console at localhost, not at ${hostname}.`
}

/** A session cookie ends with the browser; the server ends it earlier if it is not used. */
export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, secret: string): void {
  reply.header('Set-Cookie', `${cookieName(request)}=${secret}; ${attributes(request)}`)
}

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('Set-Cookie', `${cookieName(request)}=; Max-Age=0; ${attributes(request)}`)
}

const attributes = (request: FastifyRequest, sameSite = 'Strict') =>
  `Path=/; HttpOnly; SameSite=${sameSite}${request.protocol === 'https' ? '; Secure' : ''}`

/** How long a person may take at the OpenID provider. */
const FLOW_SECONDS = 600
/** Each tab that signs in has a cookie of its own. Further cookies were left by tabs that never came back. */
const MAX_FLOWS = 5

const flowName = (request: FastifyRequest, state: string) => `${cookieName(request)}-oidc-${state.slice(0, 16)}`

/**
 * Keeps a flow in this browser until the person comes back from the OpenID provider. Lax, since browsers do not send a strict cookie when another
 * site redirects them here.
 */
export function setFlowCookie(request: FastifyRequest, reply: FastifyReply, state: string, value: string): void {
  const earlier = cookiesOf(request).filter(({ name }) => name.startsWith(flowName(request, '')))
  // Browsers send the oldest first.
  for (const { name } of earlier.slice(0, Math.max(0, earlier.length + 1 - MAX_FLOWS))) {
    reply.header('Set-Cookie', `${name}=; Max-Age=0; ${attributes(request, 'Lax')}`)
  }
  reply.header('Set-Cookie', `${flowName(request, state)}=${value}; Max-Age=${FLOW_SECONDS}; ${attributes(request, 'Lax')}`)
}

/** Returns what was kept for the state. */
export function findFlowCookie(request: FastifyRequest, state: string): string | undefined {
  const wanted = flowName(request, state)
  return cookiesOf(request).find(({ name }) => name === wanted)?.value
}

export function clearFlowCookie(request: FastifyRequest, reply: FastifyReply, state: string): void {
  reply.header('Set-Cookie', `${flowName(request, state)}=; Max-Age=0; ${attributes(request, 'Lax')}`)
}

/**
 * Refuses a changing request that another site may have made the browser send. Browsers name the site of a request in Sec-Fetch-Site, and older
 * ones in Origin. A request with neither comes from a program, which should use a token.
 */
export function checkSameSite(request: FastifyRequest): void {
  const { 'sec-fetch-site': site, origin } = request.headers
  const isSame = site === undefined ? origin === `${request.protocol}://${request.host}` : site === 'same-origin'
  if (isSame) return
  const reason = 'must be same-origin; programs use a token instead of a session'
  throw new ApiError('RCS_CROSS_SITE', { details: [{ path: '/sec-fetch-site', reason }] })
}
