import { randomBytes, verify } from 'node:crypto'
import type { Faults } from '../faults.ts'
import type { HttpResponse } from '../http/responses.ts'
import type { Call } from '../http/server.ts'
import type { Identity } from '../state/identity.ts'
import type { Store } from '../state/store.ts'

const SCOPE = 'https://www.googleapis.com/auth/rcsbusinessmessaging'
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const HOUR_S = 3600
// The allowed difference between two clocks.
const LEEWAY_S = 300

export type Tokens = {
  /** POST /token. */
  issue: (call: Call) => Promise<HttpResponse>
  isValid: (authorization: string | undefined) => boolean
}

/** Tokens outlive a restart, as Google's do. Expired tokens are removed when the next token is issued. */
export function createTokens(store: Store, identity: Identity, faults: Faults, tokenUri: () => string): Tokens {
  const { tokens: valid } = store.state

  async function make(): Promise<HttpResponse> {
    const expiresInS = faults.strikes('token.shortLived')?.expiresInSeconds ?? HOUR_S
    const token = `ya29.${randomBytes(48).toString('base64url')}`
    const at = Date.now()
    store.append({ is: 'token', token, at, expiresAt: at + expiresInS * 1000 })
    await store.committed()
    return { status: 200, body: JSON.stringify({ access_token: token, expires_in: expiresInS, token_type: 'Bearer' }) }
  }

  return {
    issue: async (call) => {
      const slow = faults.strikes('token.slow')
      if (slow !== undefined) await new Promise((resolve) => setTimeout(resolve, slow.ms))
      const refused = faults.strikes('token.refused')
      if (refused !== undefined) return oauthError(refused.status, 'invalid_client', 'A fault of the simulator refuses this request.')
      if (call.method !== 'POST') return oauthError(405, 'invalid_request', 'The method must be POST.')
      const form = new URLSearchParams(call.body.toString('utf8'))
      const problem = requestProblem(call, form) ?? assertionProblem(form.get('assertion') ?? '', identity, tokenUri())
      return problem ?? make()
    },
    isValid: (authorization) => {
      if (authorization === undefined || !authorization.startsWith('Bearer ')) return false
      return (valid.get(authorization.slice(7)) ?? 0) > Date.now()
    },
  }
}

function oauthError(status: number, error: string, description: string): HttpResponse {
  return { status, body: JSON.stringify({ error, error_description: description }) }
}
const invalidGrant = (description: string): HttpResponse => oauthError(400, 'invalid_grant', description)

function requestProblem(call: Call, form: URLSearchParams): HttpResponse | undefined {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(call.headers['content-type'] ?? '')) {
    return oauthError(400, 'invalid_request', 'The body must be application/x-www-form-urlencoded.')
  }
  const grantType = form.get('grant_type')
  if (grantType === null) return oauthError(400, 'invalid_request', 'Required parameter is missing: grant_type')
  if (grantType !== GRANT_TYPE) return oauthError(400, 'unsupported_grant_type', `Invalid grant_type: ${grantType}`)
  if (!form.get('assertion')) return oauthError(400, 'invalid_request', 'Required parameter is missing: assertion')
  return undefined
}

type Json = Record<string, unknown>

function assertionProblem(assertion: string, identity: Identity, tokenUri: string): HttpResponse | undefined {
  const [header = '', claims = '', signature = '', ...more] = assertion.split('.')
  const head = decode(header)
  const claim = decode(claims)
  if (more.length > 0 || head === undefined || claim === undefined) return oauthError(400, 'invalid_request', 'Bad Request')
  if (claim.iss !== identity.clientEmail) return invalidGrant('Invalid grant: account not found')
  const signedBytes = Buffer.from(`${header}.${claims}`)
  const signed =
    head.alg === 'RS256' &&
    (head.kid === undefined || head.kid === identity.privateKeyId) &&
    verify('sha256', signedBytes, identity.publicKey, Buffer.from(signature, 'base64url'))
  if (!signed) return invalidGrant('Invalid JWT Signature.')
  return claimsProblem(claim, tokenUri)
}

function claimsProblem(claim: Json, tokenUri: string): HttpResponse | undefined {
  if (claim.aud !== tokenUri) return invalidGrant(`Invalid JWT: Failed audience check. The right audience is ${tokenUri}`)
  const nowS = Date.now() / 1000
  const { iat, exp } = claim
  const timely =
    typeof iat === 'number' &&
    typeof exp === 'number' &&
    iat <= nowS + LEEWAY_S &&
    exp > nowS &&
    exp > iat &&
    exp - iat <= HOUR_S + LEEWAY_S &&
    iat > nowS - HOUR_S - LEEWAY_S
  if (!timely) {
    return invalidGrant(
      'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.',
    )
  }
  const scopes = typeof claim.scope === 'string' ? claim.scope.split(' ') : []
  return scopes.includes(SCOPE) ? undefined : oauthError(400, 'invalid_scope', 'Invalid OAuth scope or ID token audience provided.')
}

function decode(part: string): Json | undefined {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
