import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { ROLES } from '../people/roles.ts'
import { createToken, listTokens, readTokensPage, revokeToken, TOKEN_LIST, tokenEntry } from '../people/tokens.ts'
import { present } from '../present.ts'
import { MAX_ID, NoBody, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { parseTimestamp } from '../time.ts'
import { type Admin, adminOf } from './guard.ts'

export const TOKENS_TAG = { name: 'Tokens', description: 'Credentials with which programs use this API.' }

const tags = [TOKENS_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const TOKEN = {
  tokenId: Type.Integer(),
  name: Type.String(),
  role: Type.Enum([...ROLES]),
  accountIds: Type.Array(Type.Integer(), { description: 'The accounts of an admin or a viewer. An operator has all.' }),
  expiresAt: OutgoingTime,
  createdAt: OutgoingTime,
  lastUsedAt: Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description: 'Accurate to a minute.' })),
  revokedAt: Type.Optional(OutgoingTime),
}
const TokenBody = Type.Object(TOKEN, { $id: 'Token', ...object })
const CreatedToken = Type.Object(
  { ...TOKEN, secret: Type.String({ description: 'Starts with `ho_`. It is shown only this once.' }) },
  { ...object, description: 'The token with its secret.' },
)
const NewTokenBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200, description: 'What the token is for; the audit log names it.' }),
    role: Type.Enum([...ROLES]),
    accountIds: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: MAX_ID }), { maxItems: 1_000, description: 'Required unless the role is operator.' }),
    ),
    expiresAt: Type.String({ format: 'timestamp', description: 'In the future. A token makes no token that outlives it.' }),
  },
  object,
)
const TokenPath = Type.Object({ tokenId: Type.Integer({ minimum: 1, maximum: MAX_ID }) }, object)

const config = { role: 'operator', needsPassword: true } as const

/** What no schema can express about a new token. */
function checkToken({ role, accountIds = [] }: { role: string; accountIds?: number[] }, expiresAt: Date | undefined, maker: Admin): void {
  const refuse = (path: string, reason: string) => new ApiError('RCS_INVALID_REQUEST', { details: [{ path, reason }] })
  if (role === 'operator' && accountIds.length > 0) throw refuse('/accountIds', 'must be absent: an operator has all accounts')
  if (role !== 'operator' && accountIds.length === 0) throw refuse('/accountIds', `must name the accounts of the ${role}`)
  if (expiresAt === undefined || expiresAt.getTime() <= Date.now()) throw refuse('/expiresAt', 'must be in the future')
  // Otherwise somebody who finds a token could make its rights last for ever.
  if ('token' in maker && expiresAt > maker.token.expiresAt) {
    throw refuse('/expiresAt', `must not be after ${maker.token.expiresAt.toISOString()}, when the token that makes it expires`)
  }
}

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const tokenRoutes: Routes = async (app, options) => {
  app.addSchema(TokenBody)
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/tokens',
    {
      schema: {
        operationId: 'listTokens',
        tags,
        summary: 'List all tokens, also revoked and expired ones',
        querystring: listQuery(TOKEN_LIST, {}),
        response: listResponses(refTo(TokenBody), 'A page of tokens.'),
      },
      config: { role: 'operator' },
    },
    async (request) => {
      const { items, nextCursor } = await readTokensPage(pool, request.query)
      return { items: items.map((token) => present(token) as never), nextCursor }
    },
  )
}

const changeRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/tokens',
    {
      schema: {
        operationId: 'createToken',
        tags,
        summary: 'Create a token',
        querystring: NoQuery,
        body: NewTokenBody,
        response: { 201: CreatedToken, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config,
    },
    async (request, reply) => {
      const { name, role, accountIds = [], expiresAt: until } = request.body
      const expiresAt = parseTimestamp(until)
      checkToken(request.body, expiresAt, adminOf(request))
      const token = await createToken(pool, { name, role, accountIds: [...new Set(accountIds)], expiresAt: expiresAt as Date })
      request.change = { after: token, ...tokenEntry(token) }
      return await reply.code(201).send(present(token) as never)
    },
  )

  app.post(
    '/tokens/:tokenId/revoke',
    {
      schema: {
        operationId: 'revokeToken',
        tags,
        summary: 'Revoke a token for good',
        params: TokenPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: refTo(TokenBody, { description: 'The token.' }), ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config,
    },
    async (request) => {
      const { tokenId } = request.params
      const before = (await listTokens(pool)).find((token) => token.tokenId === tokenId)
      const after = await revokeToken(pool, tokenId)
      request.change = { before, after, ...tokenEntry(after) }
      return present(after) as never
    },
  )
}
