import { Type } from 'typebox'
import { QUOTAS } from '../../accounts/quotas.ts'
import { errorResponses } from '../../http/error-answers.ts'
import { daysInOrder, incomingDay } from '../../schemas.ts'
import { CampaignPath, REPORTS_TAG } from '../schemas.ts'
import { ACTION_COLUMNS, type Column, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from './columns.ts'
import { EXPORTS_PER_NODE } from './concurrency.ts'

export const CSV_TYPE = 'text/csv; charset=utf-8'
export const ZIP_TYPE = 'application/zip'

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

export const OPERATIONS = {
  messages: {
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
  campaign: {
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
}
