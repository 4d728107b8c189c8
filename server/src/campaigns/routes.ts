import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Pool } from '../db/pool.ts'
import { callerOf } from '../http/guard.ts'
import { requestHash } from '../messages/request-hash.ts'
import { checkSmsModule, idempotencyKey } from '../messages/routes.ts'
import { fallbackOf } from '../messages/sms-fallback.ts'
import { acceptCampaign } from './accept.ts'
import { readCampaign } from './campaigns.ts'
import { Campaign, OPERATIONS } from './schemas.ts'

export const campaignRoutes: FastifyPluginAsyncTypebox<{ pool: Pool; publicUrl: () => string | undefined }> = async (
  app,
  { pool, publicUrl },
) => {
  app.addSchema(Campaign)

  app.post(
    '/campaigns',
    { schema: OPERATIONS.create, preValidation: (request) => checkSmsModule(pool, 'campaigns', request) },
    async (request, reply) => {
      const { smsFallback, smsFallbackAfterExpiry, ...body } = request.body
      const { campaignId, replayed } = await acceptCampaign(pool, {
        ...body,
        accountId: callerOf(request).accountId,
        fallback: smsFallback && fallbackOf(smsFallback, smsFallbackAfterExpiry, publicUrl()),
        idempotency: { key: idempotencyKey(request), hash: requestHash(request.body) },
      })
      if (replayed) reply.header('Idempotent-Replayed', 'true')
      return await reply.code(202).header('Location', `/v1/campaigns/${campaignId}`).send({ campaignId })
    },
  )

  app.get('/campaigns/:id', { schema: OPERATIONS.read }, async (request) => {
    return await readCampaign(pool, callerOf(request).accountId, request.params.id)
  })
}
