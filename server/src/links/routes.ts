import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isbot } from 'isbot'
import { encodedUrl } from '../content/urls.ts'
import type { Pool } from '../db/pool.ts'
import { isShortCode, SHORT_PATH } from './codes.ts'
import { visitLink } from './links.ts'

// Every visit is asked for anew, none is passed on to where it leads, and none belongs into a search engine: the code is the recipient's.
const HEADERS = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Robots-Tag': 'noindex' }

// For people, who have come here from an SMS. The same for a code that is not there and for what can't be one.
const NOT_FOUND_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Link not found</title>
</head>
<body>
<h1>This link leads nowhere</h1>
<p>It may have been cut short, or it is too old. Please open it from the message once more, or ask whoever sent it to you.</p>
</body>
</html>
`

/**
 * `GET /l/{code}`: leads from the short link in an SMS to where the sender wanted. Not part of the API: it takes no credentials, and nothing
 * of the request but its code decides where it leads.
 */
export async function linkRoutes(app: FastifyInstance, { pool }: { pool: Pool }): Promise<void> {
  // Fastify answers HEAD by the same handler.
  app.get(`${SHORT_PATH}:code`, { schema: { hide: true }, exposeHeadRoute: true }, async (request, reply) => {
    const { code } = request.params as { code: string }
    const url = isShortCode(code) ? await visitLink(pool, code, isRobot(request)) : undefined
    const location = url === undefined ? undefined : locationOf(url)
    reply.headers(HEADERS)
    if (location !== undefined) return await reply.code(302).header('Location', location).send()
    reply.headers({ 'Content-Security-Policy': "default-src 'none'", 'X-Content-Type-Options': 'nosniff' })
    return await reply.code(404).type('text/html; charset=utf-8').send(NOT_FOUND_PAGE)
  })
}

/** As a header can say it: in ASCII, so without line breaks. Only links of the web are shortened; should another kind get in, it leads nowhere. */
function locationOf(url: string): string | undefined {
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? encodedUrl(url) : undefined
}

// By these, browsers say that they load a page before anybody asks for it: Chrome and Firefox, older Chrome, Safari, older Firefox.
const AHEAD_HEADERS = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/** Whether nobody looks at the page: a link preview, a scanner, a page loaded ahead. What does not say who it is, is none of the browsers that people use. */
function isRobot({ method, headers }: FastifyRequest): boolean {
  const { 'user-agent': userAgent = '' } = headers
  return (
    method === 'HEAD' ||
    userAgent.trim() === '' ||
    isbot(userAgent) ||
    AHEAD_HEADERS.some((name) => /prefetch|preview|prerender/i.test(String(headers[name])))
  )
}
