import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type Pool, transaction } from '../db/pool.ts'
import { ApiError, ERRORS } from '../errors.ts'
import { errorResponses, unavailable } from '../http/error-responses.ts'
import { waitForTurn } from '../http/guard.ts'
import { addressOf, type Limiter } from '../http/limits.ts'
import { logOf } from '../http/log.ts'
import { type Flow, flowOf, newFlow } from '../oidc/flow.ts'
import { ProviderUnavailable } from '../oidc/http.ts'
import { type Claims, createProvider, type Provider, SignInRefused } from '../oidc/provider.ts'
import type { OidcSettings } from '../oidc-settings.ts'
import { NotAllowed } from '../people/oidc.ts'
import { isSetUp } from '../people/people.ts'
import { findSession } from '../people/sessions.ts'
import { NoQuery } from '../schemas.ts'
import { checkSecure, clearFlowCookie, findFlowCookie, sessionSecret, setFlowCookie, setSessionCookie } from './cookie.ts'
import { SIGN_IN_POLICY } from './guard.ts'
import { finishSignIn } from './oidc-sign-in.ts'
import { SESSION_TAG, sessionOf } from './session-routes.ts'

const tags = [SESSION_TAG.name]

export type OidcOptions = {
  pool: Pool
  /** Undefined if people sign in with passwords only. */
  oidc: OidcSettings | undefined
  /** The address by which browsers reach this service. */
  baseUrl: () => string
}
type RouteOptions = OidcOptions & { limiter: Limiter }
type Routes = FastifyPluginAsyncTypebox<RouteOptions>

const redirect = (description: string) => Type.Null({ description })

/** Providers add parameters of their own. */
const Callback = Type.Object({ state: Type.Optional(Type.String()), code: Type.Optional(Type.String()) }, { additionalProperties: true })

/** These routes are opened by browsers as pages. The provider is asked only when a person signs in, never at the start. */
export const oidcRoutes: Routes = async (app, options) => {
  const { oidc } = options
  const provider = oidc && createProvider(oidc)
  // Remembered once it is true, since it never becomes false again.
  let wasSetUp = false
  app.addHook('onClose', async () => await provider?.close())
  app.setErrorHandler((error, request, reply) => {
    const known = asApiError(error, request, options)
    if (!(known instanceof ApiError) || !/\btext\/html\b/.test(request.headers.accept ?? '')) throw known
    return sendPage(known, request, reply, options)
  })
  app.get(
    '/sign-in-options',
    {
      schema: {
        operationId: 'listSignInOptions',
        tags,
        summary: 'Show how people can sign in',
        querystring: NoQuery,
        response: {
          200: Type.Object(
            {
              methods: Type.Array(Type.Enum(['password', 'oidc']), {
                description: 'For `oidc`, open `/admin/v1/oidc/start` in the browser.',
              }),
              isSetUp: Type.Boolean({
                description: 'If false, there is no operator yet: use the link that the service printed at its start.',
              }),
              isSignedIn: Type.Boolean({ description: 'Whether the cookie of the request has a session.' }),
            },
            { description: 'The options.', additionalProperties: false },
          ),
          ...errorResponses(),
        },
      },
      config: { public: true, isSignIn: true },
    },
    async (request) => {
      wasSetUp ||= await isSetUp(options.pool)
      const secret = sessionSecret(request)
      const isSignedIn = secret !== undefined && (await findSession(options.pool, secret, { isUse: false })) !== undefined
      return { methods: oidc === undefined ? ['password' as const] : ['password' as const, 'oidc' as const], isSetUp: wasSetUp, isSignedIn }
    },
  )
  await app.register(startRoutes, { ...options, provider })
  await app.register(callbackRoute, { ...options, provider })
}

type FlowRoutes = FastifyPluginAsyncTypebox<RouteOptions & { provider: Provider | undefined }>

const startRoutes: FlowRoutes = async (app, options) => {
  async function start(request: FastifyRequest, reply: FastifyReply, sessionId?: string, asksAgain?: { email: string }) {
    const { provider } = configured(options)
    checkSecure(request)
    const flow = newFlow(sessionId)
    const url = await provider.authorizationUrl(redirectUri(options), flow, asksAgain)
    setFlowCookie(request, reply, flow.state, [flow.secret, ...(sessionId ? [sessionId] : [])].join('.'))
    return await reply.code(302).header('Location', url).send(null)
  }

  app.get(
    '/oidc/start',
    {
      schema: {
        operationId: 'startOidc',
        tags,
        summary: 'Sign in with the OpenID provider: open this in a browser',
        querystring: NoQuery,
        response: { 302: redirect('To the provider.'), ...errorResponses('RCS_NOT_FOUND') },
      },
      exposeHeadRoute: false,
      config: { public: true, isSignIn: true },
    },
    async (request, reply) => await start(request, reply),
  )

  app.get(
    '/oidc/confirm',
    {
      schema: {
        operationId: 'confirmWithOidc',
        tags,
        summary: 'Give the password again at the OpenID provider, for dangerous steps within the next ten minutes',
        description: 'For people without a password in Herald. Open this in the browser, then repeat the step.',
        querystring: NoQuery,
        response: { 302: redirect('To the provider.'), ...errorResponses('RCS_NOT_FOUND') },
      },
      exposeHeadRoute: false,
      config: { anyRole: true, needsSession: true },
    },
    async (request, reply) => {
      const { sessionId, email } = sessionOf(request)
      return await start(request, reply, sessionId, { email })
    },
  )
}

