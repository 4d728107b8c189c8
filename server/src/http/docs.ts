import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { ApiDocument } from './docs/document.ts'
import { renderPage } from './docs/page.ts'

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
  Vary: 'Accept-Encoding',
}

/**
 * Serves the API reference under `/docs`: one page, rendered from the OpenAPI document. It is public and has no rate limit, since it is
 * rendered and compressed only once. That happens on the first request, because the document is complete only after all routes are added.
 */
export function serveDocs(app: FastifyInstance): void {
  serve(app, '/docs', 'text/html; charset=utf-8', () => renderPage(app.swagger() as ApiDocument))
  serve(app, '/docs/openapi.json', 'application/json; charset=utf-8', () => JSON.stringify(app.swagger()))
  serve(app, '/docs/docs.css', 'text/css; charset=utf-8', () => asset('docs.css'))
  serve(app, '/docs/docs.js', 'text/javascript; charset=utf-8', () => asset('docs.js'))
  serve(app, '/docs/icon.svg', 'image/svg+xml', () => asset('icon.svg'))
  // The page's links are relative, so that they work below a prefix that a proxy adds. They resolve from /docs, but not from /docs/.
  app.get('/docs/', { schema: { hide: true } }, async (_request, reply) => reply.headers(HEADERS).redirect('../docs', 308))
}

function serve(app: FastifyInstance, path: string, type: string, render: () => string): void {
  let rendered: { plain: Buffer; gzipped: Buffer } | undefined
  app.get(path, { schema: { hide: true } }, async (request, reply) => {
    if (rendered === undefined) {
      const plain = Buffer.from(render())
      rendered = { plain, gzipped: gzipSync(plain) }
    }
    reply.headers(HEADERS).type(type)
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(rendered.plain)
    return reply.header('Content-Encoding', 'gzip').send(rendered.gzipped)
  })
}

function asset(name: string): string {
  return readFileSync(new URL(`docs/${name}`, import.meta.url), 'utf8')
}
