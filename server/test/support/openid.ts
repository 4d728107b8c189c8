import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import type Provider from 'oidc-provider'

export type Account = { email: string; email_verified: boolean; name?: string; groups: string[] }

/** Handles a request instead of the provider if it returns true. */
type Intercept = (request: IncomingMessage, response: ServerResponse) => boolean

export type OpenIdProvider = {
  issuer: string
  /** By `sub`. A test may change them. */
  accounts: Record<string, Account>
  /** How often a person had to give the password. */
  prompts: () => number
  intercept: (how: Intercept | undefined) => void
  /** Registers Herald as a client. Until then the provider does not exist. */
  register: (heraldUrl: string) => void
}

export const CLIENT = { id: 'herald', secret: 'CANARY-of-the-client' }

/** A JSON Web Key that signs tokens. */
function newSigningKey(): object {
  return {
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
    alg: 'ES256',
    use: 'sig',
    kid: randomUUID(),
  }
}

/** A real OpenID provider on a free port. It believes the cookie `who` instead of asking for a password. */
export async function startProvider(options: { claimsInToken?: boolean; method?: string } = {}): Promise<OpenIdProvider> {
  // It warns of each setting that is for tests only.
  const { warn } = console
  console.warn = () => {}
  const { default: OidcProvider } = await import('oidc-provider')
  const accounts: Record<string, Account> = {}
  let prompts = 0
  let intercept: Intercept | undefined
  let handle: Intercept = () => false
  const server = createServer((request, response) => {
    if (intercept?.(request, response) || handle(request, response)) return
    response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  function register(heraldUrl: string): void {
    const provider = new OidcProvider(issuer, configuration(heraldUrl, accounts, options))
    console.warn = warn
    const serve = provider.callback()
    handle = (request, response) => {
      if (!request.url?.startsWith('/interaction/')) serve(request, response)
      else {
        prompts += 1
        const [, accountId] = /who=(\w+)/.exec(request.headers.cookie ?? '') ?? []
        const result = accountId === undefined ? { error: 'access_denied' } : { login: { accountId } }
        provider.interactionFinished(request, response, result).catch(() => response.writeHead(500).end())
      }
      return true
    }
  }

  return {
    issuer,
    accounts,
    prompts: () => prompts,
    intercept: (how) => {
      intercept = how
    },
    register,
  }
}

const SCOPES = 'openid email profile groups'

function configuration(heraldUrl: string, accounts: Record<string, Account>, { claimsInToken = false, method = 'client_secret_post' }) {
  return {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${heraldUrl}/admin/v1/oidc/callback`],
        token_endpoint_auth_method: method,
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientAuthMethods: [method],
    jwks: { keys: [newSigningKey()] },
    cookies: { keys: ['a key of the test'] },
    scopes: SCOPES.split(' '),
    claims: { email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    conformIdTokenClaims: !claimsInToken,
    features: { devInteractions: { enabled: false } },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Grant: 60, Session: 600, Interaction: 60 },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: async () => ({ sub, ...accounts[sub] }) }),
    expiresWithSession: () => false,
    // Nobody is asked for consent.
    loadExistingGrant: async ({ oidc }: { oidc: { provider: Provider; client: { clientId: string }; session: { accountId: string } } }) => {
      const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope(SCOPES)
      await grant.save()
      return grant
    },
  }
}
