import { type Answer, isNoAnswer } from './caller.ts'
import type { Wanted, WantedCampaign } from './requests.ts'

// What callers asked for, and what they were told: one side of the verdict.

export type Outcome =
  | 'accepted'
  /** Its caller has given up, and does not know. */
  | 'unanswered'
  /** It was refused, since it had run out when somebody was there to take it. */
  | 'too-late'

/** `ids`: all that were ever answered for this key. */
export type AskedMessage = Wanted & { key: string; outcome: Outcome; ids: string[] }
export type AskedCampaign = WantedCampaign & { key: string; outcome: Outcome; ids: string[] }

export type Asked = {
  messages: AskedMessage[]
  campaigns: AskedCampaign[]
  /** How often each status came; 0 is none. */
  answers: Record<number, number>
  /** What nobody should ever be told. */
  strange: string[]
}

export function countAnswer(asked: Asked, { status }: Answer): void {
  asked.answers[status] = (asked.answers[status] ?? 0) + 1
}

/** Notes an answer to a request. `idField` has the id of what was made; `timeField` names the time that may have passed. */
export function hearAnswer(asked: Asked, one: AskedMessage | AskedCampaign, answer: Answer, idField: string, timeField: string): void {
  countAnswer(asked, answer)
  if (isNoAnswer(answer)) return
  if (answer.status === 202) {
    one.ids.push(answer.body[idField])
    one.outcome = 'accepted'
  } else if (isTooLate(answer, timeField) && one.outcome !== 'accepted') one.outcome = 'too-late'
  else asked.strange.push(`${one.key}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

/** The request names a time that has passed. */
export function isTooLate({ status, body }: Answer, timeField: string): boolean {
  return status === 400 && body.details?.some(({ path }: { path: string }) => path === `/${timeField}`)
}
