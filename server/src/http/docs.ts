import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { ApiDocument } from './docs/document.ts'
import { renderPage } from './docs/page.ts'

// The page needs its own stylesheet, script and picture, and may do nothing else: no request leaves the service it came from.
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
  Vary: 'Accept-Encoding',
}

/**
 * `/docs`: the reference of the API as one page, made from the OpenAPI document, for everybody and without a limit: it is made and
 * compressed once, when it is first asked for, since the document is known only after all routes are.
 */
export function serveDocs(app: FastifyInstance): void {
  serve(app, '/docs', 'text/html; charset=utf-8', () => renderPage(app.swagger() as ApiDocument))
  serve(app, '/docs/openapi.json', 'application/json; charset=utf-8', () => JSON.stringify(app.swagger()))
  serve(app, '/docs/docs.css', 'text/css; charset=utf-8', () => asset('docs.css'))
  serve(app, '/docs/docs.js', 'text/javascript; charset=utf-8', () => asset('docs.js'))
  serve(app, '/docs/icon.svg', 'image/svg+xml', () => asset('icon.svg'))
  // The page's links are relative, so that they also hold below a prefix that a proxy adds: it has to stand at /docs, not /docs/.
  app.get('/docs/', { schema: { hide: true } }, async (_request, reply) => reply.headers(HEADERS).redirect('../docs', 308))
}

function serve(app: FastifyInstance, path: string, type: string, make: () => string): void {
  let made: { plain: Buffer; gzipped: Buffer } | undefined
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    if (made === undefined) {
      const plain = Buffer.from(make())
      made = { plain, gzipped: gzipSync(plain) }
    }
    reply.headers(HEADERS).type(type)
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(made.plain)
    return reply.header('Content-Encoding', 'gzip').send(made.gzipped)
  })
}

function asset(name: string): string {
  return readFileSync(new URL(`docs/${name}`, import.meta.url), 'utf8')
}
