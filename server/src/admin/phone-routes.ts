import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { hasChanged } from '../audit/record.ts'
import { accountTransaction, type Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { errorResponses, unavailable } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { createSlots } from '../media/slots.ts'
import { listLastMessages, MAX_RECEIVED, type OwnSms, readLastSms, readOwnSms } from '../phones/own-sms.ts'
import { createPhoneIds, type PhoneIds } from '../phones/phone-ids.ts'
import { FOLLOWING_CONNECTIONS, MAX_WAIT_SECONDS } from '../phones/simulator.ts'
import type { Simulators } from '../phones/simulators.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'
import { ownerOf } from './guard.ts'
import { HistoryBody, PHONE_ACTIONS, PHONE_ERRORS, PHONES_TAG, PhoneBody, SmsBody } from './phone-schemas.ts'

const tags = [PHONES_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
const Done = Type.Null({ description: 'The phone did it.' })
const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 }))
const PhonePath = Type.Object({ phone: Type.String({ description: 'A `phoneId`, or a phone number.' }) }, object)
const HistoryQuery = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: '`next` of the last response. Without it: the last entries.',
      }),
    ),
    limit: Limit,
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_WAIT_SECONDS,
        default: 0,
        description: 'How many seconds to wait for an entry, if there is none after `after`.',
      }),
    ),
  },
  object,
)
// What the owner of a phone does is no administration.
const NOT_AUDITED = { audit: 'never' } as const

type Options = { pool: Pool; simulators: Simulators; idKey: Buffer }
type Routes = FastifyPluginAsyncTypebox<Options & { ids: PhoneIds }>

/** The phones of the simulated network, restricted to the agents of an account. */
export const phoneRoutes: FastifyPluginAsyncTypebox<Options> = async (app, options) => {
  const withIds = { ...options, ids: createPhoneIds(options.idKey) }
  app.addSchema(PhoneBody)
  await app.register(readRoutes, withIds)
  await app.register(followRoutes, withIds)
  await app.register(smsRoutes, withIds)
  await app.register(actionRoutes, withIds)
}

function phoneOf(ids: PhoneIds, text: string): string {
  const phone = ids.decode(text)
  if (phone !== undefined) return phone
  throw new ApiError('RCS_NOT_FOUND', { details: [{ path: '/phone', reason: 'is neither a phoneId nor a phone number' }] })
}

type Numbered = { seq: number }
const withPosition = <T extends Numbered>({ seq: position, ...entry }: T) => ({ position, ...entry })

type Summary = Omit<Static<typeof PhoneBody>, 'last'> & { last: (Numbered & { at: string }) | null }

/** Summaries of phones, with the SMS of the account, which the simulator can't tell from those of others. */
function toPhones(ids: PhoneIds, summaries: Summary[], lastSms: Map<string, OwnSms>): Static<typeof PhoneBody>[] {
  const lastAt = ({ phone, last }: Summary) => lastSms.get(phone)?.at ?? last?.at ?? ''
  return summaries
    .toSorted((one, other) => (lastAt(one) < lastAt(other) ? 1 : lastAt(one) > lastAt(other) ? -1 : 0))
    .map(({ last, ...phone }) => {
      const sms = lastSms.get(phone.phone)
      return { ...phone, phoneId: ids.encode(phone.phone), last: last && withPosition(last), ...(sms && { lastSms: sms }) }
    })
}

