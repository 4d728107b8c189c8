import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { requireActiveAgent } from '../agents/agents.ts'
import type { RcsCarrier, Reach } from '../carriers/carrier.ts'
import { PhoneNumbers } from '../content/fields.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { NoQuery, OutgoingTime } from '../schemas.ts'

export const CAPABILITIES_TAG = { name: 'Capabilities', description: 'Whether recipients can be reached by RCS.' }

const MAX_RECIPIENTS = 100
const MAX_AGE_MS = 24 * 3_600_000
// The network usually responds within a second. A caller that needs the result should not wait for the network's own timeout.
const TIMEOUT_MS = 5_000

const CapabilityRequest = Type.Object(
  {
    agentId: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The agent that would send: networks launch each agent separately.',
    }),
    recipients: PhoneNumbers(MAX_RECIPIENTS),
  },
  { additionalProperties: false, examples: [{ agentId: 'demo-single', recipients: ['+48500100200', '+48500100202'] }] },
)

const Capability = Type.Object(
  {
    recipient: Type.String({ description: '`+` and digits.' }),
    reachable: Type.Union([Type.Boolean(), Type.Null()], {
      description: 'Whether the agent can reach the number by RCS. Null: the network did not say, or not in time.',
    }),
    features: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description:
        'What the phone supports, in the words of the network, such as `RICHCARD_CAROUSEL`; empty if it is not reachable. Null: the network did not say. It lists features only if it is asked about at most three numbers at once.',
    }),
    checkedAt: Type.Unsafe<Date | null>({
      ...OutgoingTime,
      type: ['string', 'null'],
      description: 'When the network was asked, up to 24 hours ago; null if it could not be asked.',
    }),
  },
  { additionalProperties: false },
)

type Options = { pool: Pool; findCarrier: (name: string) => Pick<RcsCarrier, 'reach'> | undefined }

export const capabilityRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, findCarrier }) => {
  app.post(
    '/capabilities',
    {
      schema: {
        operationId: 'checkCapabilities',
        tags: [CAPABILITIES_TAG.name],
        summary: 'Check whether recipients can be reached by RCS',
        description: 'Asks the network, and returns after at most five seconds. Herald keeps results for up to 24 hours.',
        querystring: NoQuery,
        body: CapabilityRequest,
        response: {
          200: Type.Object(
            { items: Type.Array(Capability, { description: 'In the order of the recipients.' }) },
            { description: 'What the network says about each recipient.', additionalProperties: false },
          ),
          ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_AGENT_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'),
        },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { agentId, recipients } = request.body
      const phones = recipients.map((phone) => normalisePhoneNumber(phone) as string)
      const { carrier } = await requireActiveAgent(pool, callerOf(request).accountId, agentId)
      const found = await findCarrier(carrier)?.reach(agentId, phones, MAX_AGE_MS, TIMEOUT_MS)
      return { items: phones.map((recipient, index) => toItem(recipient, found?.[index])) }
    },
  )
}

/** `found`: undefined if this process does not use the network of the agent. */
function toItem(recipient: string, found: Reach | undefined) {
  const { reachable = null, features = null, checkedAt = null } = found ?? {}
  return { recipient, reachable, features, checkedAt }
}
