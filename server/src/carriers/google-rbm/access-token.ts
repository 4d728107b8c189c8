import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { fieldsOf } from '../json.ts'
import type { Answer, Http } from './http.ts'

/** The fields that we use of a service account's key file, as Google's console gives it out. */
export type ServiceAccount = { client_email: string; private_key: string; private_key_id?: string; token_uri: string }

export type AccessTokens = {
  /** One that is good right now, where there is one. Sees to it that it is renewed in time. */
  current: () => string | undefined
  /** A new one. Many callers share one request for it; throws where there is none to be had. */
  renew: () => Promise<string>
  /** The network did not take it, whatever its time says: the next caller gets another one. */
  discard: (token: string) => void
}

type Token = { token: string; lifetimeMs: number }

const SCOPE = 'https://www.googleapis.com/auth/rcsbusinessmessaging'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ASSERTION_SECONDS = 3600
const USUAL_LIFETIME_MS = 3_600_000
// Renewed while it is still good, so that nobody waits for the new one: five minutes ahead, or a tenth of a shorter life.
const RENEW_AHEAD_MS = 300_000
const RENEW_AHEAD_SHARE = 0.1
// After a renewal ahead of time has failed; the old one is still good meanwhile.
const RENEW_AGAIN_MS = 5_000
// Google refuses assertions whose time is further off than some minutes; below this the clock is not what it minds.
const CLOCK_OFF_MS = 30_000

/** `now`: a clock that nobody sets, since the life of a token is a span of time. */
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
    const answer = await requestToken(account, key, http, clockOffsetMs)
    const token = tokenOf(answer)
    if (token !== undefined) return token
    const offsetMs = Date.parse(String(answer.headers.date)) - Date.now()
    if (errorOf(answer) !== 'invalid_grant' || !(Math.abs(offsetMs - clockOffsetMs) > CLOCK_OFF_MS)) throw noToken(answer)
    // This machine's clock is off: the network's own is what counts.
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

async function requestToken(account: ServiceAccount, key: KeyObject, http: Http, clockOffsetMs: number): Promise<Answer> {
  const { pathname, search } = new URL(account.token_uri)
  const form = new URLSearchParams({ grant_type: GRANT, assertion: assertion(account, key, Date.now() + clockOffsetMs) })
  return await http.call({
    method: 'POST',
    path: `${pathname}${search}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
}

function tokenOf({ status, body }: Answer): Token | undefined {
  const { access_token: token, expires_in: seconds } = fieldsOf(body)
  // What a header can't hold would make every call fail, for as long as the token lives.
  if (status !== 200 || typeof token !== 'string' || !/^[!-~]+$/.test(token)) return undefined
  return { token, lifetimeMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : USUAL_LIFETIME_MS }
}

function errorOf({ body }: Answer): string {
  const { error } = fieldsOf(body)
  return typeof error === 'string' ? error : ''
}

function noToken(answer: Answer): Error {
  return new Error(`no access token: ${answer.status} ${errorOf(answer)}`.trimEnd())
}

function assertion({ client_email, private_key_id, token_uri }: ServiceAccount, key: KeyObject, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  const header = { alg: 'RS256', typ: 'JWT', ...(private_key_id !== undefined && { kid: private_key_id }) }
  const claims = { iss: client_email, scope: SCOPE, aud: token_uri, iat: seconds, exp: seconds + ASSERTION_SECONDS }
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
}
