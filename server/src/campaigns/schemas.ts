import { type Static, Type } from 'typebox'
import { Variables } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { MAX_GROUP_NUMBER } from '../groups/groups.ts'
import { Routing, ShownRouting } from '../messages/routing.ts'
import { basicMode, COMMON, EXAMPLE, prepareMessage, startRules } from '../messages/schemas.ts'
import { afterExpiryRules, SmsFallback, SmsFallbackAfterExpiry } from '../messages/sms-fallback.ts'
import { OutgoingTime } from '../schemas.ts'
import type { Prepared } from '../validation.ts'
import { DeliveryWindow, ShownWindow } from '../windows/window.ts'
import { CAMPAIGN_STATUSES } from './states.ts'

const MAX_GROUPS = 100

const CAMPAIGN_EXAMPLE = {
  clientReferenceId: 'spring-2027',
  name: 'Spring sale',
  agentId: EXAMPLE.agentId,
  segmentIds: [1, 2],
  message: { inline: { type: 'MESSAGE', content: 'Everything for the garden, a fifth off until Sunday.' } },
}

export const CampaignRequest = Type.Object(
  {
    ...COMMON,
    variables: Variables,
    name: Type.String({ minLength: 1, maxLength: 200, description: 'A name that lists and commands show. Recipients do not see it.' }),
    segmentIds: Type.Array(Type.Integer({ minimum: 1, maximum: MAX_GROUP_NUMBER }), {
      minItems: 1,
      maxItems: MAX_GROUPS,
      description: 'The numbers of the groups. A recipient who is in several of them gets one message.',
      rules: noGroupTwice,
    }),
    scheduledAt: Type.Optional(
      Type.String({ format: 'timestamp', description: 'When it starts, at most a year ahead. If absent, or up to a minute ago: now.' }),
    ),
    expiresAt: Type.Optional(
      Type.String({
        format: 'timestamp',
        description:
          'Until when its messages may be delivered: later than `scheduledAt`, by at most 15 days. Without it, each message expires 48 hours after its own acceptance.',
      }),
    ),
    routing: Routing,
    deliveryWindow: Type.Optional(DeliveryWindow),
    smsFallback: Type.Optional(SmsFallback),
    smsFallbackAfterExpiry: Type.Optional(SmsFallbackAfterExpiry),
  },
  { additionalProperties: false, rules: campaignRules, prepare: prepareCampaign, examples: [CAMPAIGN_EXAMPLE] },
)
export type CampaignRequest = Static<typeof CampaignRequest>

/** A campaign is checked with its values, and stored as it was written: the attributes of each member win over them. */
function prepareCampaign(body: unknown): Prepared {
  return { ...prepareMessage(body), value: body, missing: [] }
}

function noGroupTwice(groups: unknown[]): Violation[] {
  if (groups.length > MAX_GROUPS) return []
  return groups.flatMap((group, index) => {
    const first = groups.indexOf(group)
    return first < index ? [{ path: `/${index}`, reason: `is the same group as /segmentIds/${first}` }] : []
  })
}

/** Rules that need no clock. */
function campaignRules(request: Record<string, unknown>): Violation[] {
  return [...basicMode(request), ...afterExpiryRules(request), ...startRules(request, 'scheduledAt')]
}

export const CampaignId = Type.String({ format: 'uuid', examples: ['0198c0de-0000-7000-8000-000000000002'] })
const at = (description: string) => Type.Optional(Type.Unsafe<Date>({ ...OutgoingTime, description }))
const count = (description: string) => Type.Integer({ description })

export const Campaign = Type.Object(
  {
    campaignId: CampaignId,
    clientReferenceId: Type.Optional(Type.String()),
    name: Type.String(),
    agentId: Type.String(),
    segmentIds: Type.Array(Type.Integer(), { description: 'Empty if the campaign retries the failed messages of another one.' }),
    retryOf: Type.Optional(Type.String({ description: 'The campaign that this one retries.' })),
    retriedBy: Type.Optional(Type.String({ description: 'The campaign that retries this one. A campaign can be retried once.' })),
    status: Type.Enum([...CAMPAIGN_STATUSES], { description: 'COMPLETED: every message has been sent, or has a final status.' }),
    basic: Type.Boolean(),
    routing: ShownRouting,
    createdAt: OutgoingTime,
    scheduledAt: OutgoingTime,
    startedAt: at('When it started.'),
    completedAt: at('When the last message had been sent.'),
    cancelledAt: at('When it was cancelled.'),
    expiresAt: at('Until when its messages may be delivered. Without it, each message expires 48 hours after its own acceptance.'),
    deliveryWindow: ShownWindow,
    recipients: Type.Integer({ description: 'The number of messages; it grows while the campaign starts.' }),
    counts: Type.Object(
      {
        ACCEPTED: count('Waiting.'),
        SENDING: count('Being sent, waiting for a retry, or waiting for a receipt.'),
        SENT: count('Accepted by the network.'),
        DELIVERED: count('Delivered to the phone.'),
        READ: count('Read by the recipient.'),
        FAILED: count('Failed permanently.'),
        EXPIRED: count('Expired undelivered.'),
      },
      { additionalProperties: false, description: 'The number of messages by their current status.' },
    ),
  },
  { $id: 'Campaign', additionalProperties: false },
)
export type Campaign = Static<typeof Campaign>
