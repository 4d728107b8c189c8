import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import {
  createKey,
  findOwnKey,
  isNetwork,
  KEY_LIST,
  KEY_STATUSES,
  MAX_ADDRESSES,
  type OwnedKey,
  type Restrictions,
  readKeysPage,
  revokeKey,
  rotateKey,
  updateKey,
} from '../accounts/keys.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError, type Violation } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { present } from '../present.ts'
import { NoBody, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { SCOPES } from '../scopes.ts'
import { parseTimestamp } from '../time.ts'

export const KEYS_TAG = { name: 'Keys', description: 'The integration keys with which callers use the API.' }

const tags = [KEYS_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const Scopes = Type.Array(Type.Enum([...SCOPES]), { minItems: 1, description: 'Absent: all scopes.' })
const Addresses = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: MAX_ADDRESSES,
  description: 'Addresses and networks, such as 10.0.0.0/8.',
})

const KEY = {
  integrationKey: Type.String(),
  scopes: Type.Optional(Scopes),
  expiresAt: Type.Optional(OutgoingTime),
  addresses: Type.Optional(Addresses),
}
const KeyBody = Type.Object(
  {
    ...KEY,
    createdAt: OutgoingTime,
    lastUsedAt: Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description: 'Accurate to a minute.' })),
    rotatedAt: Type.Optional(OutgoingTime),
    revokedAt: Type.Optional(OutgoingTime),
  },
  { $id: 'Key', ...object },
)
const Secret = Type.String({ description: 'It is shown only this once.' })
const CreatedKey = Type.Object({ ...KEY, secret: Secret }, { ...object, description: 'The key with its secret.' })
const RotatedKey = Type.Object({ integrationKey: Type.String(), secret: Secret }, { ...object, description: 'The new secret.' })

const orNull = <T>(schema: object) => Type.Optional(Type.Unsafe<T | null>({ anyOf: [schema, { type: 'null' }] }))
/** Null removes a restriction; an absent one stays, and a new key does not have it. */
const RestrictionsBody = Type.Object(
  {
    scopes: orNull<Restrictions['scopes']>(Scopes),
    expiresAt: orNull<string>(Type.String({ format: 'timestamp', description: 'In the future.' })),
    addresses: orNull<string[]>(Addresses),
  },
  object,
)
const KeyPath = Type.Object({ integrationKey: Type.String() }, object)
const TheKey = refTo(KeyBody, { description: 'The key.' })

/** The restrictions of a request, checked for what no schema can express. */
function restrictionsOf({ expiresAt: until, ...rest }: Static<typeof RestrictionsBody>): Partial<Restrictions> {
  const violations: Violation[] = (rest.addresses ?? []).flatMap((address, index) =>
    isNetwork(address)
      ? []
      : [{ path: `/addresses/${index}`, reason: 'must be an address or a network, such as 192.0.2.7 or 2001:db8::/32' }],
  )
  const expiresAt = typeof until === 'string' ? (parseTimestamp(until) as Date) : until
  if (expiresAt instanceof Date && expiresAt.getTime() <= Date.now()) {
    violations.push({ path: '/expiresAt', reason: 'must be in the future; POST …/revoke ends a key at once' })
  }
  if (violations.length > 0) throw new ApiError('RCS_INVALID_REQUEST', { details: violations })
  return { ...rest, ...(rest.scopes && { scopes: [...new Set(rest.scopes)] }), ...(expiresAt !== undefined && { expiresAt }) }
}

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const keyRoutes: Routes = async (app, options) => {
  app.addSchema(KeyBody)
  await app.register(listAndCreateRoutes, options)
  await app.register(readAndChangeRoutes, options)
  await app.register(endRoutes, options)
}

const shown = ({ accountId: _, accountName: _name, ...key }: OwnedKey) => present(key) as never

const listAndCreateRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/keys',
    {
      schema: {
        operationId: 'listKeys',
        tags,
        summary: 'List the keys of an account, also revoked ones',
        querystring: listQuery(KEY_LIST, { status: Type.Optional(Type.Enum([...KEY_STATUSES])) }),
        response: listResponses(refTo(KeyBody), 'A page of keys.'),
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { items, nextCursor } = await readKeysPage(pool, callerOf(request).accountId, request.query)
      return { items: items.map((key) => present(key) as never), nextCursor }
    },
  )

  app.post(
    '/keys',
    {
      schema: {
        operationId: 'createKey',
        tags,
        summary: 'Create a key with its secret',
        querystring: NoQuery,
        body: RestrictionsBody,
        response: { 201: CreatedKey, ...errorResponses(...BODY_ERRORS) },
      },
      config: { role: 'admin', needsPassword: true },
    },
    async (request, reply) =>
      await reply.code(201).send((await createKey(pool, callerOf(request).accountId, restrictionsOf(request.body))) as never),
  )
}

const ownKey = (pool: Pool, request: FastifyRequest, { integrationKey }: Static<typeof KeyPath>) =>
  findOwnKey(pool, callerOf(request).accountId, integrationKey)

const readAndChangeRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/keys/:integrationKey',
    {
      schema: {
        operationId: 'readKey',
        tags,
        summary: 'Read a key, without its secret',
        params: KeyPath,
        querystring: NoQuery,
        response: { 200: TheKey, ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => shown(await ownKey(pool, request, request.params)),
  )

  app.patch(
    '/keys/:integrationKey',
    {
      schema: {
        operationId: 'changeKey',
        tags,
        summary: 'Change what a key is restricted to; its secret stays',
        params: KeyPath,
        querystring: NoQuery,
        body: { ...RestrictionsBody, minProperties: 1 },
        response: { 200: TheKey, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'admin', keepsNulls: true },
    },
    async (request) => {
      const { integrationKey } = await ownKey(pool, request, request.params)
      return present(await updateKey(pool, integrationKey, restrictionsOf(request.body as Static<typeof RestrictionsBody>))) as never
    },
  )
}

const endRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/keys/:integrationKey/rotate',
    {
      schema: {
        operationId: 'rotateKey',
        tags,
        summary: 'Replace the secret of a key; the old secret stops working at once',
        params: KeyPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: RotatedKey, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'admin', needsPassword: true },
    },
    async (request) => await rotateKey(pool, (await ownKey(pool, request, request.params)).integrationKey),
  )

  app.post(
    '/keys/:integrationKey/revoke',
    {
      schema: {
        operationId: 'revokeKey',
        tags,
        summary: 'Revoke a key for good',
        params: KeyPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: TheKey, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'admin' },
    },
    async (request) => present(await revokeKey(pool, (await ownKey(pool, request, request.params)).integrationKey)) as never,
  )
}
