import { type Answer, isNoAnswer } from './caller.ts'
import type { Wanted, WantedCampaign } from './requests.ts'

// What callers asked for, and what they were told: one side of the verdict.

export type Outcome =
  | 'accepted'
  /** Its caller has given up, and does not know. */
  | 'unanswered'
  /** It was refused, since it had run out when somebody was there to take it. */
  | 'too-late'

type Answered = {
  key: string
  outcome: Outcome
  /** All that were ever answered for this key. */
  ids: string[]
}
export type AskedMessage = Wanted & Answered
export type AskedCampaign = WantedCampaign & Answered

export type Asked = {
  messages: AskedMessage[]
  campaigns: AskedCampaign[]
  /** What nobody should ever be told. */
  strange: string[]
}

/** What is asked for: where the id of what was made stands, and which times can be too late, from how long after them on. */
export type AskedKind = { idField: string; lateAfterMs: Record<string, number> }
export const A_MESSAGE: AskedKind = { idField: 'messageId', lateAfterMs: { expiresAt: 0 } }
/** One that is a minute late starts all the same. */
export const A_CAMPAIGN: AskedKind = { idField: 'campaignId', lateAfterMs: { scheduledAt: 60_000, expiresAt: 0 } }

/** Notes an answer to a request. */
export function hearAnswer(asked: Asked, one: AskedMessage | AskedCampaign, answer: Answer, kind: AskedKind): void {
  if (isNoAnswer(answer)) return
  if (answer.status === 202) {
    one.ids.push(answer.body[kind.idField])
    one.outcome = 'accepted'
    if (!answer.isReplayed && Object.keys(kind.lateAfterMs).some((field) => answer.sentAt > lateFrom(one.body, kind, field)))
      asked.strange.push(`${one.key}: accepted as ${one.ids.at(-1)}, though it had run out`)
  } else if (isRightlyLate(answer, one.body, kind) && one.outcome !== 'accepted') one.outcome = 'too-late'
  else asked.strange.push(`${one.key}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

/** The request names a time that has passed, and it has. The clock is the database's, too. */
export function isRightlyLate({ status, body, answeredAt }: Answer, asked: Record<string, unknown>, kind: AskedKind): boolean {
  const isTold = (field: string) => body.details?.some(({ path }: { path: string }) => path === `/${field}`)
  return status === 400 && Object.keys(kind.lateAfterMs).some((field) => isTold(field) && answeredAt >= lateFrom(asked, kind, field))
}

function lateFrom(asked: Record<string, unknown>, { lateAfterMs }: AskedKind, field: string): number {
  const time = asked[field]
  return typeof time === 'string' ? Date.parse(time) + (lateAfterMs[field] ?? 0) : Number.POSITIVE_INFINITY
}
