import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import {
  AUTO_REPLY_LIST,
  type AutoReply as AutoReplyRecord,
  addAutoReply,
  changeAutoReply,
  findOwnAutoReply,
  readAutoRepliesPage,
  removeAutoReply,
} from '../replies/auto-replies.ts'
import { NoQuery, OutgoingTime, refTo } from '../schemas.ts'

export const AUTO_REPLIES_TAG = { name: 'Automatic replies', description: 'Templates that are sent to recipients who write a keyword.' }

const tags = [AUTO_REPLIES_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

const AutoReply = Type.Object(
  {
    autoReplyId: Type.Integer(),
    agentId: Type.String(),
    keyword: Type.String({ description: 'In the form that is compared: without case and accents.' }),
    templateId: Type.Integer(),
    createdAt: OutgoingTime,
  },
  { $id: 'AutoReply', ...object },
)
const FIELDS = {
  keyword: Type.String({ minLength: 1, maxLength: 200, description: 'One or more words. Case and accents are ignored.' }),
  templateId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'An approved template of the account.' }),
}
const NewAutoReply = Type.Object(
  { agentId: Type.String({ minLength: 1, maxLength: 200, description: 'The agent that recipients write to.' }), ...FIELDS },
  object,
)
const ChangedAutoReply = Type.Object(
  { keyword: Type.Optional(FIELDS.keyword), templateId: Type.Optional(FIELDS.templateId) },
  { ...object, minProperties: 1 },
)
const AutoReplyPath = Type.Object({ autoReplyId: Type.Integer() }, object)

const shown = ({ accountId: _, ...reply }: AutoReplyRecord) => reply

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

export const autoReplyRoutes: Routes = async (app, options) => {
  app.addSchema(AutoReply)
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/auto-replies',
    {
      schema: {
        operationId: 'listAutoReplies',
        tags,
        summary: 'List the automatic replies of an account',
        querystring: listQuery(AUTO_REPLY_LIST, {}),
        response: listResponses(refTo(AutoReply), 'A page of automatic replies.'),
      },
      config: { role: 'viewer' },
    },
    async (request) => {
      const { items, nextCursor } = await readAutoRepliesPage(pool, callerOf(request).accountId, request.query)
      return { items: items.map(shown), nextCursor }
    },
  )

  app.get(
    '/auto-replies/:autoReplyId',
    {
      schema: {
        operationId: 'readAutoReply',
        tags,
        summary: 'Read an automatic reply',
        params: AutoReplyPath,
        querystring: NoQuery,
        response: { 200: refTo(AutoReply, { description: 'The automatic reply.' }), ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'viewer' },
    },
    async (request) => shown(await findOwnAutoReply(pool, callerOf(request).accountId, request.params.autoReplyId)),
  )
}

const changeRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/auto-replies',
    {
      schema: {
        operationId: 'createAutoReply',
        tags,
        summary: 'Reply to a keyword with a template',
        querystring: NoQuery,
        body: NewAutoReply,
        response: {
          201: refTo(AutoReply, { description: 'The automatic reply.' }),
          ...errorResponses('RCS_NOT_FOUND', 'RCS_REFUSED', ...BODY_ERRORS),
        },
      },
      config: { role: 'admin' },
    },
    async (request, reply) =>
      await reply.code(201).send(shown(await addAutoReply(pool, { accountId: callerOf(request).accountId, ...request.body }))),
  )

  app.patch(
    '/auto-replies/:autoReplyId',
    {
      schema: {
        operationId: 'changeAutoReply',
        tags,
        summary: 'Change the keyword or the template of an automatic reply',
        params: AutoReplyPath,
        querystring: NoQuery,
        body: ChangedAutoReply,
        response: {
          200: refTo(AutoReply, { description: 'The automatic reply.' }),
          ...errorResponses('RCS_NOT_FOUND', 'RCS_REFUSED', ...BODY_ERRORS),
        },
      },
      config: { role: 'admin' },
    },
    async (request) => {
      const reply = await findOwnAutoReply(pool, callerOf(request).accountId, request.params.autoReplyId)
      return shown(await changeAutoReply(pool, reply, request.body))
    },
  )

  app.delete(
    '/auto-replies/:autoReplyId',
    {
      schema: {
        operationId: 'deleteAutoReply',
        tags,
        summary: 'Remove an automatic reply',
        params: AutoReplyPath,
        querystring: NoQuery,
        response: { 204: Type.Null({ description: 'It is removed.' }), ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config: { role: 'admin' },
    },
    async (request, reply) => {
      const { autoReplyId } = await findOwnAutoReply(pool, callerOf(request).accountId, request.params.autoReplyId)
      await removeAutoReply(pool, autoReplyId)
      return await reply.code(204).send(null)
    },
  )
}
