import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { CONTENT_TYPES, MessageContent } from '../content/content.ts'
import { ContentFacts, contentFacts } from '../content/facts.ts'
import { basicRules } from '../content/rules.ts'
import { fieldsOf } from '../content/untrusted.ts'
import { FieldVariables, variableSpace } from '../content/variable-space.ts'
import { type Rendered, renderContent, type VariableField, Variables, variablesOf } from '../content/variables.ts'
import type { Pool } from '../db/pool.ts'
import type { ApiError, Violation } from '../errors.ts'
import { errorResponses, ViolationList } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { locationOf } from '../http/location.ts'
import { daysInOrder, incomingDay, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import type { Prepared } from '../validation.ts'
import {
  createTemplate,
  deleteTemplate,
  listTemplates,
  missingTemplates,
  readTemplate,
  replaceTemplate,
  TEMPLATE_LIST,
  TEMPLATE_STATUSES,
  withMissingTargetsNamed,
} from './templates.ts'

export const TEMPLATES_TAG = { name: 'Templates', description: 'Stored content that is sent by its id.' }

const name = Type.String({ minLength: 1, maxLength: 200 })
const description = Type.Optional(Type.String({ maxLength: 1000 }))
const basic = Type.Boolean({ description: 'RCS Basic: a text of at most 160 bytes in UTF-8, with no buttons.' })
const status = Type.Enum([...TEMPLATE_STATUSES], { description: 'Only `APPROVED` templates can be sent.' })
const message = refTo(MessageContent)

const EXAMPLE = {
  name: 'Order on its way',
  status: 'APPROVED',
  message: {
    type: 'CARD',
    content: 'It should be with you tomorrow before noon.',
    data: { title: 'Your order is on its way', imageUrl: 'https://example.com/parcel.jpg' },
    buttons: [{ id: 'track', type: 'url', text: 'Track it', url: 'https://example.com/track' }],
  },
}
const OPTIONS = { additionalProperties: false, rules: basicMode, prepare: (body: unknown) => prepareTemplate(body) }

/** A template is checked with its defaults, and stored as it was written: the values come with its messages. */
function prepareTemplate(body: unknown, values?: Variables): Prepared & Rendered {
  const { message } = fieldsOf(body)
  const rendered = renderContent(message, values, '/message')
  const checked = rendered.content === message ? body : { ...fieldsOf(body), message: rendered.content }
  return { checked, value: body, ...rendered }
}

/** With `variables`, the template is checked as the content of a message would be. */
function prepareCheck(body: unknown): Prepared & Rendered {
  const { variables } = fieldsOf(body)
  return prepareTemplate(body, variables === undefined ? undefined : variablesOf(variables))
}

/** The content for people: a variable that has neither a value nor a default stays as it was written. */
function shown(body: unknown, fields: VariableField[]): unknown {
  const { message, variables } = fieldsOf(body)
  const placeholders = fields.flatMap(({ required }) => required.map((name) => [name, `{{${name}}}`]))
  return renderContent(message, { ...Object.fromEntries(placeholders), ...variablesOf(variables) }).content
}

function basicMode({ basic, message }: Record<string, unknown>): Violation[] {
  return basic === true ? basicRules(message, '/message') : []
}

const Id = Type.Integer({ description: 'Unique, below 2^53, and in the order of creation to the millisecond. Ids have gaps of any size.' })

const Template = Type.Object(
  { id: Id, name, description, basic, status, message, createdAt: OutgoingTime, updatedAt: OutgoingTime },
  {
    $id: 'Template',
    additionalProperties: false,
    examples: [
      { id: 786_471_321_601_234, ...EXAMPLE, basic: false, createdAt: '2026-01-31T08:00:00.000Z', updatedAt: '2026-01-31T08:00:00.000Z' },
    ],
  },
)

export const NewTemplate = Type.Object(
  {
    name,
    description,
    basic: Type.Optional(Type.Boolean({ ...basic, default: false })),
    status: Type.Optional(Type.Enum([...TEMPLATE_STATUSES], { ...status, default: 'DRAFT' })),
    message,
  },
  { ...OPTIONS, examples: [EXAMPLE] },
)

const TemplateReplacement = Type.Object(
  { name, description, basic, status, message },
  { ...OPTIONS, examples: [{ ...EXAMPLE, basic: false }] },
)

export const TemplateToCheck = Type.Object(
  { name: Type.Optional(name), description, basic: Type.Optional(basic), status: Type.Optional(status), message, variables: Variables },
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
  },
  { additionalProperties: false, description: 'The violations, and what the content means for phones and for billing.' },
)

const TemplatePath = Type.Object({ id: Type.Integer() }, { additionalProperties: false })

