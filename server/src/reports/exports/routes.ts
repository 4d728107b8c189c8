import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { QUOTAS } from '../../accounts/quotas.ts'
import { createExportPool, type Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import { errorResponses } from '../../http/error-responses.ts'
import { callerOf } from '../../http/guard.ts'
import { daysInOrder, incomingDay } from '../../schemas.ts'
import { boundsOf, type Range } from '../range.ts'
import { CampaignPath, REPORTS_TAG } from '../schemas.ts'
import { readSummary } from '../summary.ts'
import { openArchive } from './archive.ts'
import { ACTION_COLUMNS, type Column, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from './columns.ts'
import { createExportSlots, EXPORTS_PER_NODE } from './concurrency.ts'
import { openCopy } from './copy.ts'
import { chooseReading, copyMessages } from './rows.ts'
import { type Exporting, sendExport, type Times } from './send-export.ts'

const CSV_TYPE = 'text/csv; charset=utf-8'
const ZIP_TYPE = 'application/zip'

const tags = [REPORTS_TAG.name]

const STREAMED = `The file is streamed, and the connection is closed if something fails: a response that ends properly is complete. A node runs as many exports of an account at once as the account's quota allows, ${QUOTAS.exports.byDefault} by default, and ${EXPORTS_PER_NODE} in total; further ones get 429 or 503.`
const FORMAT =
  'CSV as in RFC 4180, in UTF-8, with the column names in the first line; times are in UTC. A text gets an apostrophe before each `=`, `+`, `-` or `@` that could start a formula in a spreadsheet: at its beginning, after `;` `,` `|` or a tab, and after a line break, even if blanks or quotes come first.'

const listed = (columns: readonly Column[]) => columns.map(({ name }) => `\`${name}\``).join(', ')
const headers = { 'Content-Disposition': { type: 'string', description: '`attachment`, with a file name.' } }

const bom = Type.Optional(
  Type.Boolean({ default: false, description: 'Adds a UTF-8 byte-order mark to each CSV file. Excel needs it to read UTF-8.' }),
)

const AcceptedQuery = Type.Object(
  { from: incomingDay('Accepted on this day or later, in UTC.'), to: incomingDay('Accepted on this day or earlier, in UTC.'), bom },
  { additionalProperties: false, rules: daysInOrder('from', 'to') },
)

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

const EXPORT_ROUTE = { exposeHeadRoute: false, preValidation: refuseHttp10, config: { scope: 'export' } } as const

type Options = { pool: Pool; allowIdle: Exporting['allowIdle']; times?: Times }

export const exportRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, allowIdle, times = TIMES }) => {
  const exporting: Exporting = { pool, connections: createExportPool(pool), takeSlot: createExportSlots(), times, allowIdle }
  // By now every response has ended and released its connection. Do not wait for a connection that is still being opened.
  app.addHook('onClose', async () => {
    await Promise.race([exporting.connections.end(), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  })

  await app.register(messagesRoute, { exporting })
  await app.register(campaignRoute, { exporting })
}

const messagesRoute: FastifyPluginAsyncTypebox<{ exporting: Exporting }> = async (app, { exporting }) => {
  app.get(
    '/reports/messages/export',
    {
      schema: {
        operationId: 'exportMessages',
        tags,
        summary: 'Export the messages sent one by one, as CSV',
        description: `One line per message, in the order of acceptance: ${listed(MESSAGE_COLUMNS)}. ${FORMAT} ${STREAMED}`,
        querystring: AcceptedQuery,
        response: {
          200: { description: 'The file.', headers, content: { 'text/csv': { schema: Type.String() } } },
          ...errorResponses('RCS_QUOTA_EXCEEDED'),
        },
      },
      ...EXPORT_ROUTE,
    },
    async (request, reply) => {
      const { accountId } = callerOf(request)
      return await sendExport(reply, exporting, accountId, async (client) => {
        const { accepted } = await readSummary(client, accountId, undefined, request.query)
        const reading = await chooseReading(client, accepted, boundsOf(request.query))
        const source = openCopy(client, copyMessages(accountId, request.query, reading), request.query)
        return { ...source, contentType: CSV_TYPE, name: messagesFile(request.query) }
      })
    },
  )
}

const campaignRoute: FastifyPluginAsyncTypebox<{ exporting: Exporting }> = async (app, { exporting }) => {
  app.get(
    '/reports/campaigns/:id/all-data-export',
    {
      schema: {
        operationId: 'exportCampaign',
        tags,
        summary: 'Export all data of a campaign, as a ZIP archive',
        description: `Four files, all of the same moment. \`summary.csv\` and \`aggregations.csv\` (by day) have the content of the reports of these names. \`recipients.csv\`, one line per message: ${listed(RECIPIENT_COLUMNS)}. \`actions.csv\`, by time: ${listed(ACTION_COLUMNS)}. ${FORMAT} ${STREAMED}`,
        params: CampaignPath,
        querystring: Type.Object({ bom }, { additionalProperties: false }),
        response: {
          200: { description: 'The archive.', headers, content: { [ZIP_TYPE]: { schema: Type.String({ contentMediaType: ZIP_TYPE }) } } },
          ...errorResponses('RCS_QUOTA_EXCEEDED', 'RCS_CAMPAIGN_NOT_FOUND'),
        },
      },
      ...EXPORT_ROUTE,
    },
    async (request, reply) => {
      const { accountId } = callerOf(request)
      return await sendExport(reply, exporting, accountId, async (client) => {
        const { id, ...source } = await openArchive(client, accountId, request.params.id, request.query)
        return { ...source, contentType: ZIP_TYPE, name: `campaign-${id}.zip` }
      })
    },
  )
}

function messagesFile({ from, to }: Range): string {
  if (from !== undefined && to !== undefined) return `messages-${from}-to-${to}.csv`
  if (from !== undefined) return `messages-from-${from}.csv`
  return to === undefined ? 'messages.csv' : `messages-until-${to}.csv`
}
