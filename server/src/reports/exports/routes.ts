import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { QUOTAS } from '../../accounts/quotas.ts'
import { ApiError } from '../../errors.ts'
import { errorResponses } from '../../http/error-responses.ts'
import { callerOf } from '../../http/guard.ts'
import { MESSAGE_FILTERS, timesInOrder } from '../../messages/schemas.ts'
import { daysInOrder, incomingDay } from '../../schemas.ts'
import { boundsOf, type Range } from '../range.ts'
import { CampaignPath, REPORTS_TAG } from '../schemas.ts'
import { readSummary } from '../summary.ts'
import { openArchive } from './archive.ts'
import { ACTION_COLUMNS, type Column, FOUND_COLUMNS, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from './columns.ts'
import { EXPORTS_PER_NODE } from './concurrency.ts'
import { openCopy } from './copy.ts'
import { chooseReading, copyFound, copyMessages } from './rows.ts'
import { type Exporting, sendExport } from './send-export.ts'

export const CSV_TYPE = 'text/csv; charset=utf-8'
const ZIP_TYPE = 'application/zip'

const tags = [REPORTS_TAG.name]

const STREAMED = `The file is streamed, and the connection is closed if something fails: a response that ends properly is complete. A node runs as many exports of an account at once as the account's quota allows, ${QUOTAS.exports.byDefault} by default, and ${EXPORTS_PER_NODE} in total; further ones get 429 or 503.`
export const FORMAT =
  'CSV as in RFC 4180, in UTF-8, with the column names in the first line; times are in UTC. A text gets an apostrophe before each `=`, `+`, `-` or `@` that could start a formula in a spreadsheet: at its beginning, after `;` `,` `|` or a tab, and after a line break, even if blanks or quotes come first.'

const listed = (columns: readonly Column[]) => columns.map(({ name }) => `\`${name}\``).join(', ')
const headers = { 'Content-Disposition': { type: 'string', description: '`attachment`, with a file name.' } }
export const CSV_FILE = { description: 'The file.', headers, content: { 'text/csv': { schema: Type.String() } } }

export const bom = Type.Optional(
  Type.Boolean({ default: false, description: 'Adds a UTF-8 byte-order mark to each CSV file. Excel needs it to read UTF-8.' }),
)

const AcceptedQuery = Type.Object(
  { from: incomingDay('Accepted on this day or later, in UTC.'), to: incomingDay('Accepted on this day or earlier, in UTC.'), bom },
  { additionalProperties: false, rules: daysInOrder('from', 'to') },
)

const FoundQuery = Type.Object({ ...MESSAGE_FILTERS, bom }, { additionalProperties: false, rules: timesInOrder })

/** Requires HTTP/1.1, so that a truncated file is detectable: an HTTP/1.0 response ends with its connection, even if the process was killed. */
export async function refuseHttp10({ raw }: FastifyRequest): Promise<void> {
  if (raw.httpVersion !== '1.0') return
  const reason = 'requires HTTP/1.1, so that a truncated file is detectable; a proxy may need to be configured for it'
  throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}

const EXPORT_ROUTE = { exposeHeadRoute: false, preValidation: refuseHttp10, config: { scope: 'export' } } as const

export const exportRoutes: FastifyPluginAsyncTypebox<{ exporting: Exporting }> = async (app, { exporting }) => {
  await app.register(messagesRoute, { exporting })
  await app.register(foundRoute, { exporting })
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
          200: CSV_FILE,
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

const foundRoute: FastifyPluginAsyncTypebox<{ exporting: Exporting }> = async (app, { exporting }) => {
  app.get(
    '/messages/export',
    {
      schema: {
        operationId: 'exportFoundMessages',
        tags,
        summary: 'Export the messages of a list, as CSV',
        description: `All messages that \`GET /messages\` lists with these filters, in the order of acceptance: ${listed(FOUND_COLUMNS)}. ${FORMAT} ${STREAMED}`,
        querystring: FoundQuery,
        response: {
          200: CSV_FILE,
          ...errorResponses('RCS_QUOTA_EXCEEDED'),
        },
      },
      ...EXPORT_ROUTE,
    },
    async (request, reply) => {
      const { accountId } = callerOf(request)
      return await sendExport(reply, exporting, accountId, async (client) => {
        const source = openCopy(client, await copyFound(client, accountId, request.query), request.query)
        return { ...source, contentType: CSV_TYPE, name: 'messages.csv' }
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
