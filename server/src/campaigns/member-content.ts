import { renderAndCheck } from '../content/check.ts'
import type { MessageContent } from '../content/content.ts'
import type { Variables } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { type Fallback, renderFallback } from '../messages/sms-fallback.ts'

// What each member of a campaign gets, if its content or its SMS has variables. A member's attributes are the values, and win over those of the
// campaign.

/** What such a campaign stores. The content and the text of the SMS are as the caller wrote them. */
export type PersonalCampaign = { basic: boolean; content: MessageContent; fallback: Fallback | null; variables: Variables }

/** Why a member gets nothing. `details` says which fields and variables are wrong, but not the values: they are data of a person. */
export type Problem = { reason: 'MISSING_VARIABLE' | 'INVALID_CONTENT'; details: string }

/** `content` is undefined if only the SMS has variables. */
export type MemberContent = { content: MessageContent | undefined; fallback: Fallback | undefined }

/** `publicUrl`: the start of short links in the SMS. */
export function renderForMember(
  { basic, content, fallback, variables }: PersonalCampaign,
  attributes: Variables | null,
  publicUrl: string | undefined,
): MemberContent | Problem {
  const values = { ...variables, ...attributes }
  const rcs = renderAndCheck(content, basic, values)
  const sms = fallback === null ? undefined : renderFallback(fallback, values, publicUrl)
  const missing = [...rcs.missing, ...(sms?.missing ?? [])]
  if (missing.length > 0) return { reason: 'MISSING_VARIABLE', details: describe(missing) }
  const violations = [...rcs.violations, ...(sms?.fallback.violations ?? [])]
  if (violations.length > 0) return { reason: 'INVALID_CONTENT', details: describe(violations) }
  return { content: rcs.content === content ? undefined : rcs.content, fallback: sms?.fallback }
}

const MAX_DESCRIBED = 3

function describe(violations: Violation[]): string {
  const described = violations.slice(0, MAX_DESCRIBED).map(({ path, reason }) => `${path || 'The content'} ${reason}`)
  const more = violations.length - described.length
  return `${described.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`
}
