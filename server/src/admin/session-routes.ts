import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { recordChange } from '../audit/record.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { WRONG_CREDENTIALS_POLICY, waitForTurn } from '../http/guard.ts'
import { addressOf, type Limiter, plainAddress } from '../http/limits.ts'
import { changePassword } from '../people/change-password.ts'
import { redeemLink } from '../people/links.ts'
import { MAX_LENGTH } from '../people/passwords.ts'
import { confirmSession, endSession, findSession, openSession, type Session } from '../people/sessions.ts'
import { checkPassword } from '../people/sign-in.ts'
import { NoBody, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { checkSecure, clearSessionCookie, setSessionCookie } from './cookie.ts'
import { actorOf, adminOf } from './guard.ts'
import { Email, PersonName, RoleList } from './people-schemas.ts'

export const SESSION_TAG = { name: 'Sign-in', description: 'Sessions of people. Programs use tokens instead.' }
const tags = [SESSION_TAG.name]
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const SessionBody = Type.Object(
  {
    sessionId: Type.String(),
    personId: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    isOperator: Type.Boolean({ description: 'May do everything, in all accounts.' }),
    roles: RoleList,
    hasPassword: Type.Boolean({ description: 'If false, the person confirms dangerous steps by `GET /admin/v1/oidc/confirm`.' }),
    isConfirmed: Type.Boolean({ description: 'The password was given within the last ten minutes.' }),
    expiresAt: OutgoingTime,
  },
  { $id: 'Session', additionalProperties: false },
)

const Password = Type.String({ minLength: 1, maxLength: 4 * MAX_LENGTH })

const SignIn = Type.Object({ email: Email, password: Password }, { additionalProperties: false })
const Confirmation = Type.Object({ password: Password }, { additionalProperties: false })
const SetUp = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 200, description: 'The part of the link after `setup=`.' }),
    password: Type.String({ description: 'At least 12 characters.' }),
    email: Type.Optional(Email),
    name: Type.Optional(PersonName),
  },
  { additionalProperties: false },
)
const PasswordChange = Type.Object(
  { currentPassword: Password, newPassword: Type.String({ description: 'At least 12 characters.' }) },
  { additionalProperties: false },
)

type Options = { pool: Pool }
type Routes = FastifyPluginAsyncTypebox<Options>
type SignInRoutes = FastifyPluginAsyncTypebox<Options & { limiter: Limiter }>

export const sessionRoutes: SignInRoutes = async (app, options) => {
  app.addSchema(SessionBody)
  await app.register(signInRoutes, options)
  await app.register(ownSessionRoutes, options)
  await app.register(passwordRoutes, options)
}

type SignedIn = { personId: number; passwordHash: string }

/** Opens a session, and returns it as the response. */
async function startSession(pool: Pool, request: FastifyRequest, reply: FastifyReply, signedIn: SignedIn): Promise<Session> {
  const client = { address: plainAddress(request.ip), userAgent: request.headers['user-agent'] ?? '' }
  const secret = await openSession(pool, signedIn.personId, client, signedIn)
  setSessionCookie(request, reply, secret)
  const session = await findSession(pool, secret)
  if (session === undefined) throw new ApiError('RCS_UNAUTHORIZED')
  return session
}

async function recordSetUp(tx: Executor, request: FastifyRequest, { personId, email, isFirst }: SetUpPerson): Promise<void> {
  const actor = { kind: 'person' as const, id: personId, name: email, address: plainAddress(request.ip), requestId: request.id }
  await recordChange(tx, actor, { action: 'setUp', subject: String(personId), after: { password: 'set', isFirstOperator: isFirst } })
}

type SetUpPerson = { personId: number; email: string; isFirst: boolean }

