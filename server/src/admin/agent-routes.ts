import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { AGENT_LIST, BILLING_TYPES, createAgent, findAgent, findAgentWithAccounts, readAgentsPage, updateAgent } from '../agents/agents.ts'
import { AGENTS_TAG } from '../agents/routes.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { NoQuery, refTo } from '../schemas.ts'

const tags = [AGENTS_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const AgentId = Type.String({ pattern: '^[!-~]{1,200}$', description: '1 to 200 printable ASCII characters without a space.' })
const AgentName = Type.String({ minLength: 1, maxLength: 200 })
const CarrierName = Type.String({ minLength: 1, maxLength: 100, description: 'The carrier that its messages go through.' })
const BillingTypeName = Type.Enum([...BILLING_TYPES])

const RECORD = { agentId: Type.String(), name: Type.String(), billingType: BillingTypeName, carrier: Type.String() }
const AgentRecordBody = Type.Object(RECORD, { $id: 'AgentRecord', ...object })
const Assigned = Type.Object({ accountId: Type.Integer(), displayName: Type.Optional(Type.String()), active: Type.Boolean() }, object)
const AgentWithAccounts = Type.Object({ ...RECORD, accounts: Type.Array(Assigned) }, object)
const NewAgent = Type.Object(
  { agentId: AgentId, name: AgentName, billingType: BillingTypeName, carrier: Type.Optional(CarrierName) },
  object,
)
const AgentUpdate = Type.Object(
  { name: Type.Optional(AgentName), billingType: Type.Optional(BillingTypeName), carrier: Type.Optional(CarrierName) },
  { ...object, minProperties: 1 },
)
const AgentPath = Type.Object({ agentId: Type.String() }, object)
const TheRecord = refTo(AgentRecordBody, { description: 'The agent.' })

/** `carriers`: returns the names of all RCS carriers. */
type Options = { pool: Pool; carriers: () => Promise<string[]> }

/** The carrier of a request or, if it names none, the only one. */
async function checkedCarrier(wanted: string | undefined, carriers: Options['carriers']): Promise<string> {
  const known = await carriers()
  const carrier = wanted ?? (known.length === 1 ? known[0] : undefined)
  if (carrier !== undefined && known.includes(carrier)) return carrier
  throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/carrier', reason: `must be one of: ${known.join(', ')}` }] })
}

type Routes = FastifyPluginAsyncTypebox<Options>

/** The agents of the installation, for operators. */
export const allAgentRoutes: Routes = async (app, options) => {
  app.addSchema(AgentRecordBody)
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/agents',
    {
      schema: {
        operationId: 'listAllAgents',
        tags,
        summary: 'List all agents and the accounts they are assigned to',
        querystring: listQuery(AGENT_LIST, {}),
        response: listResponses(AgentWithAccounts, 'A page of agents.'),
      },
      config: { role: 'operator' },
    },
    async (request) => await readAgentsPage(pool, request.query),
  )

  app.get(
    '/agents/:agentId',
    {
      schema: {
        operationId: 'readAgent',
        tags,
        summary: 'Read an agent and the accounts it is assigned to',
        params: AgentPath,
        querystring: NoQuery,
        response: { 200: { ...AgentWithAccounts, description: 'The agent.' }, ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'operator' },
    },
    async (request) => await findAgentWithAccounts(pool, request.params.agentId),
  )
}

const changeRoutes: Routes = async (app, { pool, carriers }) => {
  app.post(
    '/agents',
    {
      schema: {
        operationId: 'createAgent',
        tags,
        summary: 'Register an agent',
        querystring: NoQuery,
        body: NewAgent,
        response: { 201: TheRecord, ...errorResponses('RCS_REFUSED', ...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      const { carrier, ...agent } = request.body
      return await reply.code(201).send(await createAgent(pool, { ...agent, carrier: await checkedCarrier(carrier, carriers) }))
    },
  )

  app.patch(
    '/agents/:agentId',
    {
      schema: {
        operationId: 'updateAgent',
        tags,
        summary: 'Change the name, the billing type or the carrier of an agent, for all accounts',
        description:
          'After a change of the carrier, a message that the old one already has may arrive twice, and its receipts and replies are no longer recorded.',
        params: AgentPath,
        querystring: NoQuery,
        body: AgentUpdate,
        response: { 200: TheRecord, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => {
      const { carrier } = request.body
      if (carrier !== undefined) await checkedCarrier(carrier, carriers)
      const before = await findAgent(pool, request.params.agentId)
      const after = await updateAgent(pool, request.params.agentId, request.body)
      // The route that reads the agent also has its accounts, which this does not change.
      request.change = { before, after }
      return after
    },
  )
}
