import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { createExportPool, type Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import { callerOf } from '../../http/guard.ts'
import { boundsOf, type Range } from '../range.ts'
import { readSummary } from '../summary.ts'
import { type Exporting, sendExport, type Times } from './answer.ts'
import { openArchive } from './archive.ts'
import { createExportSlots } from './concurrency.ts'
import { openCopy } from './copy.ts'
import { chooseReading, copyMessages } from './rows.ts'
import { CSV_TYPE, OPERATIONS, ZIP_TYPE } from './schemas.ts'

// Progress is visible only when the system's send buffer, up to 4 MB, has room again: with 30 s, a client that read 20 KB a second was
// disconnected.
const TIMES: Times = { idleMs: 300_000, longestMs: 3_600_000 }
const POOL_CLOSE_TIMEOUT_MS = 500

/** Requires HTTP/1.1, so that a truncated file is detectable: an HTTP/1.0 response ends with its connection, even if the process was killed. */
async function refuseHttp10({ raw }: FastifyRequest): Promise<void> {
  if (raw.httpVersion !== '1.0') return
  const reason = 'requires HTTP/1.1, so that a truncated file is detectable; a proxy may need to be configured for it'
  throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

const EXPORT_ROUTE = { exposeHeadRoute: false, preValidation: refuseHttp10 }

type Options = { pool: Pool; allowIdle: Exporting['allowIdle']; times?: Times }

export const exportRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, allowIdle, times = TIMES }) => {
  const exporting: Exporting = { pool, connections: createExportPool(pool), takeSlot: createExportSlots(), times, allowIdle }
  // By now every response has ended and released its connection. Do not wait for a connection that is still being opened.
  app.addHook('onClose', async () => {
    await Promise.race([exporting.connections.end(), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  })

  app.get('/reports/messages/export', { schema: OPERATIONS.messages, ...EXPORT_ROUTE }, async (request, reply) => {
    const { accountId } = callerOf(request)
    return await sendExport(reply, exporting, accountId, async (client) => {
      const { accepted } = await readSummary(client, accountId, undefined, request.query)
      const reading = await chooseReading(client, accepted, boundsOf(request.query))
      const source = openCopy(client, copyMessages(accountId, request.query, reading), request.query)
      return { ...source, contentType: CSV_TYPE, name: messagesFile(request.query) }
    })
  })

  app.get('/reports/campaigns/:id/all-data-export', { schema: OPERATIONS.campaign, ...EXPORT_ROUTE }, async (request, reply) => {
    const { accountId } = callerOf(request)
    return await sendExport(reply, exporting, accountId, async (client) => {
      const { id, ...source } = await openArchive(client, accountId, request.params.id, request.query)
      return { ...source, contentType: ZIP_TYPE, name: `campaign-${id}.zip` }
    })
  })
}

function messagesFile({ from, to }: Range): string {
  if (from !== undefined && to !== undefined) return `messages-${from}-to-${to}.csv`
  if (from !== undefined) return `messages-from-${from}.csv`
  return to === undefined ? 'messages.csv' : `messages-until-${to}.csv`
}