const readRoutes: Routes = async (app, { pool, simulators, ids }) => {
  app.get(
    '/phones',
    {
      schema: {
        operationId: 'listPhones',
        tags,
        summary: 'List the phones in contact with the agents of the account, the most recent first',
        description: 'The simulator keeps the last 200 phones of each agent.',
        querystring: Type.Object({ limit: Limit }, object),
        response: {
          200: Type.Object({ items: Type.Array(refTo(PhoneBody)) }, { ...object, description: 'The phones.' }),
          ...errorResponses('RCS_NOT_SIMULATED'),
        },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { simulator, agentIds } = await simulators.ofAccount(pool, accountId)
      const { phones } = (await simulator.listPhones(agentIds, request.query.limit ?? 50)) as { phones: Summary[] }
      return { items: toPhones(ids, phones, await readLastSms(pool, simulator, accountId, phones)) }
    },
  )

  app.get(
    '/phones/:phone',
    {
      schema: {
        operationId: 'readPhone',
        tags,
        summary: 'Read how a phone behaves, whether it is online, and its last text',
        params: PhonePath,
        querystring: NoQuery,
        response: { 200: refTo(PhoneBody, { description: 'The phone.' }), ...errorResponses(...PHONE_ERRORS) },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const phone = phoneOf(ids, request.params.phone)
      const { accountId } = callerOf(request)
      const { simulator, agentIds } = await simulators.ofAccount(pool, accountId)
      const summary = (await simulator.readPhone(phone, agentIds)) as Summary
      const [found] = toPhones(ids, [summary], await readLastSms(pool, simulator, accountId, [summary]))
      return { ...(found as Static<typeof PhoneBody>), messageIds: await listLastMessages(pool, accountId, phone) }
    },
  )
}

// A person has some phones open at once; nobody can occupy all connections to the simulator.
const SLOTS = { total: FOLLOWING_CONNECTIONS, perOwner: 8, waiting: 0, waitingPerOwner: 0 }

const followRoutes: Routes = async (app, { pool, simulators, ids }) => {
  const takeSlot = createSlots(SLOTS)
  app.get(
    '/phones/:phone/ledger',
    {
      schema: {
        operationId: 'followPhone',
        tags,
        summary: 'Read what a phone received and sent, in order, or wait for it',
        description:
          'SMS are not listed, since they belong to no agent: `/phones/{phone}/sms` lists them. A person or token can have eight waiting requests at a process; the next one gets 503.',
        params: PhonePath,
        querystring: HistoryQuery,
        response: { 200: { ...HistoryBody, description: 'The entries.' }, ...errorResponses(...PHONE_ERRORS) },
      },
      config: { role: 'viewer' },
    },
    async (request, reply) => {
      const { after, limit = 50, wait = 0 } = request.query
      const waitSeconds = after === undefined ? 0 : wait
      const phone = phoneOf(ids, request.params.phone)
      const { simulator, agentIds } = await simulators.ofAccount(pool, callerOf(request).accountId)
      const release = waitSeconds === 0 ? () => {} : await takeSlot(ownerOf(request))
      if (release === undefined) throw unavailable('Too many requests wait for phones.')
      // A client that disconnects needs no connection to the simulator.
      const closed = new AbortController()
      if (reply.raw.closed) closed.abort()
      else reply.raw.once('close', () => closed.abort())
      const history = await simulator.readHistory({ phone, agentIds, after, limit, waitSeconds, signal: closed.signal }).finally(release)
      const { entries, next } = history as { entries: Numbered[]; next: number }
      return { entries: entries.map(withPosition), next } as never
    },
  )
}

const smsRoutes: Routes = async (app, { pool, simulators, ids }) => {
  app.get(
    '/phones/:phone/sms',
    {
      schema: {
        operationId: 'listPhoneSms',
        tags,
        summary: 'List the last SMS of the account on a phone, in order',
        description: `Of the last ${MAX_RECEIVED} SMS on the phone. Copies to test numbers are not listed.`,
        params: PhonePath,
        querystring: NoQuery,
        response: { 200: { ...SmsBody, description: 'The SMS.' }, ...errorResponses(...PHONE_ERRORS) },
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const phone = phoneOf(ids, request.params.phone)
      const { accountId } = callerOf(request)
      const { simulator } = await simulators.ofAccount(pool, accountId)
      return { items: await readOwnSms(pool, simulator, accountId, phone) }
    },
  )
}

const actionRoutes: Routes = async (app, { pool, simulators, ids }) => {
  for (const [action, operationId, summary, fields] of PHONE_ACTIONS) {
    app.post(
      `/phones/:phone/${action}`,
      {
        schema: {
          operationId,
          tags,
          summary,
          params: PhonePath,
          querystring: NoQuery,
          body: Type.Object({ agentId: Type.String({ minLength: 1, maxLength: 200 }), ...fields }, object),
          response: { 204: Done, ...errorResponses('RCS_AGENT_NOT_FOUND', 'RCS_REFUSED', ...PHONE_ERRORS, ...BODY_ERRORS) },
        },
        config: { role: 'admin', ...NOT_AUDITED },
      },
      async (request, reply) => {
        const phone = phoneOf(ids, request.params.phone)
        const { simulator, agentIds } = await simulators.ofAccount(pool, callerOf(request).accountId)
        if (!agentIds.includes(request.body.agentId)) throw notOfSimulator()
        await simulator.act({ phone, action, body: request.body })
        return await reply.code(204).send(null)
      },
    )
  }

  for (const [action, operationId, summary] of SWITCHES) {
    app.post(
      `/phones/:phone/${action}`,
      {
        schema: {
          operationId,
          tags,
          summary,
          description: 'For all accounts. Repeating the request changes nothing.',
          params: PhonePath,
          querystring: NoQuery,
          body: NoBody,
          response: { 204: Done, ...errorResponses(...PHONE_ERRORS, ...BODY_ERRORS) },
        },
        config: { role: 'admin', audit: 'self' },
      },
      async (request, reply) => {
        const phone = phoneOf(ids, request.params.phone)
        const { accountId } = callerOf(request)
        const { simulator, agentIds } = await simulators.ofAccount(pool, accountId)
        const { online } = (await simulator.readPhone(phone, agentIds)) as Summary
        const [before, after] = [{ online }, { online: action === 'online' }]
        // The entry comes first: without a database there is no change, and without the simulator no entry.
        await accountTransaction(pool, accountId, async (tx) => {
          if (hasChanged({ before, after })) await request.recordChange?.(tx, after, before, phone)
          await simulator.act({ phone, action, body: {} })
        })
        return await reply.code(204).send(null)
      },
    )
  }
}

const SWITCHES = [
  ['offline', 'takePhoneOffline', 'Take a phone offline: it gets nothing, and does nothing, until it is online again'],
  ['online', 'bringPhoneOnline', 'Bring a phone online: it gets the messages that have not expired'],
] as const

function notOfSimulator(): ApiError {
  const reason = 'names no agent of this account whose carrier is the simulator'
  return new ApiError('RCS_AGENT_NOT_FOUND', { details: [{ path: '/agentId', reason }] })
}
