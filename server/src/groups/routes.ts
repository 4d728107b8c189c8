import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { phoneRules } from '../content/fields.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError, notFound } from '../errors.ts'
import { errorResponses, unsupportedType } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { readPage } from '../http/paging.ts'
import { normalisePhoneNumber, phoneNumberInQuery } from '../phone-numbers.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { findGroup, type GroupKey, MAX_GROUP_NUMBER, nameGroup, removeGroup, removeMember } from './groups.ts'
import { listMembers, listSegments, MEMBER_LIST, SEGMENT_LIST, type Segment, toSegment } from './list.ts'
import { putMembers } from './put-members.ts'
import { Import, MembersChange, NewMembers, SegmentMember, SegmentName, Segment as SegmentSchema } from './schemas.ts'
import type { Receive } from './upload.ts'

export const SEGMENTS_TAG = { name: 'Segments', description: 'Groups of recipients, which campaigns are sent to.' }

const tags = [SEGMENTS_TAG.name]
const SegmentPath = Type.Object({ segmentId: Type.Integer() }, { additionalProperties: false })
const MemberPath = Type.Object({ segmentId: Type.Integer(), phone: Type.String() }, { additionalProperties: false })
const PhoneFilter = Type.Optional(Type.String({ description: 'A phone number.', rules: phoneRules(phoneNumberInQuery) }))
/** Two callers who want a new segment may choose the same number at the same time. */
const CreateOnly = Type.Object({
  'if-none-match': Type.Optional(Type.Enum(['*'], { description: 'Refuses to rename: the segment must not exist yet.' })),
})
const TheSegment = refTo(SegmentSchema, { description: 'The segment.' })
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const

/** Throws a 404 for an id that no segment can have. */
const groupOf = (request: FastifyRequest, segmentId: number): GroupKey => {
  if (segmentId < 1 || segmentId > MAX_GROUP_NUMBER) throw notFound('RCS_SEGMENT_NOT_FOUND', 'segmentId', 'segment')
  return { accountId: callerOf(request).accountId, number: segmentId }
}

/** As above, for a segment that the request may create: a 400 says which ids are valid. */
const newGroupOf = (request: FastifyRequest, segmentId: number): GroupKey => {
  const reason = `must be a whole number from 1 to ${MAX_GROUP_NUMBER}`
  if (segmentId < 1 || segmentId > MAX_GROUP_NUMBER) {
    throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '/segmentId', reason }] })
  }
  return groupOf(request, segmentId)
}

function found<T>(result: T | undefined): T {
  if (result === undefined) throw notFound('RCS_SEGMENT_NOT_FOUND', 'segmentId', 'segment')
  return result
}

/** `longPool`: for changes that take seconds. */
type Routes = FastifyPluginAsyncTypebox<{ pool: Pool; longPool: Pool; receive: Receive }>

export const segmentRoutes: Routes = async (app, options) => {
  app.addSchema(SegmentSchema)
  app.addSchema(SegmentMember)
  await app.register(listRoutes, options)
  await app.register(changeRoutes, options)
  await app.register(memberRoutes, options)
  await app.register(importRoutes, options)
}

const listRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/segments',
    {
      schema: {
        operationId: 'listSegments',
        tags,
        summary: 'List the segments of the account',
        querystring: listQuery(SEGMENT_LIST, {}),
        response: listResponses(refTo(SegmentSchema), 'A page of segments.'),
      },
      config: { scope: 'read' },
    },
    async (request) => await listSegments(pool, callerOf(request).accountId, request.query),
  )

  app.get(
    '/segments/:segmentId',
    {
      schema: {
        operationId: 'readSegment',
        tags,
        summary: 'Read a segment',
        params: SegmentPath,
        querystring: NoQuery,
        response: { 200: TheSegment, ...errorResponses('RCS_SEGMENT_NOT_FOUND') },
      },
      config: { scope: 'read' },
    },
    async (request): Promise<Segment> => toSegment(found(await findGroup(pool, groupOf(request, request.params.segmentId)))),
  )

  app.get(
    '/segments/:segmentId/members',
    {
      schema: {
        operationId: 'listSegmentMembers',
        tags,
        summary: 'List the members of a segment',
        params: SegmentPath,
        querystring: listQuery(MEMBER_LIST, { phone: PhoneFilter }),
        response: listResponses(
          refTo(SegmentMember),
          'A page of members. If members are large, it has fewer than `limit`.',
          'RCS_INVALID_RECIPIENT',
          'RCS_SEGMENT_NOT_FOUND',
        ),
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const { segmentId } = request.params
      // As of every list, the cursor is checked first.
      readPage(MEMBER_LIST, request.query, 1, segmentId)
      const group = groupOf(request, segmentId)
      found(await findGroup(pool, group))
      return await listMembers(pool, group, request.query)
    },
  )
}

