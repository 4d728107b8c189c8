import type { FastifyInstance, RouteOptions } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { Pools } from '../db/database.ts'
import { joinablePool } from '../db/joined.ts'
import type { Keyring } from '../encryption/keyring.ts'
import type { ErasedPeople } from '../erasure/erased.ts'
import { ApiError, EXIT, OperatorError } from '../errors.ts'
import type { Limiter, Policy } from '../http/limits.ts'
import { serveDocument } from '../http/openapi.ts'
import { unknownRoute } from '../http/routes.ts'
import type { Simulators } from '../phones/simulators.ts'
import type { WebhookHosts } from '../public-host.ts'
import { Refusal } from '../refusal.ts'
import type { Exporting } from '../reports/exports/send-export.ts'
import { accountListRoutes, accountRoutes } from './account-routes.ts'
import { ACCOUNTS_TAG } from './account-schemas.ts'
import { allAgentRoutes } from './agent-routes.ts'
import { assignmentRoutes } from './assignment-routes.ts'
import { AUDIT_TAG, accountAuditRoutes, auditRoutes } from './audit-routes.ts'
import { AUTO_REPLIES_TAG, autoReplyRoutes } from './auto-reply-routes.ts'
import { campaignProgressRoutes } from './campaign-progress-routes.ts'
import { campaignPlanRoutes } from './campaign-routes.ts'
import { auditChanges } from './changes.ts'
import { describeGuard } from './describe.ts'
import { ENCRYPTION_TAG, encryptionRoutes } from './encryption-routes.ts'
import { faultRoutes } from './fault-routes.ts'
import { guardAdmin } from './guard.ts'
import { HEALTH_TAG, healthRoutes } from './health-routes.ts'
import { KEYS_TAG, keyRoutes } from './key-routes.ts'
import type { Live } from './live.ts'
import { MEDIA_TAG, mediaRoutes } from './media-routes.ts'
import { memberRoutes } from './member-routes.ts'
import { messageContentRoutes } from './message-routes.ts'
import { networkRoutes } from './network-routes.ts'
import { type OidcOptions, oidcRoutes } from './oidc-routes.ts'
import { peopleRoutes } from './people-routes.ts'
import { PEOPLE_TAG } from './people-schemas.ts'
import { phoneRoutes } from './phone-routes.ts'
import { PHONES_TAG } from './phone-schemas.ts'
import { RECIPIENTS_TAG, recipientRoutes } from './recipient-routes.ts'
import { sessionListRoutes } from './session-list-routes.ts'
import { SESSION_TAG, sessionRoutes } from './session-routes.ts'
import { STREAM_TAG, streamRoutes } from './stream-routes.ts'
import { TOKENS_TAG, tokenRoutes } from './token-routes.ts'
import { sealCursors } from './viewer-cursors.ts'

/** The reference lists the operations in this order, before those of the API for callers. */
export const ADMIN_TAGS = [
  SESSION_TAG,
  ACCOUNTS_TAG,
  KEYS_TAG,
  PEOPLE_TAG,
  TOKENS_TAG,
  AUDIT_TAG,
  AUTO_REPLIES_TAG,
  RECIPIENTS_TAG,
  ENCRYPTION_TAG,
  STREAM_TAG,
  HEALTH_TAG,
  MEDIA_TAG,
  PHONES_TAG,
]

declare module 'fastify' {
  interface FastifyInstance {
    /** The OpenAPI document of /admin/v1. */
    adminSwagger: () => object
  }
}

type Options = OidcOptions & {
  /** Adds the routes of the API for callers, with other pools. */
  addAccountRoutes: (scope: FastifyInstance, pools: Pools) => Promise<void>
  /** Returns the names of all RCS carriers. */
  carriers: () => Promise<string[]>
  keyring: Keyring
  erased: ErasedPeople
  exporting: Exporting
  live: Live
  limiter: Limiter
  publicReads: Policy
  /** The hosts that images for previews come from. */
  hosts: WebhookHosts
  simulators: Simulators
  /** Encrypts the ids of phones, and the cursors of viewers. */
  idKey: Buffer
}

const OF_ACCOUNT = [
  accountRoutes,
  keyRoutes,
  assignmentRoutes,
  memberRoutes,
  autoReplyRoutes,
  campaignPlanRoutes,
  campaignProgressRoutes,
  messageContentRoutes,
]

export async function addAdminRoutes(admin: FastifyInstance, options: Options): Promise<void> {
  const {
    pool,
    limiter,
    publicReads,
    addAccountRoutes,
    carriers,
    keyring,
    erased: people,
    oidc,
    baseUrl,
    exporting,
    live,
    hosts,
    simulators,
    idKey,
  } = options
  guardAdmin(admin, { pool, limiter, publicReads })
  admin.addHook('onRoute', describeGuard)
  admin.setNotFoundHandler(unknownRoute)
  admin.setErrorHandler((error) => {
    throw asApiError(error)
  })
  serveDocument(admin, () => admin.adminSwagger())
  await admin.register(sessionRoutes, { pool, limiter })
  await admin.register(oidcRoutes, { pool, limiter, oidc, baseUrl })
  await admin.register(streamRoutes, live)
  await admin.register(healthRoutes, live)
  await admin.register(mediaRoutes, { hosts })
  await admin.register(async (scope) => {
    auditChanges(scope, pool)
    const joinable = joinablePool(pool)
    await scope.register(sessionListRoutes, { pool: joinable })
    await scope.register(accountListRoutes, { pool: joinable })
    await scope.register(allAgentRoutes, { pool: joinable, carriers })
    await scope.register(peopleRoutes, { pool: joinable })
    await scope.register(auditRoutes, { pool, exporting })
    await scope.register(tokenRoutes, { pool: joinable })
    await scope.register(faultRoutes, { pool, simulators })
    await scope.register(encryptionRoutes, { pool: joinable, keyring })
    await scope.register(recipientRoutes, { pool: joinable, people, role: 'operator', suffix: 'Everywhere' })
    await scope.register(
      async (account) => {
        account.addHook('onRoute', addAccountId)
        sealCursors(account, idKey)
        // The statements of the hot pool run here for one request at a time, so they need none of its settings.
        await addAccountRoutes(account, { pool: joinable, hotPool: joinable })
        for (const routes of OF_ACCOUNT) await account.register(routes, { pool: joinable })
        await account.register(recipientRoutes, { pool: joinable, people, role: 'admin', suffix: '' })
        await account.register(phoneRoutes, { pool, simulators, idKey })
        await account.register(networkRoutes, { pool, simulators })
        await account.register(accountAuditRoutes, { pool, exporting })
      },
      { prefix: '/accounts/:accountId' },
    )
  })
}

/** The functions that commands share with these routes throw errors for operators. */
function asApiError(error: unknown): unknown {
  if (!(error instanceof OperatorError) || error instanceof Refusal) return error
  const code = error.exitCode === EXIT.notFound ? 'RCS_NOT_FOUND' : 'RCS_REFUSED'
  return new ApiError(code, { details: [{ path: '', reason: error.lines.join(' ') }] })
}

const AccountPath = Type.Object({}, { additionalProperties: false })

/** The paths of the account's routes have the id of the account, which their strict schemas do not know. */
function addAccountId(route: RouteOptions): void {
  const { params = AccountPath, ...schema } = (route.schema ?? {}) as { params?: TSchema & { properties: object; required?: string[] } }
  const { properties, required = [] } = params as { properties: object; required?: string[] }
  route.schema = {
    ...schema,
    params: { ...params, properties: { accountId: Type.Integer(), ...properties }, required: ['accountId', ...required] },
  }
}
