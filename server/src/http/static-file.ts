import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Sends a file, compressed if the client allows it, or 304 if the client has it already. */
export type SendFile = (request: FastifyRequest, reply: FastifyReply) => FastifyReply

/** Every file is compressed once, on its first request. */
export function staticFile(contents: Uint8Array, type: string, headers: Record<string, string>): SendFile {
  const plain = Buffer.from(contents)
  // Weak, because the plain and the compressed response share it.
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url')}"`
  let gzipped: Buffer | undefined
  return (request, reply) => {
    reply.headers({ ...headers, ETag: etag })
    if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send()
    reply.type(type)
    // Fonts are compressed already.
    if (type === 'font/woff2' || !/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
    gzipped ??= gzipSync(plain)
    return reply.header('Content-Encoding', 'gzip').send(gzipped)
  }
}

/** A page that may load only files of this service, and write no HTML from a text. */
export const pageHeaders = (policy: string[]): Record<string, string> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    ...policy,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Accept-Encoding',
})
