import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { errorResponses, unavailable } from '../http/error-responses.ts'
import { fetchImage, type Image, MAX_IMAGE_BYTES } from '../media/fetch-image.ts'
import { IMAGE_TYPES } from '../media/image-type.ts'
import { createSlots } from '../media/slots.ts'
import type { WebhookHosts } from '../public-host.ts'
import { adminOf, ownerOf } from './guard.ts'

export const MEDIA_TAG = { name: 'Media', description: 'Images for previews.' }

// At most 8 images of 5 MiB are in memory. A browser asks for six at once; a person gets three of them at a time. Of the 100
// requests that can wait, at most 30 are of one person or token.
const SLOTS = { total: 8, perOwner: 3, waiting: 100, waitingPerOwner: 30 }
const CHUNK_BYTES = 64 * 1024
const MEDIA_ERRORS = [
  'RCS_MEDIA_URL_REFUSED',
  'RCS_MEDIA_UNREACHABLE',
  'RCS_MEDIA_STATUS',
  'RCS_MEDIA_NOT_IMAGE',
  'RCS_MEDIA_TOO_LARGE',
] as const

const MediaQuery = Type.Object(
  { url: Type.String({ minLength: 1, maxLength: 4096, description: 'The address of the image, percent-encoded.' }) },
  { additionalProperties: false },
)
const binary = { schema: Type.Unsafe({ type: 'string', format: 'binary' }) }
const ImageFile = { description: 'The image.', content: Object.fromEntries(IMAGE_TYPES.map((type) => [type, binary])) }

/** `hosts`: where images come from. */
type Options = { hosts: WebhookHosts }

export const mediaRoutes: FastifyPluginAsyncTypebox<Options> = async (app, { hosts }) => {
  const takeSlot = createSlots(SLOTS)
  const stopping = new AbortController()
  app.addHook('preClose', async () => stopping.abort())

  app.get(
    '/media',
    {
      schema: {
        operationId: 'readMedia',
        tags: [MEDIA_TAG.name],
        summary: 'Fetch an image for a preview, or check it',
        description: `Fetches a PNG, JPEG, GIF or WebP of at most ${MAX_IMAGE_BYTES / 1024 / 1024} MiB within 10 seconds, with at most three redirects. Needs a role in any account. It reaches hosts of the public internet only, unless \`HERALD_WEBHOOK_ALLOW_PRIVATE\` is true. An error says why a phone could not show the image.`,
        querystring: MediaQuery,
        response: { 200: ImageFile, ...errorResponses('RCS_ROLE', ...MEDIA_ERRORS) },
      },
      exposeHeadRoute: false,
      config: { anyRole: true, isBackground: true },
      onRequest: requireSomeRole,
    },
    async (request, reply) => {
      const release = await takeSlot(ownerOf(request))
      if (release === undefined) throw unavailable('Too many images are being fetched.')
      const closed = new AbortController()
      // The slot is released when the response ends, since the image is in memory until then. A client that disconnects ends its fetch.
      const onClose = () => {
        closed.abort()
        release()
      }
      if (reply.raw.closed) onClose()
      else reply.raw.once('close', onClose)
      return await sendImage(reply, await fetchImage(request.query.url, { hosts, signals: [stopping.signal, closed.signal] }))
    },
  )
}

/** A person without any role has no use for previews, and must not make Herald send requests. */
async function requireSomeRole(request: FastifyRequest): Promise<void> {
  const { isOperator, roles } = adminOf(request)
  if (isOperator || roles.length > 0) return
  throw new ApiError('RCS_ROLE', { details: [{ path: '', reason: 'The request needs the role viewer in any account.' }] })
}

/** The file comes from anywhere, so the headers keep a browser from taking it for anything but an image. */
async function sendImage(reply: FastifyReply, { type, bytes }: Image): Promise<FastifyReply> {
  return await reply
    .headers({
      'Content-Type': type,
      'Content-Length': bytes.length,
      'Content-Security-Policy': "default-src 'none'; sandbox",
      'X-Content-Type-Options': 'nosniff',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Cache-Control': 'private, max-age=300',
    })
    // In chunks: the connection of a client that reads slowly then holds few unsent bytes, and stays open.
    .send(Readable.from(chunksOf(bytes)))
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) yield bytes.subarray(start, start + CHUNK_BYTES)
}
