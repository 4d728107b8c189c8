import { type ApiResponse, isUnanswered } from './caller.ts'
import type { DrawnCampaign, DrawnMessage } from './requests.ts'

// What callers requested, and the responses that they got: one side of the checks.

export type Outcome =
  | 'accepted'
  /** The caller stopped waiting, and does not know. */
  | 'unanswered'
  /** Rejected, since it had expired when a node was there to accept it. */
  | 'too-late'

type Responses = {
  key: string
  outcome: Outcome
  /** All ids that were ever returned for this key. */
  ids: string[]
}
export type RequestedMessage = DrawnMessage & Responses
export type RequestedCampaign = DrawnCampaign & Responses

export type Requested = {
  messages: RequestedMessage[]
  campaigns: RequestedCampaign[]
  /** Responses that no caller should ever get. */
  unexpected: string[]
}

/** `idField`: of the response. `lateAfterMs`: fields with a time that can be too late, and from how long after it on. */
export type RequestKind = { idField: string; lateAfterMs: Record<string, number> }
export const MESSAGE: RequestKind = { idField: 'messageId', lateAfterMs: { sendAt: 60_000, expiresAt: 0 } }
/** A campaign that is up to a minute late still starts, like a message. */
export const CAMPAIGN: RequestKind = { idField: 'campaignId', lateAfterMs: { scheduledAt: 60_000, expiresAt: 0 } }

export function recordResponse(
  requested: Requested,
  one: RequestedMessage | RequestedCampaign,
  response: ApiResponse,
  kind: RequestKind,
): void {
  if (isUnanswered(response)) return
  if (response.status === 202) {
    one.ids.push(response.body[kind.idField])
    one.outcome = 'accepted'
    if (!response.isReplayed && Object.keys(kind.lateAfterMs).some((field) => response.sentAt > lateFrom(one.body, kind, field)))
      requested.unexpected.push(`${one.key}: accepted as ${one.ids.at(-1)}, though it had expired`)
  } else if (isRightlyLate(response, one.body, kind) && one.outcome !== 'accepted') one.outcome = 'too-late'
  else requested.unexpected.push(`${one.key}: ${response.status} ${JSON.stringify(response.body)}`)
}

/** The response names a time that has passed. The database is on the same machine, so the clock is the same. */
export function isRightlyLate({ status, body, respondedAt }: ApiResponse, request: Record<string, unknown>, kind: RequestKind): boolean {
  const isNamed = (field: string) => body.details?.some(({ path }: { path: string }) => path === `/${field}`)
  return status === 400 && Object.keys(kind.lateAfterMs).some((field) => isNamed(field) && respondedAt >= lateFrom(request, kind, field))
}

function lateFrom(request: Record<string, unknown>, { lateAfterMs }: RequestKind, field: string): number {
  const time = request[field]
  return typeof time === 'string' ? Date.parse(time) + (lateAfterMs[field] ?? 0) : Number.POSITIVE_INFINITY
}
