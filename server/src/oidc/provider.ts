import type { Configuration } from 'openid-client'
import type { OidcSettings } from '../oidc-settings.ts'
import type { Flow } from './flow.ts'
import { createProviderHttp, type ProviderHttp, ProviderUnavailable } from './http.ts'

/** The provider, or the person at the provider, refuses the sign-in, or the response does not prove who the person is. */
export class SignInRefused extends Error {}

/** What the provider says about a person. All of it is from a signed token, or from the provider's own endpoint. */
export type Claims = { iss: string; sub: string; auth_time?: number; [name: string]: unknown }

export type Provider = {
  /** Where to send the browser. `asksAgain`: the provider must ask for the password, even if the person has a session there. */
  authorizationUrl: (redirectUri: string, flow: Flow, asksAgain?: { email: string }) => Promise<string>
  /** Exchanges the code that the browser came back with for claims. `search`: the query of the request. */
  finish: (redirectUri: string, search: string, flow: Flow) => Promise<Claims>
  close: () => Promise<void>
}

type Client = { library: typeof import('openid-client'); config: Configuration }

/** Changes of the provider's metadata are seen after this time. Its keys are read again whenever a token names an unknown one. */
const METADATA_MS = 3_600_000

/** Herald starts without the provider: it reads the metadata when the first person signs in, and again after a failure. */
export function createProvider(settings: OidcSettings, now = () => performance.now()): Provider {
  const http = createProviderHttp()
  let found: { client: Promise<Client>; until: number } | undefined

  /** Concurrent callers share one request. */
  async function connect(): Promise<Client> {
    if (found === undefined || now() >= found.until) found = { client: discover(settings, http.fetch), until: now() + METADATA_MS }
    const { client } = found
    try {
      return await client
    } catch (error) {
      if (found?.client === client) found = undefined
      throw new ProviderUnavailable(`the metadata of the OpenID provider: ${describe(error)}`, { cause: error })
    }
  }

  return {
    authorizationUrl: async (redirectUri, { state, nonce, verifier }, asksAgain) => {
      const { library, config } = await connect()
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: settings.scopes,
        state,
        nonce,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(asksAgain && { prompt: 'login', max_age: '0', login_hint: asksAgain.email }),
      })
      return url.href
    },
    finish: async (redirectUri, search, flow) => {
      const client = await connect()
      try {
        return await exchange(client, new URL(`${redirectUri}${search}`), flow, settings.rolesClaim)
      } catch (error) {
        throw translated(client, error)
      }
    },
    close: http.close,
  }
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings, fetch: ProviderHttp['fetch']): Promise<Client> {
  // Loading it takes 50 ms, and most installations do not use it.
  const library = await import('openid-client')
  const { ClientSecretBasic, ClientSecretPost, allowInsecureRequests, customFetch, enableNonRepudiationChecks } = library
  const url = new URL(issuer)
  // Plain HTTP is allowed on this machine only (oidc-settings.ts).
  const execute = [enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [allowInsecureRequests] : [])]
  const authenticate: ConstructorParameters<typeof library.Configuration>[3] = (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const method = methods.includes('client_secret_post') ? ClientSecretPost : ClientSecretBasic
    method(clientSecret)(server, ...rest)
  }
  const config = await library.discovery(url, clientId, {}, authenticate, { execute, [customFetch]: fetch })
  const named = config.serverMetadata().issuer
  // The library accepts the shared addresses of Entra ID, with which people of any organization could sign in.
  if (new URL(named).href !== url.href) throw new Error(`the provider names another issuer: ${named}`)
  return { library, config }
}

async function exchange({ library, config }: Client, url: URL, flow: Flow, rolesClaim: string): Promise<Claims> {
  const tokens = await library.authorizationCodeGrant(config, url, {
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    pkceCodeVerifier: flow.verifier,
    idTokenExpected: true,
  })
  const claims = tokens.claims() as Claims
  const hasAddress = claims.email !== undefined && claims.email_verified !== undefined
  const isComplete = claims[rolesClaim] !== undefined && hasAddress
  // Many providers return these claims only from the userinfo endpoint. The library checks that they are about the same person.
  if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return claims
  const others = await library.fetchUserInfo(config, tokens.access_token, claims.sub)
  // Both claims are from one source: the other one may have verified another address.
  const { email, email_verified } = hasAddress ? claims : others
  return { ...others, ...claims, email, email_verified }
}

/** Errors of the person, of the provider, or of the settings. */
function translated({ library }: Client, error: unknown): Error {
  if (error instanceof ProviderUnavailable) return error
  if (error instanceof library.AuthorizationResponseError)
    return new SignInRefused(`the provider responded with ${error.error}`, { cause: error })
  const isCode = error instanceof library.ResponseBodyError && error.error === 'invalid_grant'
  if (isCode) return new SignInRefused('the code is not valid, or was used before', { cause: error })
  if (error instanceof library.ClientError)
    return new SignInRefused(`the response of the provider is not valid: ${describe(error)}`, { cause: error })
  // Such as a wrong client secret.
  return new ProviderUnavailable(`the provider refuses the request of Herald: ${describe(error)}`, { cause: error })
}

/** The library keeps the reason in the cause. */
function describe(error: unknown): string {
  const { message, cause, error: code } = error as { message: string; cause?: unknown; error?: string }
  return [message, code, cause instanceof Error ? cause.message : undefined].filter(Boolean).join(': ')
}
