import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listResponses } from '../http/list-schemas.ts'
import { locationOf } from '../http/location.ts'
import { present } from '../present.ts'
import type { WebhookHosts } from '../public-host.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'
import { attemptRoutes } from './attempt-routes.ts'
import { changeEndpoint } from './change-endpoint.ts'
import { addEndpoint, type Endpoint, findEndpoint, type ListedEndpoint, rotateSecret, withCounts } from './endpoints.ts'
import { listOwnEndpoints } from './lists.ts'
import { postRoutes } from './post-routes.ts'
import { removeEndpoint } from './remove-endpoint.ts'
import {
  BODY_ERRORS,
  ChangedWebhookEndpoint,
  ENDPOINT_NOT_FOUND,
  EndpointPath,
  EndpointQuery,
  endpointChange,
  endpointRequest,
  NewWebhookEndpoint,
  RotatedSecret,
  storedTypes,
  WEBHOOKS_TAG,
  WebhookEndpoint,
} from './schemas.ts'

const tags = [WEBHOOKS_TAG.name]
// A caller gets the response within a second or two. Retention deletes the rest.
const REMOVE_WITHIN_MS = 1_000

type Options = { pool: Pool; keyring: Keyring; hosts: WebhookHosts }
type Routes = FastifyPluginAsyncTypebox<Options>

export const webhookRoutes: Routes = async (app, options) => {
  app.addSchema(WebhookEndpoint)
  await app.register(readRoutes, options)
  await app.register(attemptRoutes, options)
  await app.register(createRoutes, options)
  await app.register(changeRoutes, options)
  await app.register(secretRoutes, options)
  await app.register(postRoutes, options)
}

function shownEndpoint({ accountId: _, morePending: _p, moreFailed: _f, types, secrets, ...fields }: ListedEndpoint) {
  return { ...present(fields), types, secrets: secrets.map(present) } as never
}

async function read(pool: Pool, endpoint: Endpoint) {
  const [listed] = (await withCounts(pool, [endpoint])) as [ListedEndpoint]
  return shownEndpoint(listed)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/webhook-endpoints',
    {
      schema: {
        operationId: 'listWebhookEndpoints',
        tags,
        summary: 'List the webhook endpoints of the account',
        querystring: EndpointQuery,
        response: listResponses(refTo(WebhookEndpoint), 'A page of endpoints.'),
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { items, nextCursor } = await listOwnEndpoints(pool, callerOf(request).accountId, request.query)
      return { items: items.map(shownEndpoint), nextCursor }
    },
  )

  app.get(
    '/webhook-endpoints/:id',
    {
      schema: {
        operationId: 'readWebhookEndpoint',
        tags,
        summary: 'Read a webhook endpoint',
        params: EndpointPath,
        querystring: NoQuery,
        response: { 200: refTo(WebhookEndpoint, { description: 'The endpoint.' }), ...errorResponses(ENDPOINT_NOT_FOUND) },
      },
      config: { scope: 'read' },
    },
    async (request) => await read(pool, await findEndpoint(pool, request.params.id, callerOf(request).accountId)),
  )
}

const createRoutes: Routes = async (app, { pool, keyring, hosts }) => {
  app.post(
    '/webhook-endpoints',
    {
      schema: {
        operationId: 'createWebhookEndpoint',
        tags,
        summary: 'Post the events of the account to a URL',
        description:
          'A URL can have one endpoint in an account. If the response to this request was lost, repeating it gets 409 with the id of the endpoint in `details`; rotate its secret to get one.',
        querystring: NoQuery,
        body: endpointRequest(hosts),
        response: {
          201: {
            ...NewWebhookEndpoint,
            description: 'The endpoint, with its secret.',
            headers: { Location: { type: 'string', description: 'The path of the endpoint.' } },
          },
          ...errorResponses('RCS_WEBHOOK_ENDPOINT_EXISTS', 'RCS_QUOTA_EXCEEDED', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage', needsPassword: true },
    },
    async (request, reply) => {
      const { url, types } = request.body
      const { accountId } = callerOf(request)
      const given = { accountId, url: new URL(url).href, types: types && storedTypes(types) }
      const { secret, endpointId } = await addEndpoint(pool, given, keyring)
      const endpoint = await read(pool, await findEndpoint(pool, endpointId, accountId))
      return await reply
        .code(201)
        .header('Location', locationOf(request, endpointId))
        .send({ ...(endpoint as object), secret } as never)
    },
  )
}

const changeRoutes: Routes = async (app, { pool, hosts }) => {
  app.patch(
    '/webhook-endpoints/:id',
    {
      schema: {
        operationId: 'changeWebhookEndpoint',
        tags,
        summary: 'Change the URL, the types or the status of an endpoint',
        params: EndpointPath,
        querystring: NoQuery,
        body: endpointChange(hosts),
        response: {
          200: { ...ChangedWebhookEndpoint, description: 'The endpoint after the change.' },
          ...errorResponses(ENDPOINT_NOT_FOUND, 'RCS_WEBHOOK_ENDPOINT_EXISTS', 'RCS_WEBHOOK_ENDPOINT_STATE', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage' },
    },
    async (request) => {
      const { url, types, status } = request.body
      const { accountId, isOperator } = callerOf(request)
      const by = isOperator ? 'OPERATOR' : 'CALLER'
      const { endpointId } = await findEndpoint(pool, request.params.id, accountId)
      const changed = await changeEndpoint(pool, endpointId, {
        url: url && new URL(url).href,
        types: types && storedTypes(types),
        enable: status === 'ACTIVE' ? by : undefined,
        disable: status === 'DISABLED' ? by : undefined,
      })
      return await read(pool, changed)
    },
  )

  app.delete(
    '/webhook-endpoints/:id',
    {
      schema: {
        operationId: 'deleteWebhookEndpoint',
        tags,
        summary: 'Delete an endpoint, with the events that wait for it',
        params: EndpointPath,
        querystring: NoQuery,
        response: { 204: Type.Null({ description: 'It is deleted.' }), ...errorResponses(ENDPOINT_NOT_FOUND, ...BODY_ERRORS) },
      },
      config: { scope: 'manage', audit: 'self' },
    },
    async (request, reply) => {
      const { endpointId } = await findEndpoint(pool, request.params.id, callerOf(request).accountId)
      await removeEndpoint(pool, endpointId, { withinMs: REMOVE_WITHIN_MS, record: request.recordChange })
      return await reply.code(204).send(null)
    },
  )
}

const secretRoutes: Routes = async (app, { pool, keyring }) => {
  app.post(
    '/webhook-endpoints/:id/rotate',
    {
      schema: {
        operationId: 'rotateWebhookSecret',
        tags,
        summary: 'Replace the secret of an endpoint',
        description:
          'For 24 hours, events are signed with the earlier secrets as well. Repeating the request makes another secret; at most 10 sign at a time.',
        params: EndpointPath,
        querystring: NoQuery,
        body: NoBody,
        response: {
          200: { ...RotatedSecret, description: 'The new secret.' },
          ...errorResponses(ENDPOINT_NOT_FOUND, 'RCS_QUOTA_EXCEEDED', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage', needsPassword: true },
    },
    async (request) => {
      const { endpointId } = await findEndpoint(pool, request.params.id, callerOf(request).accountId)
      const { secret, earlierSecretsEndAt } = await rotateSecret(pool, endpointId, keyring)
      return present({ endpointId, secret, earlierSecretsEndAt }) as never
    },
  )
}
