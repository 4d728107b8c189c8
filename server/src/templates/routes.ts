import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { CONTENT_TYPES } from '../content/content.ts'
import { ContentFacts } from '../content/facts.ts'
import { FieldVariables } from '../content/variable-space.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { locationOf } from '../http/location.ts'
import { daysInOrder, incomingDay, NoQuery, refTo } from '../schemas.ts'
import { GroupCheck } from './check-group.ts'
import { checkRoutes } from './check-routes.ts'
import { NewTemplate, Template, TemplateReplacement, tags } from './schemas.ts'
import {
  createTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  replaceTemplate,
  TEMPLATE_LIST,
  TEMPLATE_STATUSES,
  withMissingTargetsNamed,
} from './templates.ts'

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

const BODY_ERRORS = ['RCS_INVALID_MESSAGE', 'RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_QUOTA_EXCEEDED'] as const
const TheTemplate = refTo(Template, { description: 'The template.' })

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const templateRoutes: Routes = async (app, options) => {
  app.addSchema(Template)
  app.addSchema(ContentFacts)
  app.addSchema(FieldVariables)
  app.addSchema(GroupCheck)
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
