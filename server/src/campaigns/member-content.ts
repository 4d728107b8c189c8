import { renderAndCheck } from '../content/check.ts'
import type { MessageContent } from '../content/content.ts'
import { namesIn, VALUE_MAX_LENGTH, type Variables } from '../content/variables.ts'
import type { Violation } from '../errors.ts'
import { type Fallback, renderFallback } from '../messages/sms-fallback.ts'
import { lengthOf } from '../text-length.ts'

// What each member of a campaign gets, if its content or its SMS has variables. A member's attributes are the values, and win over the values of
// the campaign.

/** What such a campaign stores. The content and the text of the SMS are as the caller wrote them. */
export type PersonalCampaign = { basic: boolean; content: MessageContent; fallback: Fallback | null; variables: Variables }

/**
 * The attributes of a member do not fit, so the member gets nothing. `details` says which fields and variables are wrong. It never has a value:
 * values are data of a person, and an erasure would not find them here.
 */
export type Unfit = { reason: 'MISSING_VARIABLE' | 'INVALID_CONTENT'; details: string }

/** `content` is undefined if only the SMS has variables. */
type MemberContent = { content: MessageContent | undefined; fallback: Fallback | undefined }

/** The attributes that a campaign uses: the names of its variables. */
export function attributesIn({ content, fallback }: Pick<PersonalCampaign, 'content' | 'fallback'>): string[] {
  return namesIn([content, { content: fallback?.plan.content }])
}

/**
 * In SQL: a list of these attributes, which `names` lists as an array of texts. Other attributes, and the end of a value that is too long anyway,
 * are not read, since a member may have 256 KB of them.
 */
export function selectAttributes(names: string[], parameter: string): string {
  const values = names.map((_, index) => `left(attributes ->> (${parameter}::text[])[${index + 1}], ${VALUE_MAX_LENGTH + 1})`)
  return `json_build_array(${values.join(', ')}) as values`
}

/** The attributes by name, of a list that was read by `selectAttributes`. */
export function attributesOf(names: string[], values: (string | null)[]): Variables {
  return Object.fromEntries(names.flatMap((name, index) => (typeof values[index] === 'string' ? [[name, values[index]]] : [])))
}

/** `publicUrl`: the start of short links in the SMS. */
export function renderForMember(
  { basic, content, fallback, variables }: PersonalCampaign,
  attributes: Variables,
  publicUrl: string | undefined,
): MemberContent | Unfit {
  const tooLong = Object.keys(attributes).find((name) => lengthOf(attributes[name] as string) > VALUE_MAX_LENGTH)
  if (tooLong !== undefined) {
    return { reason: 'INVALID_CONTENT', details: `The value of the variable ${tooLong} must have at most ${VALUE_MAX_LENGTH} characters.` }
  }
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
