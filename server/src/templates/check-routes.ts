import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { ContentFacts, contentFacts } from '../content/facts.ts'
import { fieldsOf } from '../content/untrusted.ts'
import { FieldVariables, variableSpace } from '../content/variable-space.ts'
import { type Rendered, renderContent, type VariableField, Variables, variablesOf } from '../content/variables.ts'
import type { Pool } from '../db/pool.ts'
import type { ApiError } from '../errors.ts'
import { MAX_GROUP_NUMBER } from '../groups/groups.ts'
import { errorResponses, ViolationList } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { NoQuery, refTo } from '../schemas.ts'
import type { Prepared } from '../validation.ts'
import { checkGroup, GroupCheck } from './check-group.ts'
import { basic, description, EXAMPLE, message, name, OPTIONS, prepareTemplate, status, tags } from './schemas.ts'
import { missingTemplates } from './templates.ts'

/**
 * With `variables`, the template is checked as the content of a message would be; with `segmentId`, as that of a campaign, whose members have
 * values of their own.
 */
function prepareCheck(body: unknown): Prepared & Rendered {
  const { variables, segmentId } = fieldsOf(body)
  const prepared = prepareTemplate(body, variables === undefined ? undefined : variablesOf(variables))
  return segmentId === undefined ? prepared : { ...prepared, missing: [] }
}

/** The content for people: a variable that has neither a value nor a default stays as it was written. */
function shown(body: unknown, fields: VariableField[]): unknown {
  const { message, variables } = fieldsOf(body)
  const placeholders = fields.flatMap(({ required }) => required.map((name) => [name, `{{${name}}}`]))
  return renderContent(message, { ...Object.fromEntries(placeholders), ...variablesOf(variables) }).content
}

export const TemplateToCheck = Type.Object(
  {
    name: Type.Optional(name),
    description,
    basic: Type.Optional(basic),
    status: Type.Optional(status),
    message,
    variables: Variables,
    segmentId: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_GROUP_NUMBER,
        description: 'The number of a group: the response says for how many of its members the message would fail, and why.',
      }),
    ),
  },
  { ...OPTIONS, prepare: prepareCheck, examples: [{ message: EXAMPLE.message }] },
)

const TemplateCheck = Type.Object(
  {
    valid: Type.Boolean(),
    violations: ViolationList,
    facts: Type.Union([refTo(ContentFacts), Type.Null()], {
      description:
        'Null if the content type is unknown. A variable that has neither a value nor a default counts as empty; a text that would then be empty counts as one character, and a phone number or email address as a sample.',
    }),
    rendered: Type.Optional(
      Type.Unsafe<unknown>({
        type: 'object',
        additionalProperties: true,
        description:
          'The content with the values and defaults. A variable that has neither stays as `{{name}}`. Absent if the content has no variables.',
      }),
    ),
    variables: Type.Optional(
      Type.Array(refTo(FieldVariables), { description: 'The fields with variables, and the space for their values.' }),
    ),
    group: Type.Optional(refTo(GroupCheck, { description: 'With `segmentId`, if the content has no violation.' })),
  },
  { additionalProperties: false, description: 'The violations, and what the content means for phones and for billing.' },
)

/** Checks content that is not stored yet. */
export const checkRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.post(
    '/templates/check',
    {
      schema: {
        operationId: 'checkTemplate',
        tags,
        summary: 'Check a template without storing it, and see what its content means for phones and for billing',
        querystring: NoQuery,
        body: TemplateToCheck,
        response: { 200: TemplateCheck, ...errorResponses('RCS_SEGMENT_NOT_FOUND', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE') },
      },
      // Violations are the result of this request, not an error.
      attachValidation: true,
      config: { scope: 'read' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { content: message, fields } = prepareCheck(request.body)
      const basic = fieldsOf(request.body).basic === true
      const missing = await missingTemplates(pool, accountId, message, '/message')
      const ofSchema = (request.validationError as ApiError | undefined)?.details ?? []
      const violations = [...ofSchema, ...missing]
      const facts = contentFacts(message, basic, '/message') ?? null
      const valid = violations.length === 0
      const group = valid ? await checkedGroup(pool, accountId, request.body) : undefined
      const result = { valid, violations, facts, ...(group && { group }) }
      if (fields.length === 0) return result
      return { ...result, rendered: shown(request.body, fields), variables: variableSpace(message, fields, { basic, path: '/message' }) }
    },
  )
}

async function checkedGroup(
  pool: Pool,
  accountId: number,
  { segmentId, message, basic = false, variables = {} }: Static<typeof TemplateToCheck>,
) {
  return segmentId === undefined ? undefined : await checkGroup(pool, { accountId, number: segmentId }, { message, basic, variables })
}
