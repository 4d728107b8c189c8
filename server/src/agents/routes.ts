import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { BILLING_TYPES, changeAgent, listActiveAgents } from './agents.ts'

export const AGENTS_TAG = { name: 'Agents', description: 'The senders assigned to the account.' }

export const Agent = Type.Object(
  {
    agentId: Type.String({ description: 'Passed unchanged in messages and campaigns.' }),
    name: Type.String({ description: 'Technical name.' }),
    displayName: Type.Optional(Type.String({ description: 'Name shown in the platform; absent if none is set.' })),
    billingType: Type.Enum([...BILLING_TYPES]),
    active: Type.Boolean(),
  },
  {
    $id: 'Agent',
    additionalProperties: false,
    examples: [{ agentId: 'shop-orders', name: 'shop_orders', displayName: 'Example Shop', billingType: 'single', active: true }],
  },
)

const AgentChange = Type.Object(
  {
    displayName: Type.Optional(Type.String({ maxLength: 31, description: 'An empty text removes it.' })),
    active: Type.Optional(Type.Literal(false, { description: 'Deactivates the agent; only the operator activates it again.' })),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ displayName: 'Example Shop' }] },
)

const AgentPath = Type.Object({ agentId: Type.String() }, { additionalProperties: false })

export const agentRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.addSchema(Agent)

  app.get(
    '/agents',
    {
      schema: {
        operationId: 'listAgents',
        tags: [AGENTS_TAG.name],
        summary: 'List the active agents assigned to the account',
        querystring: NoQuery,
        response: {
          200: Type.Object({ items: Type.Array(refTo(Agent)) }, { description: 'The agents.', additionalProperties: false }),
          ...errorResponses(),
        },
      },
      config: { scope: 'read' },
    },
    async (request) => ({ items: await listActiveAgents(pool, callerOf(request).accountId) }),
  )

  app.patch(
    '/agents/:agentId',
    {
      schema: {
        operationId: 'changeAgent',
        tags: [AGENTS_TAG.name],
        summary: 'Change the display name of an agent, or deactivate it',
        params: AgentPath,
        querystring: NoQuery,
        body: AgentChange,
        response: {
          200: refTo(Agent, { description: 'The agent after the change.' }),
          ...errorResponses('RCS_AGENT_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      config: { scope: 'manage' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { agentId } = request.params
      const before = (await listActiveAgents(pool, accountId)).find((each) => each.agentId === agentId)
      const agent = await changeAgent(pool, accountId, agentId, request.body)
      if (agent === undefined) throw notFound('RCS_AGENT_NOT_FOUND', 'agentId', 'active agent')
      request.change = { before, after: agent }
      return agent
    },
  )
}
