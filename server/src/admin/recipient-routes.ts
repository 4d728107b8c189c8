import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import type { ErasedPeople } from '../erasure/erased.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { allowPerson } from '../privacy/allow.ts'
import { asJson } from '../privacy/as-json.ts'
import { erasePerson } from '../privacy/erase.ts'
import { findPerson, summarize, type Wanted } from '../privacy/find.ts'
import { NoBody, NoQuery, OutgoingTime } from '../schemas.ts'

export const RECIPIENTS_TAG = { name: 'Recipients', description: 'What is stored about a phone number: show, export or erase it.' }

const tags = [RECIPIENTS_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const PhonePath = Type.Object({ phone: Type.String() }, object)
const Rows = Type.Unsafe<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
  description: 'The number of rows, by what they are.',
})
const SummaryBody = Type.Object(
  {
    phone: Type.String(),
    rows: Rows,
    total: Type.Integer(),
    erased: Type.Array(
      Type.Object(
        {
          accountId: Type.Unsafe<number | null>({ anyOf: [{ type: 'integer' }, { type: 'null' }], description: 'Null: in all accounts.' }),
          erasedAt: OutgoingTime,
        },
        object,
      ),
      { description: 'Where the number was erased before.' },
    ),
  },
  { ...object, description: 'How much is stored.' },
)
const ErasedBody = Type.Object({ erased: Rows }, { ...object, description: 'What was erased.' })

/** `suffix`: of the names of operations, which must differ between one account and all accounts. */
type Options = { pool: Pool; people: ErasedPeople; role: 'admin' | 'operator'; suffix: '' | 'Everywhere' }
type Routes = FastifyPluginAsyncTypebox<Options>

/** The number of the path, in the account of the path or, without one, in all accounts. */
function wantedOf({ params }: FastifyRequest): Wanted {
  const { phone: given, accountId } = params as { phone: string; accountId?: number }
  const phone = normalisePhoneNumber(given)
  const details = [{ path: '/phone', reason: 'must be an international phone number, such as +48500100200' }]
  if (phone === undefined) throw new ApiError('RCS_INVALID_RECIPIENT', { details })
  return { phone, ...(accountId !== undefined && { accountId: Number(accountId) }) }
}

export const recipientRoutes: Routes = async (app, options) => {
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool, people, role, suffix }) => {
  app.get(
    '/recipients/:phone',
    {
      schema: {
        operationId: `readRecipient${suffix}`,
        tags,
        summary: 'Show how much is stored about a phone number',
        params: PhonePath,
        querystring: NoQuery,
        response: { 200: SummaryBody, ...errorResponses('RCS_INVALID_RECIPIENT') },
      },
      config: { role },
    },
    async (request) => await summarize(pool, wantedOf(request), people),
  )

  app.get(
    '/recipients/:phone/export',
    {
      schema: {
        operationId: `exportRecipient${suffix}`,
        tags,
        summary: 'Export everything that is stored about a phone number',
        params: PhonePath,
        querystring: NoQuery,
        response: {
          200: { description: 'Everything.', content: { 'application/json': { schema: Type.Unknown() } } },
          ...errorResponses('RCS_INVALID_RECIPIENT'),
        },
      },
      config: { role },
    },
    async (request, reply) => {
      const wanted = wantedOf(request)
      const name = `herald-${wanted.phone.slice(1)}.json`
      return await reply
        .header('Content-Disposition', `attachment; filename="${name}"`)
        .type('application/json; charset=utf-8')
        .send(Readable.from(asJson(wanted.phone, findPerson(pool, wanted))) as never)
    },
  )
}

const changeRoutes: Routes = async (app, { pool, people, role, suffix }) => {
  app.post(
    '/recipients/:phone/erase',
    {
      schema: {
        operationId: `eraseRecipient${suffix}`,
        tags,
        summary: 'Erase everything that is stored about a phone number, and never write to it again',
        description:
          'This cannot be undone. It takes some seconds, or up to two minutes if a message is being sent. If it fails, repeat it.',
        params: PhonePath,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: ErasedBody, ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_REFUSED', ...BODY_ERRORS) },
      },
      config: { role, needsPassword: true, audit: 'self' },
    },
    async (request) => ({ erased: await erasePerson(pool, people, wantedOf(request), { record: request.recordChange }) }),
  )

  app.post(
    '/recipients/:phone/allow',
    {
      schema: {
        operationId: `allowRecipient${suffix}`,
        tags,
        summary: 'Allow messages to an erased number again, because its owner asked for it',
        params: PhonePath,
        querystring: NoQuery,
        body: NoBody,
        response: {
          204: Type.Null({ description: 'The number can be written to.' }),
          ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_NOT_FOUND', 'RCS_REFUSED', ...BODY_ERRORS),
        },
      },
      // The state before would be read from GET /recipients/:phone, which reads all pages of the log.
      config: { role, needsPassword: true, audit: 'result' },
    },
    async (request, reply) => {
      request.change = { before: await allowPerson(pool, people, wantedOf(request)), after: null }
      return await reply.code(204).send(null)
    },
  )
}