const callbackRoute: FlowRoutes = async (app, options) => {
  app.get(
    '/oidc/callback',
    {
      schema: {
        operationId: 'signInWithOidc',
        tags,
        summary: 'Complete a sign-in: the OpenID provider redirects the browser here',
        description:
          'Opens a session, or confirms the session that began the flow. Replaces the roles of the person by those of the claims.',
        querystring: Callback,
        response: { 302: redirect('To the console.'), ...errorResponses('RCS_NOT_FOUND', 'RCS_SIGN_IN_REFUSED') },
      },
      exposeHeadRoute: false,
      config: { public: true, isSignIn: true },
    },
    async (request, reply) => {
      const { provider, settings } = configured(options)
      checkSecure(request)
      const flow = findFlow(request, request.query.state, options.baseUrl())
      // Not before the flow is found: another site can make a browser open this address, but without the cookie of a flow.
      await waitForTurn(reply, options.limiter, SIGN_IN_POLICY, addressOf(request))
      clearFlowCookie(request, reply, flow.state)
      const search = request.url.slice(request.url.indexOf('?'))
      const claims: Claims = await provider.finish(redirectUri(options), search, flow)
      const secret = await transaction(options.pool, (tx) => finishSignIn(tx, request, { claims, settings, sessionId: flow.sessionId }))
      if (secret instanceof Error) throw secret
      if (secret !== undefined) setSessionCookie(request, reply, secret)
      return await reply.code(302).header('Location', consoleUrl(options)).send(null)
    },
  )
}

function configured({ provider, oidc: settings }: { provider: Provider | undefined; oidc: OidcSettings | undefined }) {
  if (provider !== undefined && settings !== undefined) return { provider, settings }
  throw new ApiError('RCS_NOT_FOUND', { details: [{ path: '', reason: 'No OpenID provider is configured; see docs/single-sign-on.md.' }] })
}

const redirectUri = ({ baseUrl }: OidcOptions) => new URL(`${baseUrl()}/admin/v1/oidc/callback`).href
const consoleUrl = ({ baseUrl }: OidcOptions) => `${baseUrl()}/console`

/** The flow that this browser began. Another browser has no cookie for it, and neither has this one after it was used. */
function findFlow(request: FastifyRequest, state = '', baseUrl: string): Flow {
  const [secret, sessionId] = findFlowCookie(request, state)?.split('.') ?? []
  const flow = secret === undefined ? undefined : flowOf(secret, sessionId)
  if (flow?.state === state) return flow
  throw new NotAllowed(`This browser has not begun this sign-in at ${baseUrl}, has finished it, or took over ten minutes; begin again.`)
}

function asApiError(error: unknown, request: FastifyRequest, { oidc }: OidcOptions): unknown {
  if (error instanceof ProviderUnavailable) {
    logOf(request).warn({ reason: error.message }, 'the OpenID provider is not available')
    return unavailable(`The OpenID provider ${oidc?.issuer} does not respond as it should; try again later.`)
  }
  if (!(error instanceof NotAllowed || error instanceof SignInRefused)) return error
  // Other reasons contain the e-mail address of the person.
  logOf(request).info({ reason: error instanceof SignInRefused ? error.message : undefined }, 'a sign-in was refused')
  const reason = error instanceof SignInRefused ? `The sign-in failed: ${error.message}. Begin again.` : error.message
  return new ApiError('RCS_SIGN_IN_REFUSED', { details: [{ path: '', reason }] })
}

const HEADERS = {
  'Content-Security-Policy': "default-src 'none'",
  'X-Content-Type-Options': 'nosniff',
  // The address of this page contains the code.
  'Referrer-Policy': 'no-referrer',
}

/** The person opened an address in the browser, so the error is a page. */
function sendPage({ code, details, headers }: ApiError, request: FastifyRequest, reply: FastifyReply, options: OidcOptions): FastifyReply {
  const { status, when } = ERRORS[code]
  const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Herald: the sign-in failed</title></head>
<body>
<h1>The sign-in failed</h1>
<p>${escaped(details?.[0]?.reason ?? when)}</p>
<p><a href="${escaped(consoleUrl(options))}">Back to the console</a></p>
<p>${code}, request ${request.id}</p>
</body>
</html>
`
  // The response schemas are for JSON only.
  return reply
    .code(status)
    .headers({ ...headers, ...HEADERS })
    .type('text/html; charset=utf-8')
    .serializer(String)
    .send(page)
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
