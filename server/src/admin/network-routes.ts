import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { readMessage } from '../messages/messages.ts'
import { MessagePath } from '../messages/routes.ts'
import { readOwnSms } from '../phones/own-sms.ts'
import type { Simulators } from '../phones/simulators.ts'
import { NoQuery } from '../schemas.ts'
import { PHONES_TAG, Sms } from './phone-schemas.ts'

const tags = [PHONES_TAG.name]
const object = { additionalProperties: false }

const Carrier = Type.Object(
  {
    carrier: Type.String(),
    isSimulated: Type.Boolean({ description: 'Whether it is the simulator, with phones that people can use.' }),
    agentIds: Type.Array(Type.String(), { description: 'The agents of the account whose messages it gets.' }),
    messagesPerSecond: Type.Optional(Type.Integer({ description: 'The limit of all agents of the carrier together, if it has one.' })),
    messagesPerSecondPerAgent: Type.Optional(Type.Integer({ description: 'The limit of each agent, if it has one.' })),
  },
  object,
)

const Received = Type.Object(
  {
    messageId: Type.String({ format: 'uuid' }),
    isSimulated: Type.Boolean({ description: 'If false, the network is real, and does not say what it received.' }),
    agentMessage: Type.Optional(
      Type.Unknown({ description: 'The RCS message, in Google’s form. Absent if the network did not accept it.' }),
    ),
    deliveredAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'When the phone got the RCS message, even if Herald got no receipt. Absent if it has not.',
      }),
    ),
    sms: Type.Optional({ ...Sms, description: 'The SMS, if the phone has it, even if Herald got no receipt.' }),
  },
  { ...object, description: 'What the network received.' },
)

type SimulatedMessage = { agentMessage: unknown; deliveredAt: string | null }
type Routes = FastifyPluginAsyncTypebox<{ pool: Pool; simulators: Simulators }>

/** The networks of an account, and what the simulated one received. */
export const networkRoutes: Routes = async (app, { pool, simulators }) => {
  app.get(
    '/carriers',
    {
      schema: {
        operationId: 'listAccountCarriers',
        tags,
        summary: 'List the carriers of the account’s agents',
        querystring: NoQuery,
        response: { 200: Type.Object({ items: Type.Array(Carrier) }, { ...object, description: 'The carriers.' }), ...errorResponses() },
      },
      config: { role: 'viewer' },
    },
    async (request) => ({ items: await simulators.listCarriers(pool, callerOf(request).accountId) }),
  )

  app.get(
    '/messages/:messageId/received',
    {
      schema: {
        operationId: 'readReceived',
        tags,
        summary: 'Read what the simulated network received of a message',
        params: MessagePath,
        querystring: NoQuery,
        response: { 200: Received, ...errorResponses('RCS_MESSAGE_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => await readReceived(callerOf(request).accountId, request.params.messageId),
  )

  async function readReceived(accountId: number, id: string): Promise<Static<typeof Received>> {
    const { messageId, agentId, recipient, smsFallback } = await readMessage(pool, accountId, id)
    const simulator = await simulators.ofAgent(pool, agentId)
    if (simulator === undefined) return { messageId, isSimulated: false }
    const { messages } = (await simulator.readMessage(agentId, messageId)) as { messages: SimulatedMessage[] }
    const { agentMessage, deliveredAt } = messages[0] ?? {}
    const own = smsFallback === undefined ? [] : await readOwnSms(pool, simulator, accountId, recipient)
    const sms = own.find((each) => each.messageId === messageId)
    return { messageId, isSimulated: true, ...(messages[0] && { agentMessage }), ...(deliveredAt && { deliveredAt }), ...(sms && { sms }) }
  }
}
