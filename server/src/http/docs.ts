import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { pageHeaders, staticFile } from './static-file.ts'

// The page may load its own stylesheet, script and icon, and nothing else: it sends no request to any other host.
const HEADERS = { ...pageHeaders(["img-src 'self'"]), 'Cache-Control': 'no-cache' }

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
  serveFile(app, '/docs/admin', 'text/html; charset=utf-8', 'server/static/docs/admin.html')
  serveFile(app, '/docs/openapi-admin.json', 'application/json; charset=utf-8', 'openapi-admin.json')
  // The page's links are relative, so that they work below a prefix that a proxy adds. They resolve from /docs, but not from /docs/.
  app.get('/docs/', { schema: { hide: true } }, async (_request, reply) => reply.headers(HEADERS).redirect('../docs', 308))
}

function serveFile(app: FastifyInstance, path: string, type: string, file: string): void {
  const send = staticFile(readFileSync(new URL(file, REPOSITORY)), type, HEADERS)
  app.get(path, { schema: { hide: true } }, async (request, reply) => send(request, reply))
}
