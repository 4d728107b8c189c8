import { renderAndCheck } from '../content/check.ts'
import type { MessageContent } from '../content/content.ts'
import type { Variables } from '../content/variables.ts'
import type { Executor } from '../db/pool.ts'
import { ApiError, type Violation } from '../errors.ts'
import type { Submission } from './accept.ts'

// A template with variables becomes the content of the message itself, with the values of the request. The statement that accepts the message
// says which content the template has, and confirms the one that was used.

/** A stored content. Its row is never changed: a template that is replaced gets another one. */
type TemplateContent = { id: number; basic: boolean; message: MessageContent }

/** In SQL: whether the content `c` may have variables. For a template of 2 KB, this takes 0.01 ms. */
export const HAS_VARIABLES = `strpos(c.message::text, '{{') > 0`

/** In SQL: whether the content `c` of a template has to be rendered first. `from`: the id of the content that was rendered, or null. */
export const isToRender = (from: string) => `case when ${from} is null then ${HAS_VARIABLES} else ${from} <> c.id end`

export async function readTemplateContent(db: Executor, accountId: number, id: number): Promise<TemplateContent> {
  const text = `select id, basic, message from contents where account_id = $1 and id = $2`
  const { rows } = await db.query<TemplateContent>({ name: 'read-template-content', text, values: [accountId, id] })
  return rows[0] as TemplateContent
}

/** A bound for memory: a content has at most 256 KiB. */
const MAX_KNOWN = 100

/** Keeps the contents with variables that were used last, so that a further message of a template takes one statement instead of three. */
export function createTemplateMemory(db: Executor) {
  // By template. Requests that ask for the same content at once share the statement that reads it.
  const known = new Map<string, { id: number; content: Promise<TemplateContent> }>()
  const keyOf = ({ accountId, message }: Submission) => `${accountId} ${message.templateId}`

  /** The statement finds out if the template has another content by now. So values that do not fit the known one are not refused yet. */
  async function withKnown(submission: Submission): Promise<Submission> {
    const found = submission.message.templateId === undefined ? undefined : known.get(keyOf(submission))
    if (found === undefined) return submission
    const content = await found.content
    keep(keyOf(submission), found)
    try {
      return withValues(submission, content)
    } catch (error) {
      if (error instanceof ApiError) return submission
      throw error
    }
  }

  /** The template has the content `id`. */
  async function withContent(submission: Submission, id: number): Promise<Submission> {
    const key = keyOf(submission)
    const found = known.get(key)
    const { content } = found?.id === id ? found : keep(key, { id, content: readTemplateContent(db, submission.accountId, id) })
    const template = await content.catch((error) => {
      known.delete(key)
      throw error
    })
    if (mayHaveVariables(template)) return withValues(submission, template)
    // The template had variables before it was replaced.
    known.delete(key)
    return submission
  }

  function keep<Known extends { id: number; content: Promise<TemplateContent> }>(key: string, one: Known): Known {
    known.delete(key)
    known.set(key, one)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    return one
  }

  return { withKnown, withContent }
}

const mayHaveVariables = ({ message }: TemplateContent) => JSON.stringify(message).includes('{{')

/** Renders the template with the values of the request. Throws if a value is missing, or if the content breaks a rule with the values. */
function withValues(request: Submission, template: TemplateContent): Submission {
  const { message, variables = {} } = request
  const { content, violations, missing } = renderAndCheck(template.message, template.basic, variables)
  if (violations.length > 0) throw new ApiError('RCS_INVALID_MESSAGE', { details: ofTemplate([...violations, ...missing]) })
  if (missing.length > 0) throw new ApiError('RCS_MISSING_VARIABLE', { details: ofTemplate(missing) })
  return { ...request, message: { ...message, inline: content }, renderedFrom: template.id }
}

/** Throws if the template breaks a rule with these values. Values may be missing: the members of a campaign have their own. */
export function requireFitting(template: TemplateContent, variables: Variables): void {
  const { violations } = renderAndCheck(template.message, template.basic, variables)
  if (violations.length > 0) throw new ApiError('RCS_INVALID_MESSAGE', { details: ofTemplate(violations) })
}

/** As many as for other errors (http/validation.ts). */
const MAX_VIOLATIONS = 50

/** The body has only the id of the template, so each violation is at that. */
function ofTemplate(violations: Violation[]): Violation[] {
  return violations
    .slice(0, MAX_VIOLATIONS)
    .map(({ path, reason }) => ({ path: '/message/templateId', reason: `names a template whose ${path || 'content'} ${reason}` }))
}
