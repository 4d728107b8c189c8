import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { fieldsOf } from '../json.ts'
import type { Http, Response } from './http.ts'

/** The fields used from a service account's key file, as downloaded from Google's console. */
export type ServiceAccount = { client_email: string; private_key: string; private_key_id?: string; token_uri: string }

export type AccessTokens = {
  /** Returns a token that is valid now, if there is one. Renews it ahead of its expiry. */
  current: () => string | undefined
  /** Gets a new token. Concurrent callers share one request. Throws if Google issues no token. */
  renew: () => Promise<string>
  /** Call it when the network rejects a token before its expiry: the next caller gets another one. */
  discard: (token: string) => void
}

type Token = { token: string; lifetimeMs: number }

const SCOPE = 'https://www.googleapis.com/auth/rcsbusinessmessaging'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ASSERTION_SECONDS = 3600
const USUAL_LIFETIME_MS = 3_600_000
// A token is renewed while still valid, so that no caller waits for the new one: five minutes ahead of expiry, or a tenth of a shorter
// lifetime.
const RENEW_AHEAD_MS = 300_000
const RENEW_AHEAD_SHARE = 0.1
// The delay before the next try after a failed renewal. The old token is still valid meanwhile.
const RENEW_AGAIN_MS = 5_000
// Google rejects assertions whose time is off by more than some minutes. Below this offset, the clock is not the cause of a rejection.
const CLOCK_OFF_MS = 30_000

/** `now`: a monotonic clock, since a token's lifetime is a duration. */
export function createAccessTokens(account: ServiceAccount, http: Http, now = () => performance.now()): AccessTokens {
  const key = createPrivateKey(account.private_key)
  let current: { token: string; renewAt: number; expiresAt: number } | undefined
  let renewal: Promise<string> | undefined
  /** How far this machine's clock is behind the network's. */
  let clockOffsetMs = 0

  function renew(): Promise<string> {
    renewal ??= fetchToken()
      .then(({ token, lifetimeMs }) => {
        const aheadMs = Math.min(RENEW_AHEAD_MS, lifetimeMs * RENEW_AHEAD_SHARE)
        current = { token, renewAt: now() + lifetimeMs - aheadMs, expiresAt: now() + lifetimeMs }
        return token
      })
      .finally(() => {
        renewal = undefined
      })
    return renewal
  }

  async function fetchToken(): Promise<Token> {
    const response = await requestToken(account, key, http, clockOffsetMs)
    const token = tokenOf(response)
    if (token !== undefined) return token
    const offsetMs = Date.parse(String(response.headers.date)) - Date.now()
    if (errorOf(response) !== 'invalid_grant' || !(Math.abs(offsetMs - clockOffsetMs) > CLOCK_OFF_MS)) throw noToken(response)
    // This machine's clock is off: use the time of the network's response instead.
    clockOffsetMs = offsetMs
    const second = await requestToken(account, key, http, clockOffsetMs)
    const secondToken = tokenOf(second)
    if (secondToken === undefined) throw noToken(second)
    return secondToken
  }

  return {
    current: () => {
      if (current === undefined || now() >= current.expiresAt) return undefined
      if (now() >= current.renewAt && renewal === undefined) {
        const { expiresAt } = current
        renew().catch(() => {
          if (current?.expiresAt === expiresAt) current.renewAt = now() + RENEW_AGAIN_MS
        })
      }
      return current.token
    },
    renew,
    discard: (token) => {
      if (current?.token === token) current = undefined
    },
  }
}

async function requestToken(account: ServiceAccount, key: KeyObject, http: Http, clockOffsetMs: number): Promise<Response> {
  const { pathname, search } = new URL(account.token_uri)
  const form = new URLSearchParams({ grant_type: GRANT, assertion: assertion(account, key, Date.now() + clockOffsetMs) })
  return await http.call({
    method: 'POST',
    path: `${pathname}${search}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
}

function tokenOf({ status, body }: Response): Token | undefined {
  const { access_token: token, expires_in: seconds } = fieldsOf(body)
  // A token that is not valid in a header would make every call fail for its whole lifetime.
  if (status !== 200 || typeof token !== 'string' || !/^[!-~]+$/.test(token)) return undefined
  return { token, lifetimeMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : USUAL_LIFETIME_MS }
}

function errorOf({ body }: Response): string {
  const { error } = fieldsOf(body)
  return typeof error === 'string' ? error : ''
}

function noToken(response: Response): Error {
  return new Error(`no access token: ${response.status} ${errorOf(response)}`.trimEnd())
}

function assertion({ client_email, private_key_id, token_uri }: ServiceAccount, key: KeyObject, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  const header = { alg: 'RS256', typ: 'JWT', ...(private_key_id !== undefined && { kid: private_key_id }) }
  const claims = { iss: client_email, scope: SCOPE, aud: token_uri, iat: seconds, exp: seconds + ASSERTION_SECONDS }
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
}