const TemplateListQuery = listQuery(
  TEMPLATE_LIST,
  {
    status: Type.Optional(Type.Enum([...TEMPLATE_STATUSES])),
    type: Type.Optional(Type.Enum([...CONTENT_TYPES], { description: 'The content type.' })),
    createdFrom: incomingDay('Created on this day or later, in UTC.'),
    createdTo: incomingDay('Created on this day or earlier, in UTC.'),
  },
  { rules: daysInOrder('createdFrom', 'createdTo') },
)

const tags = [TEMPLATES_TAG.name]
const BODY_ERRORS = ['RCS_INVALID_MESSAGE', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_QUOTA_EXCEEDED'] as const
const TheTemplate = refTo(Template, { description: 'The template.' })

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const templateRoutes: Routes = async (app, options) => {
  app.addSchema(Template)
  app.addSchema(ContentFacts)
  app.addSchema(FieldVariables)
  // The content was validated when it was stored. Serializing it with all its schemas would be the most expensive step of the request.
  app.setSerializerCompiler(() => (response) => JSON.stringify(response))
  await app.register(listRoutes, options)
  await app.register(checkRoutes, options)
  await app.register(singleRoutes, options)
}

const listRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/templates',
    {
      schema: {
        operationId: 'listTemplates',
        tags,
        summary: 'List the templates of the account',
        querystring: TemplateListQuery,
        response: listResponses(refTo(Template), 'A page of templates.'),
      },
      config: { scope: 'read' },
    },
    async (request) => await listTemplates(pool, callerOf(request).accountId, request.query),
  )

  app.post(
    '/templates',
    {
      schema: {
        operationId: 'createTemplate',
        tags,
        summary: 'Create a template',
        querystring: NoQuery,
        body: NewTemplate,
        response: {
          201: { ...TheTemplate, headers: { Location: { type: 'string', description: 'The path of the template.' } } },
          ...errorResponses('RCS_TEMPLATE_NOT_FOUND', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage' },
    },
    async (request, reply) => {
      const { accountId } = callerOf(request)
      const input = { basic: false, status: 'DRAFT' as const, ...request.body }
      const template = await withMissingTargetsNamed(pool, accountId, input, () => createTemplate(pool, accountId, input))
      return await reply.code(201).header('Location', locationOf(request, template.id)).send(template)
    },
  )
}

const checkRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/templates/check',
    {
      schema: {
        operationId: 'checkTemplate',
        tags,
        summary: 'Check a template without storing it, and see what its content means for phones and for billing',
        querystring: NoQuery,
        body: TemplateToCheck,
        response: { 200: TemplateCheck, ...errorResponses('RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE') },
      },
      // Violations are the result of this request, not an error.
      attachValidation: true,
      config: { scope: 'read' },
    },
    async (request) => {
      const { content: message, fields } = prepareCheck(request.body)
      const basic = fieldsOf(request.body).basic === true
      const missing = await missingTemplates(pool, callerOf(request).accountId, message, '/message')
      const ofSchema = (request.validationError as ApiError | undefined)?.details ?? []
      const violations = [...ofSchema, ...missing]
      const facts = contentFacts(message, basic, '/message') ?? null
      const result = { valid: violations.length === 0, violations, facts }
      if (fields.length === 0) return result
      return { ...result, rendered: shown(request.body, fields), variables: variableSpace(message, fields, { basic, path: '/message' }) }
    },
  )
}

const singleRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/templates/:id',
    {
      schema: {
        operationId: 'readTemplate',
        tags,
        summary: 'Read a template',
        params: TemplatePath,
        querystring: NoQuery,
        response: { 200: TheTemplate, ...errorResponses('RCS_TEMPLATE_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request) => await readTemplate(pool, callerOf(request).accountId, request.params.id),
  )

  app.put(
    '/templates/:id',
    {
      schema: {
        operationId: 'replaceTemplate',
        tags,
        summary: 'Replace a template; messages accepted earlier keep the old content',
        params: TemplatePath,
        querystring: NoQuery,
        body: TemplateReplacement,
        response: { 200: TheTemplate, ...errorResponses('RCS_TEMPLATE_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { scope: 'manage' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { body, params } = request
      return await withMissingTargetsNamed(pool, accountId, body, () => replaceTemplate(pool, accountId, params.id, body))
    },
  )

  app.delete(
    '/templates/:id',
    {
      schema: {
        operationId: 'deleteTemplate',
        tags,
        summary: 'Delete a template that no other template, unfinished campaign or automatic reply sends',
        params: TemplatePath,
        querystring: NoQuery,
        response: {
          204: Type.Null({ description: 'The template is deleted.' }),
          ...errorResponses('RCS_TEMPLATE_NOT_FOUND', 'RCS_TEMPLATE_IN_USE', 'RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_PAYLOAD_TOO_LARGE'),
        },
      },
      config: { scope: 'manage' },
    },
    async (request, reply) => {
      await deleteTemplate(pool, callerOf(request).accountId, request.params.id)
      return await reply.code(204).send(null)
    },
  )
}
