import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import {
  ASSIGNMENT_LIST,
  activateAgent,
  assignAgent,
  countAgentUse,
  MAX_COUNTED_USE,
  readAssignment,
  readAssignmentsPage,
  unassignAgent,
} from '../agents/agents.ts'
import { AGENTS_TAG, Agent } from '../agents/routes.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'

const tags = [AGENTS_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
const AgentPath = Type.Object({ agentId: Type.String() }, object)

const AgentUse = Type.Object(
  {
    messages: Type.Integer({ description: 'Messages in the queue. They fail if the agent is deactivated or unassigned.' }),
    campaigns: Type.Integer({ description: 'Campaigns that are not over.' }),
    autoReplies: Type.Integer(),
    optOuts: Type.Integer(),
  },
  object,
)
const AssignmentWithUse = Type.Object(
  { agent: refTo(Agent), use: AgentUse },
  { ...object, description: `The agent, and what depends on it. Each number stops at ${MAX_COUNTED_USE}.` },
)
const Unassigned = Type.Object({ agent: refTo(Agent), autoRepliesRemoved: Type.Integer() }, { ...object, description: 'It is unassigned.' })
const TheAgent = refTo(Agent, { description: 'The agent.' })

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** The agents of an account, also inactive ones. `listAgents` and `changeAgent` of the API for callers exist beside them. */
export const assignmentRoutes: Routes = async (app, options) => {
  app.addSchema(Agent)
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/assignments',
    {
      schema: {
        operationId: 'listAssignments',
        tags,
        summary: 'List the agents assigned to an account, also inactive ones',
        querystring: listQuery(ASSIGNMENT_LIST, { active: Type.Optional(Type.Boolean()) }),
        response: listResponses(refTo(Agent), 'A page of agents.'),
      },
      config: { role: 'viewer' },
    },
    async (request) => await readAssignmentsPage(pool, callerOf(request).accountId, request.query),
  )

  app.get(
    '/assignments/:agentId',
    {
      schema: {
        operationId: 'readAssignment',
        tags,
        summary: 'Read an agent of an account, and what would fail without it',
        params: AgentPath,
        querystring: NoQuery,
        response: { 200: AssignmentWithUse, ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { agentId } = request.params
      const { accountId } = callerOf(request)
      return { agent: await readAssignment(pool, agentId, accountId), use: await countAgentUse(pool, agentId, accountId) }
    },
  )
}

const changeRoutes: Routes = async (app, { pool }) => {
  async function changed(request: FastifyRequest, change: typeof assignAgent) {
    const { agentId } = request.params as Static<typeof AgentPath>
    const { accountId } = callerOf(request)
    const before = await readAssignment(pool, agentId, accountId).catch(() => undefined)
    const after = await change(pool, agentId, accountId)
    request.change = { before, after }
    return after
  }

  app.put(
    '/assignments/:agentId',
    {
      schema: {
        operationId: 'assignAgent',
        tags,
        summary: 'Let an account use an agent',
        description: 'Repeating the request changes nothing.',
        params: AgentPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: TheAgent, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => await changed(request, assignAgent),
  )

  app.delete(
    '/assignments/:agentId',
    {
      schema: {
        operationId: 'unassignAgent',
        tags,
        summary: 'End the assignment of an agent; its automatic replies are removed, and opt-outs are kept',
        params: AgentPath,
        querystring: NoQuery,
        response: { 200: Unassigned, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => {
      const { autoRepliesRemoved, ...agent } = await unassignAgent(pool, request.params.agentId, callerOf(request).accountId)
      return { agent, autoRepliesRemoved }
    },
  )

  app.post(
    '/assignments/:agentId/activate',
    {
      schema: {
        operationId: 'activateAgent',
        tags,
        summary: 'Activate an agent that was deactivated for an account',
        params: AgentPath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: TheAgent, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => await changed(request, activateAgent),
  )
}
