import { createHash, randomBytes } from 'node:crypto'

/** One sign-in, to the provider and back. Everything but the secret is derived from the secret, so only the browser's cookie is kept. */
export type Flow = {
  secret: string
  /** Comes back with the code, and finds the cookie. */
  state: string
  /** Comes back in the token, and binds it to this flow. */
  nonce: string
  /** The proof for the exchange of the code (PKCE): a stolen code is worth nothing in another browser. */
  verifier: string
  /** The session that the person confirms; undefined for a sign-in. */
  sessionId: string | undefined
}

export function newFlow(sessionId?: string): Flow {
  return flowOf(randomBytes(32).toString('base64url'), sessionId)
}

export function flowOf(secret: string, sessionId: string | undefined): Flow {
  const derived = (name: string) => createHash('sha256').update(`${name} ${secret}`).digest('base64url')
  return { secret, state: derived('state'), nonce: derived('nonce'), verifier: derived('verifier'), sessionId }
}
