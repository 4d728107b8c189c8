import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { createExportPool, type Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import { callerOf } from '../../http/guard.ts'
import { boundsOf, type Range } from '../range.ts'
import { readSummary } from '../summary.ts'
import { answerExport, type Exporting, type Times } from './answer.ts'
import { openArchive } from './archive.ts'
import { openCopy } from './copy.ts'
import { createPlaces } from './places.ts'
import { chooseReading, copyMessages } from './rows.ts'
import { CSV_TYPE, OPERATIONS, ZIP_TYPE } from './schemas.ts'

// Progress shows only when the system's buffer, which can be 4 MB, has room again: 30 s cut off a client that read 20 KB a second.
const TIMES: Times = { idleMs: 300_000, longestMs: 3_600_000 }
const POOL_CLOSE_PATIENCE_MS = 500

/** Requires HTTP/1.1, so that a truncated file is detectable: a response to HTTP/1.0 ends with its connection, also if the process was killed. */
async function refuseHttp10({ raw }: FastifyRequest): Promise<void> {
  if (raw.httpVersion !== '1.0') return
  const reason = 'must be asked for by HTTP/1.1, by which a file that was cut off shows; a proxy in between may need to be told so'
  throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

const WHOLE_OR_BROKEN = { exposeHeadRoute: false, preValidation: refuseHttp10 }

type Options = { pool: Pool; allowIdle: Exporting['allowIdle']; times?: Times }

export const exportRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, allowIdle, times = TIMES }) => {
  const exporting: Exporting = { pool, connections: createExportPool(pool), takePlace: createPlaces(), times, allowIdle }
  // By then every response has ended, and so has its connection. A connection that is being opened is not waited for.
  app.addHook('onClose', async () => {
    await Promise.race([exporting.connections.end(), sleep(POOL_CLOSE_PATIENCE_MS, undefined, { ref: false })])
  })

  app.get('/reports/messages/export', { schema: OPERATIONS.messages, ...WHOLE_OR_BROKEN }, async (request, reply) => {
    const { accountId } = callerOf(request)
    return await answerExport(reply, exporting, accountId, async (client) => {
      const { accepted } = await readSummary(client, accountId, undefined, request.query)
      const reading = await chooseReading(client, accepted, boundsOf(request.query))
      const source = openCopy(client, copyMessages(accountId, request.query, reading), request.query)
      return { ...source, contentType: CSV_TYPE, name: messagesFile(request.query) }
    })
  })

  app.get('/reports/campaigns/:id/all-data-export', { schema: OPERATIONS.campaign, ...WHOLE_OR_BROKEN }, async (request, reply) => {
    const { accountId } = callerOf(request)
    return await answerExport(reply, exporting, accountId, async (client) => {
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
