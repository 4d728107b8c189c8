import { Type } from 'typebox'
import { CONTENT_TYPES, MessageContent } from '../content/content.ts'
import { ContentFacts } from '../content/facts.ts'
import { basicRules } from '../content/rules.ts'
import type { Violation } from '../errors.ts'
import { errorResponses, ViolationList } from '../http/error-answers.ts'
import { listAnswer, listQuery } from '../http/paging.ts'
import { daysInOrder, incomingDay, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { TEMPLATE_LIST, TEMPLATE_STATUSES } from './templates.ts'

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
const OPTIONS = { additionalProperties: false, rules: basicMode }

function basicMode({ basic, message }: Record<string, unknown>): Violation[] {
  return basic === true ? basicRules(message, '/message') : []
}

const Id = Type.Integer({ description: 'Unique, below 2^53, and in the order of creation to the millisecond. Ids have gaps of any size.' })

export const Template = Type.Object(
  { id: Id, name, description, basic, status, message, createdAt: OutgoingTime, updatedAt: OutgoingTime },
  {
    $id: 'Template',
    additionalProperties: false,
    examples: [
      { id: 786_471_321_601_234, ...EXAMPLE, basic: false, createdAt: '2026-01-31T08:00:00.000Z', updatedAt: '2026-01-31T08:00:00.000Z' },
    ],
  },
)

const NewTemplate = Type.Object(
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

const TemplateToCheck = Type.Object(
  { name: Type.Optional(name), description, basic: Type.Optional(basic), status: Type.Optional(status), message },
  { ...OPTIONS, examples: [{ message: EXAMPLE.message }] },
)

const TemplateCheck = Type.Object(
  {
    valid: Type.Boolean(),
    violations: ViolationList,
    facts: Type.Union([refTo(ContentFacts), Type.Null()], { description: 'Null if the content type is unknown.' }),
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

export const OPERATIONS = {
  list: {
    operationId: 'listTemplates',
    tags,
    summary: 'List the templates of the account',
    querystring: TemplateListQuery,
    response: { 200: { ...listAnswer(refTo(Template)), description: 'A page of templates.' }, ...errorResponses() },
  },
  create: {
    operationId: 'createTemplate',
    tags,
    summary: 'Create a template',
    querystring: NoQuery,
    body: NewTemplate,
    response: {
      201: { ...TheTemplate, headers: { Location: { type: 'string', description: 'The URL of the template.' } } },
      ...errorResponses('RCS_TEMPLATE_NOT_FOUND', ...BODY_ERRORS),
    },
  },
  check: {
    operationId: 'checkTemplate',
    tags,
    summary: 'Check a template without storing it, and see what its content means for phones and for billing',
    querystring: NoQuery,
    body: TemplateToCheck,
    response: { 200: TemplateCheck, ...errorResponses('RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE') },
  },
  read: {
    operationId: 'readTemplate',
    tags,
    summary: 'Read a template',
    params: TemplatePath,
    querystring: NoQuery,
    response: { 200: TheTemplate, ...errorResponses('RCS_TEMPLATE_NOT_FOUND') },
  },
  replace: {
    operationId: 'replaceTemplate',
    tags,
    summary: 'Replace a template; messages accepted earlier keep the old content',
    params: TemplatePath,
    querystring: NoQuery,
    body: TemplateReplacement,
    response: { 200: TheTemplate, ...errorResponses('RCS_TEMPLATE_NOT_FOUND', ...BODY_ERRORS) },
  },
  remove: {
    operationId: 'deleteTemplate',
    tags,
    summary: 'Delete a template that no other template’s button and no automatic reply uses',
    params: TemplatePath,
    querystring: NoQuery,
    response: {
      204: Type.Null({ description: 'The template is deleted.' }),
      ...errorResponses('RCS_TEMPLATE_NOT_FOUND', 'RCS_TEMPLATE_IN_USE', 'RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_PAYLOAD_TOO_LARGE'),
    },
  },
}
