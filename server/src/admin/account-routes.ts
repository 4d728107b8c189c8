import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import {
  ACCOUNT_LIST,
  type Account,
  countWaiting,
  createAccount,
  findAccount,
  MODULES,
  readAccountsPage,
  renameAccount,
  resumeAccount,
  setCampaignWindow,
  setModules,
  setQuarantine,
  suspendAccount,
} from '../accounts/accounts.ts'
import { readQuotas, setQuotas } from '../accounts/quotas.ts'
import type { Pool } from '../db/pool.ts'
import { readTroubles } from '../health/account-troubles.ts'
import { sharedReading } from '../health/shared-reading.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { type Role, roleIn } from '../people/roles.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'
import { DeliveryWindow } from '../windows/window.ts'
import {
  ACCOUNTS_TAG,
  AccountBody,
  AccountChange,
  ListedAccount,
  NewAccount,
  QuotasBody,
  QuotasChange,
  TroublesBody,
  WaitingBody,
} from './account-schemas.ts'
import { adminOf } from './guard.ts'

const tags = [ACCOUNTS_TAG.name]
/** Every open page of an operator asks every five seconds. */
const TROUBLES_FRESH_MS = 2_000
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
const TheAccount = refTo(AccountBody, { description: 'The account.' })

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** Routes of no single account. */
export const accountListRoutes: Routes = async (app, { pool }) => {
  app.addSchema(AccountBody)
  app.get(
    '/accounts',
    {
      schema: {
        operationId: 'listAccounts',
        tags,
        summary: 'List the accounts in which you have a role',
        querystring: listQuery(ACCOUNT_LIST, {}),
        response: listResponses(ListedAccount, 'A page of accounts.'),
      },
      config: { anyRole: true },
    },
    async (request) => {
      const admin = adminOf(request)
      const accountIds = admin.isOperator ? undefined : admin.roles.map(({ accountId }) => accountId)
      const { items, nextCursor } = await readAccountsPage(pool, request.query, accountIds)
      return { items: items.map((account) => ({ ...account, role: roleIn(admin, account.accountId) as Role })), nextCursor }
    },
  )

  app.post(
    '/accounts',
    {
      schema: {
        operationId: 'createAccount',
        tags,
        summary: 'Create an account',
        querystring: NoQuery,
        body: NewAccount,
        response: { 201: TheAccount, ...errorResponses(...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      const { name, modules = MODULES } = request.body
      const account = await createAccount(pool, name, [...new Set(modules)])
      request.change = { after: account, accountId: account.accountId }
      return await reply.code(201).send(account)
    },
  )

  await app.register(troubleRoutes, { pool })
}

const troubleRoutes: Routes = async (app, { pool }) => {
  const troubles = sharedReading(() => readTroubles(pool), TROUBLES_FRESH_MS)
  app.get(
    '/account-troubles',
    {
      schema: {
        operationId: 'listAccountTroubles',
        tags,
        summary: 'List the accounts in which something may need a look',
        description:
          'At most 1,000: first those whose messages have waited longest, then those with failing endpoints and failed messages.',
        querystring: NoQuery,
        response: {
          200: { ...TroublesBody, description: 'The accounts, with their figures, up to two seconds old. All others are well.' },
          ...errorResponses(),
        },
      },
      config: { role: 'operator' },
    },
    async () => ({ items: await troubles() }),
  )
}

/** Routes of one account. What limits an account is changed by operators only: an admin could otherwise lift the limits. */
export const accountRoutes: Routes = async (app, options) => {
  app.addSchema(AccountBody)
  await app.register(ownAccountRoutes, options)
  await app.register(windowRoutes, options)
  await app.register(suspensionRoutes, options)
  await app.register(quotaRoutes, options)
}

const ownAccountRoutes: Routes = async (app, { pool }) => {
  app.get(
    '',
    {
      schema: {
        operationId: 'readAccount',
        tags,
        summary: 'Read an account',
        querystring: NoQuery,
        response: { 200: TheAccount, ...errorResponses() },
      },
      config: { role: 'viewer' },
    },
    async (request) => await findAccount(pool, callerOf(request).accountId),
  )

  app.patch(
    '',
    {
      schema: {
        operationId: 'changeAccount',
        tags,
        summary: 'Change the name, the modules or the quarantine of an account',
        querystring: NoQuery,
        body: AccountChange,
        response: { 200: TheAccount, ...errorResponses(...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { name, modules, quarantineHours } = request.body
      if (name !== undefined) await renameAccount(pool, accountId, name)
      if (modules !== undefined) await setModules(pool, accountId, [...new Set(modules)])
      if (quarantineHours !== undefined) await setQuarantine(pool, accountId, quarantineHours)
      return await findAccount(pool, accountId)
    },
  )
}

const windowRoutes: Routes = async (app, { pool }) => {
  const schema = { tags, querystring: NoQuery, response: { 200: TheAccount, ...errorResponses(...BODY_ERRORS) } }

  async function change(request: FastifyRequest, window: DeliveryWindow | undefined): Promise<Account> {
    const { accountId } = callerOf(request)
    const before = await findAccount(pool, accountId)
    const after = await setCampaignWindow(pool, accountId, window)
    request.change = { before, after }
    return after
  }

  app.put(
    '/campaign-window',
    {
      schema: {
        ...schema,
        operationId: 'setCampaignWindow',
        summary: 'Set the delivery window of campaigns that have none of their own',
        description: 'It applies to campaigns that are accepted from now on.',
        body: DeliveryWindow,
      },
      config: { role: 'operator' },
    },
    async (request) => await change(request, request.body),
  )

  app.delete(
    '/campaign-window',
    {
      schema: {
        ...schema,
        operationId: 'removeCampaignWindow',
        summary: 'Remove the delivery window of campaigns that have none of their own',
      },
      config: { role: 'operator' },
    },
    async (request) => await change(request, undefined),
  )
}

type Suspension = [path: string, operationId: string, summary: string, change: (db: Pool, accountId: number) => Promise<Account>]
const SUSPENSION: Suspension[] = [
  ['/suspend', 'suspendAccount', 'Refuse the requests of an account, and send nothing of it, until it is resumed', suspendAccount],
  ['/resume', 'resumeAccount', 'End the suspension of an account; what has not expired is sent', resumeAccount],
]

const suspensionRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/waiting',
    {
      schema: {
        operationId: 'countWaiting',
        tags,
        summary: 'Count the messages and campaigns that a suspension would stop now',
        querystring: NoQuery,
        response: { 200: { ...WaitingBody, description: 'What waits.' }, ...errorResponses() },
      },
      config: { role: 'operator' },
    },
    async (request) => await countWaiting(pool, callerOf(request).accountId),
  )

  for (const [path, operationId, summary, change] of SUSPENSION) {
    app.post(
      path,
      {
        schema: {
          operationId,
          tags,
          summary,
          description: 'Repeating the request changes nothing.',
          querystring: NoQuery,
          body: NoBody,
          response: { 200: TheAccount, ...errorResponses(...BODY_ERRORS) },
        },
        config: { role: 'operator' },
      },
      async (request) => await change(pool, callerOf(request).accountId),
    )
  }
}

const quotaRoutes: Routes = async (app, { pool }) => {
  app.addSchema(QuotasBody)
  const TheQuotas = refTo(QuotasBody, { description: 'The quotas, and what is used of them.' })
  app.get(
    '/quotas',
    {
      schema: {
        operationId: 'readQuotas',
        tags,
        summary: 'Read the quotas of an account and what it has used',
        querystring: NoQuery,
        response: { 200: TheQuotas, ...errorResponses() },
      },
      config: { role: 'viewer' },
    },
    async (request) => await readQuotas(pool, callerOf(request).accountId),
  )

  app.patch(
    '/quotas',
    {
      schema: {
        operationId: 'setQuotas',
        tags,
        summary: 'Set quotas of an account',
        querystring: NoQuery,
        body: QuotasChange,
        response: { 200: TheQuotas, ...errorResponses(...BODY_ERRORS) },
      },
      config: { role: 'operator', keepsNulls: true },
    },
    async (request) => await setQuotas(pool, callerOf(request).accountId, request.body),
  )
}
