import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ContentFacts, contentFacts } from '../content/facts.ts'
import type { Pool } from '../db/pool.ts'
import type { ApiError } from '../errors.ts'
import { callerOf } from '../http/guard.ts'
import { OPERATIONS, Template } from './schemas.ts'
import {
  createTemplate,
  deleteTemplate,
  listTemplates,
  missingTemplates,
  readTemplate,
  replaceTemplate,
  withMissingTargetsNamed,
} from './templates.ts'

export const templateRoutes: FastifyPluginAsyncTypebox<{ pool: Pool }> = async (app, { pool }) => {
  app.addSchema(Template)
  app.addSchema(ContentFacts)
  // The content was validated when it was stored. Serializing it with all its schemas would be the most expensive step of the request.
  app.setSerializerCompiler(() => (response) => JSON.stringify(response))

  app.get('/templates', { schema: OPERATIONS.list }, async (request) => {
    return await listTemplates(pool, callerOf(request).accountId, request.query)
  })

  app.post('/templates', { schema: OPERATIONS.create }, async (request, reply) => {
    const { accountId } = callerOf(request)
    const input = { basic: false, status: 'DRAFT' as const, ...request.body }
    const template = await withMissingTargetsNamed(pool, accountId, input, () => createTemplate(pool, accountId, input))
    return await reply.code(201).header('Location', `/v1/templates/${template.id}`).send(template)
  })

  // Violations are the result of this request, not an error.
  app.post('/templates/check', { schema: OPERATIONS.check, attachValidation: true }, async (request) => {
    const { basic, message } = (request.body ?? {}) as { basic?: unknown; message?: unknown }
    const missing = await missingTemplates(pool, callerOf(request).accountId, message, '/message')
    const faults = (request.validationError as ApiError | undefined)?.details ?? []
    const violations = [...faults, ...missing]
    return { valid: violations.length === 0, violations, facts: contentFacts(message, basic === true, '/message') ?? null }
  })

  app.get('/templates/:id', { schema: OPERATIONS.read }, async (request) => {
    return await readTemplate(pool, callerOf(request).accountId, request.params.id)
  })

  app.put('/templates/:id', { schema: OPERATIONS.replace }, async (request) => {
    const { accountId } = callerOf(request)
    const { body, params } = request
    return await withMissingTargetsNamed(pool, accountId, body, () => replaceTemplate(pool, accountId, params.id, body))
  })

  app.delete('/templates/:id', { schema: OPERATIONS.remove }, async (request, reply) => {
    await deleteTemplate(pool, callerOf(request).accountId, request.params.id)
    return await reply.code(204).send(null)
  })
}
