import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { AUDIT_COLUMNS, copyAudit } from '../audit/export.ts'
import { AUDIT_LIST, listAudit } from '../audit/list.ts'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { openCopy } from '../reports/exports/copy.ts'
import { bom, CSV_FILE, CSV_TYPE, FORMAT, refuseHttp10 } from '../reports/exports/routes.ts'
import { type Exporting, sendExport } from '../reports/exports/send-export.ts'
import { incomingMoment, momentsInOrder, OutgoingTime } from '../schemas.ts'

export const AUDIT_TAG = { name: 'Audit', description: 'Who changed what, and when. The log can only be read.' }

const nullable = (schema: object) => Type.Unsafe<never>({ anyOf: [schema, { type: 'null' }] })

const AuditEntry = Type.Object(
  {
    entryId: Type.Integer(),
    at: OutgoingTime,
    actor: Type.Object(
      {
        kind: Type.Enum(['person', 'token', 'command']),
        id: nullable(Type.Integer()),
        name: Type.String({ description: 'An e-mail address, the name of a token, or the user of the operating system.' }),
      },
      { additionalProperties: false },
    ),
    address: nullable(Type.String()),
    requestId: nullable(Type.String()),
    accountId: nullable(Type.Integer()),
    action: Type.String({ description: 'The operation of this API, also for a command.' }),
    subject: nullable(Type.String({ description: 'What was changed: an id, or a phone number, masked.' })),
    before: Type.Unknown(),
    after: Type.Unknown({ description: 'Without secrets.' }),
  },
  { additionalProperties: false },
)

const FILTERS = {
  action: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  actor: Type.Optional(Type.String({ minLength: 1, maxLength: 254, description: 'Exactly this name.' })),
  subject: Type.Optional(
    Type.String({ minLength: 1, maxLength: 254, description: 'Exactly this subject; a phone number is masked first.' }),
  ),
  from: incomingMoment('At this time or later; or on this day (UTC) or later.'),
  to: incomingMoment('Before this time; or on this day (UTC) or earlier.'),
}
const rules = momentsInOrder('from', 'to')
const AuditQuery = listQuery(AUDIT_LIST, FILTERS, { rules })
const ExportQuery = Type.Object({ ...FILTERS, bom }, { additionalProperties: false, rules })
const response = listResponses(AuditEntry, 'A page of entries.')

const fileResponse = { 200: CSV_FILE, ...errorResponses('RCS_QUOTA_EXCEEDED') }
const columns = AUDIT_COLUMNS.map(({ name }) => `\`${name}\``).join(', ')
const description = `One line per change: ${columns}; \`before\` and \`after\` are JSON. ${FORMAT} The file is streamed, and the connection is closed if something fails: a response that ends properly is complete.`

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool; exporting: Exporting }>

/** `accountId`: undefined for all accounts, whose exports share the default quota. */
async function exportAudit(reply: FastifyReply, exporting: Exporting, query: Static<typeof ExportQuery>, accountId?: number) {
  const filters = accountId === undefined ? query : { ...query, accountIds: [accountId] }
  return await sendExport(reply, exporting, accountId ?? 0, async (client) => ({
    ...openCopy(client, copyAudit(filters), query),
    contentType: CSV_TYPE,
    name: accountId === undefined ? 'audit.csv' : `audit-of-account-${accountId}.csv`,
  }))
}

/** The whole log, for operators. */
export const auditRoutes: Routes = async (app, { pool, exporting }) => {
  app.get(
    '/audit',
    {
      schema: {
        operationId: 'listAudit',
        tags: [AUDIT_TAG.name],
        summary: 'List all changes, the newest first',
        querystring: AuditQuery,
        response,
      },
      config: { role: 'operator' },
    },
    async (request) => (await listAudit(pool, request.query)) as never,
  )

  app.get(
    '/audit/export',
    {
      schema: {
        operationId: 'exportAudit',
        tags: [AUDIT_TAG.name],
        summary: 'Export all changes as CSV, the newest first',
        description,
        querystring: ExportQuery,
        response: fileResponse,
      },
      exposeHeadRoute: false,
      preValidation: refuseHttp10,
      config: { role: 'operator' },
    },
    async (request, reply) => await exportAudit(reply, exporting, request.query),
  )
}

/** The entries of an account. */
export const accountAuditRoutes: Routes = async (app, { pool, exporting }) => {
  app.get(
    '/audit',
    {
      schema: {
        operationId: 'listAccountAudit',
        tags: [AUDIT_TAG.name],
        summary: 'List the changes of an account, the newest first',
        querystring: AuditQuery,
        response,
      },
      config: { role: 'admin' },
    },
    async (request) => (await listAudit(pool, { ...request.query, accountIds: [callerOf(request).accountId] })) as never,
  )

  app.get(
    '/audit/export',
    {
      schema: {
        operationId: 'exportAccountAudit',
        tags: [AUDIT_TAG.name],
        summary: 'Export the changes of an account as CSV, the newest first',
        description,
        querystring: ExportQuery,
        response: fileResponse,
      },
      exposeHeadRoute: false,
      preValidation: refuseHttp10,
      config: { role: 'admin' },
    },
    async (request, reply) => await exportAudit(reply, exporting, request.query, callerOf(request).accountId),
  )
}
