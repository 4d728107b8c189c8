import type { Evidence } from './evidence.ts'
import type { Contents } from './requests.ts'
import type { Stored } from './stored.ts'

// How messages were asked for, and where they may end: by what their phone does (its last two digits), how they were asked for, and what
// befell their campaign.

export type Asking = {
  accountId: number
  agentId: unknown
  phone: string
  contents: Contents
  clientReferenceId: unknown
  /** Where the caller gave one. */
  expiresAt: string | undefined
  fallsBack: boolean
  fallsBackAfterExpiry: boolean
  isCancelled: boolean
}

export type Followed = { message: Stored; asking: Asking }

/** How each message was asked for: by its key, by its campaign, or by a tap. Whose asking is not known is judged elsewhere. */
export function follow({ asked, keys, messages, campaigns }: Evidence): Followed[] {
  const byKey = new Map(asked.messages.map((one) => [one.key, one]))
  const keyOf = new Map(keys.map(({ key, id }) => [id, key]))
  const byCampaign = new Map(asked.campaigns.flatMap((one) => one.ids.map((id) => [id, one])))
  const cancelled = new Set(campaigns.filter(({ status }) => status === 'CANCELLED').map(({ id }) => id))
  return messages.flatMap((message) => {
    const campaign = byCampaign.get(message.campaignId ?? '')
    if (campaign !== undefined) {
      const isCancelled = cancelled.has(message.campaignId as string)
      return [{ message, asking: { ...askingOf(campaign, message.recipient), isCancelled } }]
    }
    const one = byKey.get(keyOf.get(message.triggeredBy ?? message.id) ?? '')
    if (one === undefined) return []
    const asking = askingOf(one, one.phone)
    return [{ message, asking: message.triggeredBy === null ? asking : tapped(asking) }]
  })
}

type AnyAsked = { accountId: number; body: Record<string, unknown>; contents: Contents }

function askingOf({ accountId, body, contents }: AnyAsked, phone: string): Asking {
  return {
    accountId,
    agentId: body.agentId,
    phone,
    contents,
    clientReferenceId: body.clientReferenceId,
    expiresAt: body.expiresAt as string | undefined,
    fallsBack: body.smsFallback !== undefined,
    fallsBackAfterExpiry: body.smsFallbackAfterExpiry !== undefined,
    isCancelled: false,
  }
}

/** What a tap on it sends. */
function tapped({ contents, ...asking }: Asking): Asking {
  const nothing = { clientReferenceId: undefined, expiresAt: undefined, fallsBack: false, fallsBackAfterExpiry: false }
  return { ...asking, ...nothing, contents: { text: contents.triggers ?? '' } }
}

const NOT_READ = new Set(['01', '09'])
const REFUSED: Record<string, string> = { '02': 'NOT_REACHABLE', '03': 'REJECTED', '08': 'NOT_REACHABLE' }

/** In the form that `endOf` has. */
export function allowedEnds({ phone, expiresAt, isCancelled }: Asking): string[] {
  const ending = phone.slice(-2)
  const refusal = REFUSED[ending]
  const usual = refusal !== undefined ? `FAILED ${refusal}` : NOT_READ.has(ending) ? 'DELIVERED' : 'READ'
  return [
    ...(ending === '04' ? [] : [usual]),
    ...(expiresAt === undefined ? [] : ['EXPIRED']),
    ...(isCancelled ? ['FAILED CAMPAIGN_CANCELLED'] : []),
  ]
}

export function endOf({ shown: { status, failure } }: Pick<Stored, 'shown'>): string {
  return failure === undefined ? status : `${status} ${failure.reason}`
}

/** Of the SMS of a message that has come to this end. `OUTCOME_UNKNOWN`: at most once is what is promised. */
export function allowedSmsEnds(asking: Asking, end: string): string[] {
  const { phone, fallsBack, fallsBackAfterExpiry, isCancelled } = asking
  if (!fallsBack) return ['none']
  if (end === 'READ' || end === 'DELIVERED') return ['NOT_NEEDED RCS_DELIVERED']
  if (end === 'FAILED CAMPAIGN_CANCELLED') return ['SKIPPED CANCELLED']
  if (end === 'EXPIRED' && !fallsBackAfterExpiry) return ['SKIPPED EXPIRED']
  const trigger = end === 'EXPIRED' ? 'RCS_EXPIRED' : 'RCS_FAILED'
  const sent = phone.endsWith('08') ? 'FAILED UNDELIVERABLE' : `DELIVERED ${trigger}`
  // What the phone got too late makes the SMS needless, and can be answered with STOP.
  const late = end === 'EXPIRED' ? ['NOT_NEEDED RCS_DELIVERED', ...(phone.endsWith('09') ? ['SKIPPED OPTED_OUT'] : [])] : []
  return [sent, 'FAILED OUTCOME_UNKNOWN', ...late, ...(isCancelled ? ['SKIPPED CANCELLED'] : [])]
}

export function smsEndOf({ shown: { smsFallback } }: Pick<Stored, 'shown'>): string {
  return smsFallback === undefined ? 'none' : `${smsFallback.status} ${smsFallback.reason ?? ''}`.trim()
}
