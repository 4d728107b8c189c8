import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { createLongPool, type Pool } from '../db/pool.ts'
import { ApiError, notFound } from '../errors.ts'
import { errorResponses, unsupportedType } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponse } from '../http/list-schemas.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { NoQuery, refTo } from '../schemas.ts'
import { findGroup, type GroupKey, MAX_GROUP_NUMBER, nameGroup, removeGroup, removeMember } from './groups.ts'
import { listMembers, listSegments, MEMBER_LIST, SEGMENT_LIST, type Segment, toSegment } from './list.ts'
import { putMembers } from './put-members.ts'
import { Import, MembersChange, NewMembers, SegmentMember, SegmentName, Segment as SegmentSchema } from './schemas.ts'
import { createReceiver, UPLOAD_LIMITS, type UploadLimits } from './upload.ts'

export const SEGMENTS_TAG = { name: 'Segments', description: 'Groups of recipients, which campaigns are sent to.' }

const tags = [SEGMENTS_TAG.name]
const SegmentPath = Type.Object({ segmentId: Type.Integer() }, { additionalProperties: false })
const MemberPath = Type.Object({ segmentId: Type.Integer(), phone: Type.String() }, { additionalProperties: false })
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

type Options = { pool: Pool; uploadLimits?: UploadLimits }
type Routes = FastifyPluginAsyncTypebox<Options & { longPool: Pool }>

export const segmentRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { pool, ...others }) => {
  const longPool = createLongPool(pool)
  app.addHook('onClose', async () => await longPool.end())
  const options = { pool, longPool, ...others }
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
        response: { 200: { ...listResponse(refTo(SegmentSchema)), description: 'A page of segments.' }, ...errorResponses() },
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
        querystring: listQuery(MEMBER_LIST, {}),
        response: {
          200: {
            ...listResponse(refTo(SegmentMember)),
            description: 'A page of members. If members are large, it has fewer than `limit`.',
          },
          ...errorResponses('RCS_SEGMENT_NOT_FOUND'),
        },
      },
      config: { scope: 'read' },
    },
    async (request) => {
      const group = groupOf(request, request.params.segmentId)
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
        body: SegmentName,
        response: { 200: TheSegment, ...errorResponses(...BODY_ERRORS) },
      },
      config: { scope: 'manage' },
    },
    async (request): Promise<Segment> => {
      const { params, body } = request
      return toSegment(await nameGroup(pool, { ...newGroupOf(request, params.segmentId), name: body.name }))
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
      config: { scope: 'manage' },
    },
    async (request, reply) => {
      found(await removeGroup(longPool, groupOf(request, request.params.segmentId)))
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
          ...errorResponses('RCS_SEGMENT_NOT_FOUND', ...BODY_ERRORS),
        },
      },
      // 1,000 members with 16 attributes, or a few consents less.
      config: { scope: 'manage', maxBodyValues: 20_000 },
    },
    async (request) => found(await putMembers(pool, groupOf(request, request.params.segmentId), request.body.members)),
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
      found(await removeMember(pool, groupOf(request, request.params.segmentId), phone))
      return await reply.code(204).send(null)
    },
  )
}

const importRoutes: Routes = async (app, { longPool, uploadLimits = UPLOAD_LIMITS }) => {
  const receive = createReceiver(longPool, uploadLimits)
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
          ...errorResponses('RCS_UNSUPPORTED_MEDIA_TYPE', 'RCS_REQUEST_TIMEOUT'),
        },
      },
      config: { scope: 'manage', streamsBody: true },
    },
    async (request) => {
      if (request.headers['content-type'] === undefined) throw unsupportedType('text/csv')
      const group = newGroupOf(request, request.params.segmentId)
      const { imported, rejected } = await receive(request.raw, group)
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
