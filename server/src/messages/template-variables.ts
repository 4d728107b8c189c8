import { makeContent } from '../content/check.ts'
import type { MessageContent } from '../content/content.ts'
import { ApiError, type Violation } from '../errors.ts'
import type { Submission } from './accept.ts'

// A template with variables becomes the content of the message itself, with the values of the request.

/** A stored content, whose row is never changed: a template that is replaced gets another one. */
export type TemplateContent = { id: number; basic: boolean; message: MessageContent }

/** In SQL: whether the content `c` may have variables. A template without them costs nothing more. */
export const HAS_VARIABLES = `strpos(c.message::text, '{{') > 0`

/** In SQL: a TemplateContent. */
export const readTemplateContent = (id: string) =>
  `select json_build_object('id', c.id, 'basic', c.basic, 'message', c.message) from contents c where c.id = ${id}`

/** A bound for memory: the largest templates have 256 KiB. */
const MAX_KNOWN = 100

/** Remembers the contents with variables that were sent last, so that the next message of the template needs no second statement. */
export function createTemplateMemory() {
  const known = new Map<string, TemplateContent>()
  const keyOf = ({ accountId, message }: Submission) => `${accountId} ${message.templateId}`

  function remember(submission: Submission, template: TemplateContent): void {
    known.delete(keyOf(submission))
    known.set(keyOf(submission), template)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
  }

  /** The statement finds out if the template has another content by now. So values that do not fit the known one are not refused yet. */
  function withKnown(submission: Submission): Submission {
    const template = submission.message.templateId === undefined ? undefined : known.get(keyOf(submission))
    if (template === undefined) return submission
    try {
      return withValues(submission, template)
    } catch (error) {
      if (error instanceof ApiError) return submission
      throw error
    }
  }

  return { remember, withKnown }
}

/** What a request has to say of its content. */
type WithTemplate = Pick<Submission, 'message' | 'variables' | 'renderedFrom'>

/** The request with what its template says. Throws if a value is missing, or if the content breaks a rule with the values. */
export function withValues<Request extends WithTemplate>(request: Request, template: TemplateContent): Request {
  const { message, variables = {} } = request
  const { content, violations, missing } = makeContent(template.message, template.basic, variables)
  if (violations.length > 0) throw new ApiError('RCS_INVALID_MESSAGE', { details: ofTemplate([...violations, ...missing]) })
  if (missing.length > 0) throw new ApiError('RCS_MISSING_VARIABLE', { details: ofTemplate(missing) })
  return { ...request, message: { ...message, inline: content }, renderedFrom: template.id }
}

/** The body names the template alone. */
function ofTemplate(violations: Violation[]): Violation[] {
  return violations.map(({ path, reason }) => ({
    path: '/message/templateId',
    reason: `names a template whose ${path || 'content'} ${reason}`,
  }))
}
