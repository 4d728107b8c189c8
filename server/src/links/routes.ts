import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isbot } from 'isbot'
import { encodedUrl } from '../content/urls.ts'
import type { Pool } from '../db/pool.ts'
import type { LimitResult, Policy } from '../http/limits.ts'
import { createMemoryLimiter } from '../http/limits-memory.ts'
import { isShortCode, SHORT_PATH } from './codes.ts'
import { visitLink } from './links.ts'

// The code is personal to the recipient: no response is cached, the code is not sent to the target as a referrer, and search engines do not
// index it.
const HEADERS = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer', 'X-Robots-Tag': 'noindex' }

// The page for recipients of an SMS. An unknown code and an invalid code get the same page.
const NOT_FOUND_PAGE = page(
  'Link not found',
  'This link leads nowhere',
  'It may have been cut short, or it is too old. Please open it from the message once more, or ask the sender.',
)
const TOO_MANY_PAGE = page('Too many requests', 'Please try again in a minute', 'Too many links were opened from your network just now.')

function page(title: string, heading: string, text: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
</head>
<body>
<h1>${heading}</h1>
<p>${text}</p>
</body>
</html>
`
}

type LinkOptions = { pool: Pool; addressOf: (request: FastifyRequest) => string; now?: () => number }

// Per address and node. Many phones of a mobile network share an address, so a known code is never refused because of other phones' wrong
// guesses.
const VISITS: Policy = { name: 'links', quota: 100, windowMs: 1_000 }
const MISSES: Policy = { name: 'unknown-links', quota: 30, windowMs: 60_000 }

/**
 * `GET /l/{code}`: redirects from the short link in an SMS to its target. Not part of the API: it requires no credentials, and only the
 * code decides the target.
 */
export async function linkRoutes(app: FastifyInstance, { pool, addressOf, now }: LinkOptions): Promise<void> {
  const limiter = createMemoryLimiter(now)
  // Fastify serves HEAD with the same handler.
  app.get(`${SHORT_PATH}:code`, { schema: { hide: true }, exposeHeadRoute: true }, async (request, reply) => {
    const { code } = request.params as { code: string }
    const address = addressOf(request)
    reply.headers(HEADERS)
    const visit = await limiter(VISITS, address)
    if (!visit.allowed) return await refuse(reply, visit)
    const url = isShortCode(code) ? await visitLink(pool, code, isRobot(request)) : undefined
    const location = url === undefined ? undefined : locationOf(url)
    if (location !== undefined) return await reply.code(302).header('Location', location).send()
    const miss = await limiter(MISSES, address)
    return await (miss.allowed ? sendPage(reply, 404, NOT_FOUND_PAGE) : refuse(reply, miss))
  })
}

async function refuse(reply: FastifyReply, { resetMs }: LimitResult): Promise<FastifyReply> {
  return await sendPage(reply.header('Retry-After', String(Math.max(1, Math.ceil(resetMs / 1_000)))), 429, TOO_MANY_PAGE)
}

async function sendPage(reply: FastifyReply, status: number, page: string): Promise<FastifyReply> {
  reply.headers({ 'Content-Security-Policy': "default-src 'none'", 'X-Content-Type-Options': 'nosniff' })
  return await reply.code(status).type('text/html; charset=utf-8').send(page)
}

/**
 * Encodes the URL for a header: ASCII only, without line breaks. Herald shortens only http and https links; any other stored URL gets no
 * redirect.
 */
function locationOf(url: string): string | undefined {
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? encodedUrl(url) : undefined
}

// Browsers announce a prefetch with these headers: Chrome and Firefox, older Chrome, Safari, older Firefox.
const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/**
 * Whether a program made the request: a link preview, a scanner, a prefetch. All browsers that people use send a user agent.
 */
function isRobot({ method, headers }: FastifyRequest): boolean {
  const { 'user-agent': userAgent = '' } = headers
  return (
    method === 'HEAD' ||
    userAgent.trim() === '' ||
    isbot(userAgent) ||
    PREFETCH_HEADERS.some((name) => /prefetch|preview|prerender/i.test(String(headers[name])))
  )
}
