import type { CustomFetch } from 'openid-client'
import { Agent } from 'undici'
import { call } from '../outbound/call.ts'

/** No usable response: the provider is gone, too slow, or has a fault. A TypeError, since `openid-client` passes those on as they are. */
export class ProviderUnavailable extends TypeError {}

/** From the call to the last byte of the response. A sign-in makes up to four calls, one after the other. */
const TIMEOUT_MS = 3_000
// Metadata, keys and tokens have some kilobytes; a token with hundreds of groups has some tens.
const MAX_RESPONSE_BYTES = 256 * 1024
const MAX_INTERIM_RESPONSES = 10

export type ProviderHttp = { fetch: CustomFetch; close: () => Promise<void> }

/** A `fetch` for `openid-client`, with a deadline and a bound on responses. Follows no redirects. */
export function createProviderHttp(): ProviderHttp {
  // `call` applies one deadline to all phases together.
  const agent = new Agent({ connect: { timeout: TIMEOUT_MS }, headersTimeout: 0, bodyTimeout: 0, pipelining: 1, allowH2: false })
  return {
    close: () => agent.destroy(),
    fetch: async (url, { method, headers, body }) => {
      const { origin, pathname, search } = new URL(url)
      const limits = {
        timeoutMs: TIMEOUT_MS,
        endsAt: performance.now() + TIMEOUT_MS,
        maxBytes: MAX_RESPONSE_BYTES,
        keptBytes: MAX_RESPONSE_BYTES,
      }
      const request = { origin, path: `${pathname}${search}`, method: method as 'GET', headers, body: body == null ? null : String(body) }
      const end = await call(agent, request, { ...limits, maxInterimResponses: MAX_INTERIM_RESPONSES })
      if (end.error !== undefined || end.status === undefined) throw unavailable(url, end.error?.message || end.error?.code)
      if (end.status >= 500 || (end.status >= 300 && end.status < 400)) throw unavailable(url, `status ${end.status}`)
      const fields = Object.entries(end.headers).map(([name, value]) => [name, String(value)] as [string, string])
      return new Response(end.status === 204 ? null : new Uint8Array(end.body), { status: end.status, headers: fields })
    },
  }
}

/** Without the query, which could have a secret. */
function unavailable(url: string, reason = 'the connection failed'): ProviderUnavailable {
  const { origin, pathname } = new URL(url)
  return new ProviderUnavailable(`${origin}${pathname}: ${reason}`)
}
