import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

// The page may load its own stylesheet, script and icon, and nothing else: it sends no request to any other host.
const HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
  Vary: 'Accept-Encoding',
}

const REPOSITORY = new URL('../../../', import.meta.url)

/**
 * Serves a page with links at `/`, and the API reference, which `npm run generate` writes, under `/docs`. Both are public and have no rate limit,
 * since a request costs little: each file is read once, at start, and compressed once, on its first request, which takes 10 ms for all files.
 */
export function serveDocs(app: FastifyInstance): void {
  serveFile(app, '/', 'text/html; charset=utf-8', 'server/static/index.html')
  serveFile(app, '/docs', 'text/html; charset=utf-8', 'server/static/docs/index.html')
  serveFile(app, '/docs/docs.css', 'text/css; charset=utf-8', 'server/static/docs/docs.css')
  serveFile(app, '/docs/docs.js', 'text/javascript; charset=utf-8', 'server/static/docs/docs.js')
  serveFile(app, '/docs/icon.svg', 'image/svg+xml', 'server/static/docs/icon.svg')
  serveFile(app, '/docs/openapi.json', 'application/json; charset=utf-8', 'openapi.json')
  // The page's links are relative, so that they work below a prefix that a proxy adds. They resolve from /docs, but not from /docs/.
  app.get('/docs/', { schema: { hide: true } }, async (_request, reply) => reply.headers(HEADERS).redirect('../docs', 308))
}

function serveFile(app: FastifyInstance, path: string, type: string, file: string): void {
  const plain = readFileSync(new URL(file, REPOSITORY))
  let gzipped: Buffer | undefined
  // Weak, because the plain and the compressed response share it.
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url')}"`
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    reply.headers({ ...HEADERS, ETag: etag })
    if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send()
    reply.type(type)
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
    gzipped ??= gzipSync(plain)
    return reply.header('Content-Encoding', 'gzip').send(gzipped)
  })
}