const changeRoutes: Routes = async (app, { pool, longPool }) => {
  app.put(
    '/segments/:segmentId',
    {
      schema: {
        operationId: 'nameSegment',
        tags,
        summary: 'Create a segment, or rename it',
        params: SegmentPath,
        querystring: NoQuery,
        headers: CreateOnly,
        body: SegmentName,
        response: { 200: TheSegment, ...errorResponses('RCS_SEGMENT_EXISTS', ...BODY_ERRORS) },
      },
      config: { scope: 'manage' },
    },
    async (request): Promise<Segment> => {
      const { params, body, headers } = request
      const group = { ...newGroupOf(request, params.segmentId), name: body.name }
      return toSegment(await nameGroup(pool, group, { isNew: headers['if-none-match'] !== undefined }))
    },
  )

  app.delete(
    '/segments/:segmentId',
    {
      schema: {
        operationId: 'deleteSegment',
        tags,
        summary: 'Delete a segment and its members; campaigns that have started still send to all of them',
        params: SegmentPath,
        querystring: NoQuery,
        response: {
          204: Type.Null({ description: 'The segment is deleted.' }),
          ...errorResponses('RCS_SEGMENT_NOT_FOUND', ...BODY_ERRORS),
        },
      },
      // The members of a large group take many seconds, in a transaction on a connection for that.
      config: { scope: 'manage', audit: 'self' },
    },
    async (request, reply) => {
      found(await removeGroup(longPool, groupOf(request, request.params.segmentId), request.recordChange))
      return await reply.code(204).send(null)
    },
  )
}

const memberRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/segments/:segmentId/members',
    {
      schema: {
        operationId: 'putSegmentMembers',
        tags,
        summary: 'Add members to a segment, or update them',
        params: SegmentPath,
        querystring: NoQuery,
        body: NewMembers,
        response: {
          200: { ...MembersChange, description: 'All members of the request that were not rejected are in the segment now.' },
          ...errorResponses('RCS_SEGMENT_NOT_FOUND', 'RCS_QUOTA_EXCEEDED', ...BODY_ERRORS),
        },
      },
      // 1,000 members with 16 attributes, or a few consents less.
      config: { scope: 'manage', maxBodyValues: 20_000 },
    },
    async (request) => {
      const { isChanged, ...counts } = found(await putMembers(pool, groupOf(request, request.params.segmentId), request.body.members))
      if (!isChanged) request.change = 'none'
      return counts
    },
  )

  app.delete(
    '/segments/:segmentId/members/:phone',
    {
      schema: {
        operationId: 'deleteSegmentMember',
        tags,
        summary: 'Remove a member from a segment; campaigns that have started still send to the member',
        params: MemberPath,
        querystring: NoQuery,
        response: {
          204: Type.Null({ description: 'The number is not a member of the segment, or no longer is.' }),
          ...errorResponses('RCS_INVALID_RECIPIENT', 'RCS_SEGMENT_NOT_FOUND', ...BODY_ERRORS),
        },
      },
      config: { scope: 'manage' },
    },
    async (request, reply) => {
      const phone = normalisePhoneNumber(request.params.phone)
      const details = [{ path: '/phone', reason: 'must be a possible international phone number' }]
      if (phone === undefined) throw new ApiError('RCS_INVALID_RECIPIENT', { details })
      const removed = found(await removeMember(pool, groupOf(request, request.params.segmentId), phone))
      request.change = removed === null ? 'none' : { before: removed, after: null }
      return await reply.code(204).send(null)
    },
  )
}

const importRoutes: Routes = async (app, { receive }) => {
  app.removeAllContentTypeParsers()
  // Leaves the body unread: the handler reads it.
  app.addContentTypeParser('text/csv', async (request: FastifyRequest) => {
    requirePlainUtf8(request)
    return ''
  })
  app.addContentTypeParser('*', async () => {
    throw unsupportedType('text/csv')
  })

  app.put(
    '/segments/:segmentId/import',
    {
      schema: {
        operationId: 'importSegment',
        tags,
        summary: 'Import members from a CSV file of any length; the segment is created if it does not exist and a line can be imported',
        description:
          'The body is the file, as for `herald segment import`: UTF-8, with a header that has a column `phone`. The columns `consents`, `controlGroup`, `status` and `timeZone` are known, and all others are kept as attributes. Members of the file are added or replaced, and the others stay. A campaign sees the whole file or nothing of it, and an upload that breaks off changes nothing.',
        params: SegmentPath,
        querystring: NoQuery,
        body: { content: { 'text/csv': { schema: Type.String({ examples: ['phone,consents,city\n+48500100200,1;7,Gdynia\n'] }) } } },
        response: {
          200: { ...Import, description: 'What was imported.' },
          ...errorResponses('RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_REQUEST_TIMEOUT', 'RCS_QUOTA_EXCEEDED'),
        },
      },
      config: { scope: 'manage', streamsBody: true, audit: 'self' },
    },
    async (request) => {
      if (request.headers['content-type'] === undefined) throw unsupportedType('text/csv')
      const group = newGroupOf(request, request.params.segmentId)
      const { imported, rejected } = await receive(request.raw, group, request.recordChange)
      return { imported, rejected }
    },
  )
}

function requirePlainUtf8({ headers }: FastifyRequest): void {
  const charset = /charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]
  const isUtf8 = charset === undefined || /^utf-?8$/i.test(charset)
  if (isUtf8 && (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity') return
  throw new ApiError('RCS_UNSUPPORTED_MEDIA_TYPE', { details: [{ path: '', reason: 'the file must be UTF-8 and not compressed' }] })
}
