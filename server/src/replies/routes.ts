import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { requireActiveAgent } from '../agents/agents.ts'
import { PhoneNumber, phoneRules } from '../content/fields.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { type ListDefinition, type PageQuery, readPage } from '../http/paging.ts'
import { normalisePhoneNumber, phoneNumberInQuery } from '../phone-numbers.ts'
import { NoBody, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { OPT_OUT_SOURCES, type OptOut as OptOutState, readOptedOut, setOptOut } from './opt-outs.ts'

export const OPT_OUTS_TAG = { name: 'Opt-outs', description: 'Recipients who want no campaigns from an agent, and recipients you block.' }

const tags = [OPT_OUTS_TAG.name]

const OptOut = Type.Object(
  {
    phone: Type.String({ description: '`+` and digits.' }),
    agentId: Type.String(),
    block: Type.Boolean({ description: 'Whether single messages are stopped, too. They fail with `BLOCKED`.' }),
    source: Type.Enum([...OPT_OUT_SOURCES], {
      description:
        '`word`: the recipient wrote STOP. `unsubscribe`: unsubscribed on the phone. `operator`: by the command line. `api`: by PUT.',
    }),
    changedAt: OutgoingTime,
  },
  {
    $id: 'OptOut',
    additionalProperties: false,
    examples: [{ phone: '+48500100200', agentId: 'demo-single', block: false, source: 'word', changedAt: '2026-01-31T08:00:00.000Z' }],
  },
)
type OptOut = Static<typeof OptOut>

const agentId = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'One agent. Absent: all agents of the account, also agents that are assigned later.',
  }),
)
const PhonePath = Type.Object({ phone: PhoneNumber }, { additionalProperties: false })
const Agent = Type.Object({ agentId }, { additionalProperties: false })
const OptOutRequest = Type.Object(
  { agentId, block: Type.Optional(Type.Boolean({ default: false, description: 'Stop single messages, too.' })) },
  { additionalProperties: false, default: {}, examples: [{ agentId: 'demo-single', block: true }] },
)

/** A page is sorted by agent, then phone. */
const OPT_OUT_LIST: ListDefinition<'agentId' | 'phone'> = {
  fields: { agentId: { column: 's.agent_id', type: 'text' }, phone: { column: 'o.phone', type: 'text', hidden: true } },
  id: 'phone',
  defaultSort: 'agentId',
}

const ListQuery = listQuery(OPT_OUT_LIST, {
  agentId: Type.Optional(Type.String({ maxLength: 200, description: 'Opt-outs of this agent, also those of all agents.' })),
  phone: Type.Optional(Type.String({ description: 'A phone number.', rules: phoneRules(phoneNumberInQuery) })),
})

export const optOutRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, options) => {
  app.addSchema(OptOut)
  await app.register(listRoutes, options)
  await app.register(changeRoutes, options)
}

const listRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.get(
    '/opt-outs',
    {
      schema: {
        operationId: 'listOptOuts',
        tags,
        summary: 'List the recipients who opted out',
        description: 'By agent and phone. A recipient who opted out of several agents is listed once for each.',
        querystring: ListQuery,
        response: listResponses(refTo(OptOut), 'A page of the list.'),
      },
      config: { scope: 'read' },
    },
    async (request) => await listPage(pool, callerOf(request).accountId, request.query),
  )
}

async function listPage(pool: Pool, accountId: number, query: PageQuery & { agentId?: string; phone?: string }) {
  const page = readPage(OPT_OUT_LIST, query, 2)
  const values = [accountId, ...page.values]
  const bind = (value: string) => `$${values.push(value)}`
  const rows = await readOptedOut(
    pool,
    {
      direction: page.orderBy.endsWith('desc') ? 'desc' : 'asc',
      limit: page.fetch,
      ...(page.values.length > 0 && { after: ['$2', '$3'] }),
      ...(query.agentId !== undefined && { agentId: bind(query.agentId) }),
      ...(query.phone !== undefined && { phone: bind(phoneNumberInQuery(query.phone) as string) }),
    },
    values,
  )
  return page.toBody(rows.map(toItem))
}

function toItem({ phone, agentId: agent, block, source, changedAt }: OptOutState): OptOut {
  return { phone, agentId: agent, block, source, changedAt }
}

const changeRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  async function change(request: FastifyRequest, wanted: { agentId?: string; optedOut: boolean; block: boolean }): Promise<OptOut[]> {
    const { accountId } = callerOf(request)
    if (wanted.agentId !== undefined) await requireActiveAgent(pool, accountId, wanted.agentId)
    const phone = normalisePhoneNumber((request.params as Static<typeof PhonePath>).phone) as string
    request.change = await setOptOut(pool, { ...wanted, accountId, phone, source: 'api' })
    return (request.change.after as OptOutState[]).map(toItem)
  }

  app.put(
    '/opt-outs/:phone',
    {
      schema: {
        operationId: 'putOptOut',
        tags,
        summary: 'Opt a recipient out of campaigns, or block all messages to the recipient',
        description:
          'A recipient who writes START opts in again, unless you block the recipient. Without `block`, a recipient who was blocked is only opted out.',
        params: PhonePath,
        querystring: NoQuery,
        body: OptOutRequest,
        response: {
          200: Type.Object(
            { items: Type.Array(refTo(OptOut)) },
            { description: 'The opt-out of each agent that the request concerns.', additionalProperties: false },
          ),
          ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_AGENT_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      config: { scope: 'manage' },
    },
    async (request) => {
      const { block = false, ...body } = request.body
      return { items: await change(request, { ...body, optedOut: true, block }) }
    },
  )

  app.delete(
    '/opt-outs/:phone',
    {
      schema: {
        operationId: 'deleteOptOut',
        tags,
        summary: 'End the opt-out and the block of a recipient',
        description: 'A recipient who is not opted out gets the same response.',
        params: PhonePath,
        querystring: Agent,
        body: NoBody,
        response: {
          204: Type.Null({ description: 'The recipient is not opted out.' }),
          ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_AGENT_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      config: { scope: 'manage' },
    },
    async (request, reply) => {
      await change(request, { ...request.query, optedOut: false, block: false })
      return await reply.code(204).send(null)
    },
  )
}