const signInRoutes: SignInRoutes = async (app, { pool, limiter }) => {
  app.post(
    '/session',
    {
      schema: {
        operationId: 'signIn',
        tags,
        summary: 'Sign in with e-mail address and password',
        querystring: NoQuery,
        body: SignIn,
        response: {
          200: refTo(SessionBody, { description: 'The session. Its secret is in the cookie.' }),
          ...errorResponses(...BODY_ERRORS),
        },
      },
      config: { public: true },
    },
    async (request, reply) => {
      checkSecure(request)
      const { email, password } = request.body
      return await startSession(pool, request, reply, await checkPassword(pool, email, password, addressOf(request)))
    },
  )

  app.post(
    '/setup',
    {
      schema: {
        operationId: 'setUp',
        tags,
        summary: 'Set a password by a one-time link, and sign in',
        description:
          'The link of the first start makes the first operator, and needs `email` and `name`; other links must have neither. Links are valid for 24 hours.',
        querystring: NoQuery,
        body: SetUp,
        response: { 200: refTo(SessionBody, { description: 'The session.' }), ...errorResponses('RCS_LINK_GONE', ...BODY_ERRORS) },
      },
      config: { public: true },
    },
    async (request, reply) => {
      checkSecure(request)
      const { token: secret, ...given } = request.body
      const redeemed = await redeemLink(pool, { secret, ...given }, (tx, person) => recordSetUp(tx, request, person)).catch(
        async (error) => {
          // A wrong link counts as other wrong credentials do.
          if (isGone(error)) await waitForTurn(reply, limiter, WRONG_CREDENTIALS_POLICY, addressOf(request))
          throw error
        },
      )
      return await startSession(pool, request, reply, redeemed)
    },
  )
}

const isGone = (error: unknown) => error instanceof ApiError && error.code === 'RCS_LINK_GONE'

/** The session of a request, on a route that needs one. */
export function sessionOf(request: FastifyRequest): Session {
  const admin = adminOf(request)
  if ('session' in admin) return admin.session
  throw new Error('a route that needs no session asked for it')
}

const ownSessionRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/session',
    {
      schema: {
        operationId: 'readSession',
        tags,
        summary: 'Show who is signed in, and what they may do',
        querystring: NoQuery,
        response: { 200: refTo(SessionBody, { description: 'The session.' }), ...errorResponses() },
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request) => sessionOf(request),
  )

  app.delete(
    '/session',
    {
      schema: {
        operationId: 'signOut',
        tags,
        summary: 'Sign out',
        querystring: NoQuery,
        body: NoBody,
        response: { 204: Type.Null({ description: 'The session has ended, on every node.' }), ...errorResponses(...BODY_ERRORS) },
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request, reply) => {
      const { personId, sessionId } = sessionOf(request)
      await endSession(pool, personId, sessionId)
      clearSessionCookie(request, reply)
      return await reply.code(204).send(null)
    },
  )
}

const passwordRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/session/confirm',
    {
      schema: {
        operationId: 'confirmPassword',
        tags,
        summary: 'Give the password again, for dangerous steps within the next ten minutes',
        querystring: NoQuery,
        body: Confirmation,
        response: { 204: Type.Null({ description: 'The password is correct.' }), ...errorResponses(...BODY_ERRORS) },
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request, reply) => {
      const { sessionId, email } = sessionOf(request)
      await checkPassword(pool, email, request.body.password, addressOf(request))
      await confirmSession(pool, sessionId)
      return await reply.code(204).send(null)
    },
  )

  app.post(
    '/session/password',
    {
      schema: {
        operationId: 'changePassword',
        tags,
        summary: 'Change your password',
        description: 'Ends your other sessions.',
        querystring: NoQuery,
        body: PasswordChange,
        response: { 204: Type.Null({ description: 'The password is changed.' }), ...errorResponses(...BODY_ERRORS) },
      },
      config: { anyRole: true, needsSession: true },
    },
    async (request, reply) => {
      const session = sessionOf(request)
      await changePassword(pool, { ...session, ...request.body, address: addressOf(request) }, async (tx) => {
        const entry = { action: 'changePassword', subject: String(session.personId), after: { password: 'set' } }
        await recordChange(tx, actorOf(request), entry)
      })
      return await reply.code(204).send(null)
    },
  )
}
