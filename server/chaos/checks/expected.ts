import type { History } from '../history/history.ts'
import type { StoredMessage } from '../history/messages.ts'
import type { Contents } from '../load/requests.ts'

// How each message was requested, and which final statuses it may have: by what its phone does (its last two digits), by the request, and
// by what happened to its campaign.

export type Intent = {
  accountId: number
  agentId: unknown
  phone: string
  contents: Contents
  clientReferenceId: unknown
  /** If the caller gave one. */
  sendAt: string | undefined
  expiresAt: string | undefined
  fallsBack: boolean
  fallsBackAfterExpiry: boolean
  isCancelled: boolean
}

export type Traced = { message: StoredMessage; intent: Intent }

/** Finds the request of each message: by its key, by its campaign, or by a tap. Another check reports messages without a request. */
export function trace({ requested, keys, messages, campaigns }: History): Traced[] {
  const byKey = new Map(requested.messages.map((one) => [one.key, one]))
  const keyOf = new Map(keys.map(({ key, id }) => [id, key]))
  const byCampaign = new Map(requested.campaigns.flatMap((one) => one.ids.map((id) => [id, one])))
  const cancelled = new Set(campaigns.filter(({ status }) => status === 'CANCELLED').map(({ id }) => id))
  return messages.flatMap((message) => {
    const campaign = byCampaign.get(message.campaignId ?? '')
    if (campaign !== undefined) {
      const isCancelled = cancelled.has(message.campaignId as string)
      return [{ message, intent: { ...intentOf(campaign, message.recipient), isCancelled } }]
    }
    const one = byKey.get(keyOf.get(message.triggeredBy ?? message.id) ?? '')
    if (one === undefined) return []
    const intent = intentOf(one, one.phone)
    return [{ message, intent: message.triggeredBy === null ? intent : ofTap(intent) }]
  })
}

type AnyRequest = { accountId: number; body: Record<string, unknown>; contents: Contents }

function intentOf({ accountId, body, contents }: AnyRequest, phone: string): Intent {
  return {
    accountId,
    agentId: body.agentId,
    phone,
    contents,
    clientReferenceId: body.clientReferenceId,
    sendAt: body.sendAt as string | undefined,
    expiresAt: body.expiresAt as string | undefined,
    fallsBack: body.smsFallback !== undefined,
    fallsBackAfterExpiry: body.smsFallbackAfterExpiry !== undefined,
    isCancelled: false,
  }
}

/** The message that a tap sends. */
function ofTap({ contents, ...intent }: Intent): Intent {
  const nothing = { clientReferenceId: undefined, sendAt: undefined, expiresAt: undefined, fallsBack: false, fallsBackAfterExpiry: false }
  return { ...intent, ...nothing, contents: { text: contents.triggers ?? '' } }
}

const NOT_READ = new Set(['01', '09'])
const REFUSED: Record<string, string> = { '02': 'NOT_REACHABLE', '03': 'REJECTED', '08': 'NOT_REACHABLE' }

/** As `endOf` writes them. */
export function allowedEnds({ phone, expiresAt, isCancelled }: Intent): string[] {
  const ending = phone.slice(-2)
  const refusal = REFUSED[ending]
  const usual = refusal !== undefined ? `FAILED ${refusal}` : NOT_READ.has(ending) ? 'DELIVERED' : 'READ'
  return [
    ...(ending === '04' ? [] : [usual]),
    ...(expiresAt === undefined ? [] : ['EXPIRED']),
    ...(isCancelled ? ['FAILED CAMPAIGN_CANCELLED'] : []),
  ]
}

export function endOf({ shown: { status, failure } }: Pick<StoredMessage, 'shown'>): string {
  return failure === undefined ? status : `${status} ${failure.reason}`
}

/** The final statuses of the SMS of a message with this final status. `OUTCOME_UNKNOWN`: an SMS is sent at most once. */
export function allowedSmsEnds(intent: Intent, end: string): string[] {
  const { phone, fallsBack, fallsBackAfterExpiry, isCancelled } = intent
  if (!fallsBack) return ['none']
  if (end === 'READ' || end === 'DELIVERED') return ['NOT_NEEDED RCS_DELIVERED']
  if (end === 'FAILED CAMPAIGN_CANCELLED') return ['SKIPPED CANCELLED']
  if (end === 'EXPIRED' && !fallsBackAfterExpiry) return ['SKIPPED EXPIRED']
  const trigger = end === 'EXPIRED' ? 'RCS_EXPIRED' : 'RCS_FAILED'
  const sent = phone.endsWith('08') ? 'FAILED UNDELIVERABLE' : `DELIVERED ${trigger}`
  // A message that the phone got too late makes the SMS needless, and the recipient can reply to it with STOP.
  const late = end === 'EXPIRED' ? ['NOT_NEEDED RCS_DELIVERED', ...(phone.endsWith('09') ? ['SKIPPED OPTED_OUT'] : [])] : []
  return [sent, 'FAILED OUTCOME_UNKNOWN', ...late, ...(isCancelled ? ['SKIPPED CANCELLED'] : [])]
}

export function smsEndOf({ shown: { smsFallback } }: Pick<StoredMessage, 'shown'>): string {
  return smsFallback === undefined ? 'none' : `${smsFallback.status} ${smsFallback.reason ?? ''}`.trim()
}
