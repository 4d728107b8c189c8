import { Client } from 'undici'
import packageJson from '../../package.json' with { type: 'json' }
import { ApiError, type ErrorCode } from '../errors.ts'
import { unavailable } from '../http/error-responses.ts'
import { Aborted, type CallEnd, call } from '../outbound/call.ts'
import type { WebhookHosts } from '../public-host.ts'
import { type Connector, createConnector, NotPublic } from '../webhooks/address.ts'
import { describeFailure } from '../webhooks/destination.ts'
import { urlProblem } from '../webhooks/url.ts'
import { IMAGE_TYPES, type ImageType, imageTypeOf } from './image-type.ts'

export type Image = { type: ImageType; bytes: Buffer }
type FetchOptions = { hosts: WebhookHosts; connector?: Connector; timeoutMs?: number; signals?: AbortSignal[] }

export const MAX_IMAGE_BYTES = 5 * 1024 * 1024
/** From the first connection to the last byte, including all redirects. */
const TIMEOUT_MS = 10_000
const MAX_REDIRECTS = 3
const MAX_HEADER_BYTES = 16 * 1024
const REDIRECTS = [301, 302, 303, 307, 308]
const HEADERS = { accept: IMAGE_TYPES.join(', '), 'accept-encoding': 'identity', 'user-agent': `herald/${packageJson.version}` }

/**
 * Fetches an image by the connector of the webhooks, which reaches only the hosts that webhooks may go to. Each redirect is checked like the
 * first URL. Throws an ApiError that says why the file can't be shown.
 */
export async function fetchImage(url: string, options: FetchOptions): Promise<Image> {
  const { hosts, connector = createConnector({ hosts }), timeoutMs = TIMEOUT_MS, signals = [] } = options
  const limits = {
    timeoutMs,
    endsAt: performance.now() + timeoutMs,
    maxBytes: MAX_IMAGE_BYTES,
    // One byte more shows that the file is too large.
    keptBytes: MAX_IMAGE_BYTES + 1,
    maxInterimResponses: 10,
    signals,
  }
  let next = checkedUrl(url, hosts, 'The URL')
  for (let redirects = 0; ; redirects += 1) {
    const end = await get(next, connector, limits)
    const target = redirectOf(end)
    if (target === undefined) return imageOf(end)
    if (redirects === MAX_REDIRECTS) throw refusal('RCS_MEDIA_UNREACHABLE', `The URL redirects more than ${MAX_REDIRECTS} times.`)
    next = checkedUrl(target, hosts, 'The URL redirects to another one, which', next)
  }
}

function refusal(code: ErrorCode, reason: string): ApiError {
  return new ApiError(code, { details: [{ path: '/url', reason }] })
}

function checkedUrl(url: string, hosts: WebhookHosts, subject: string, base?: URL): URL {
  const parsed = URL.parse(url, base?.href)
  // The fragment is never sent.
  if (parsed !== null) parsed.hash = ''
  const problem = parsed === null ? 'must be a URL, such as https://example.com/a.jpg' : urlProblem(parsed.href, hosts)
  if (parsed === null || problem !== undefined) throw refusal('RCS_MEDIA_URL_REFUSED', `${subject} ${problem}.`)
  return parsed
}

async function get({ origin, pathname, search }: URL, connect: Connector, limits: Parameters<typeof call>[2]): Promise<CallEnd> {
  const client = new Client(origin, { connect, allowH2: false, maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: 0, bodyTimeout: 0 })
  const end = await call(client, { method: 'GET', path: pathname + search, headers: HEADERS }, limits)
  await client.destroy()
  return end
}

function redirectOf({ status = 0, headers: { location } }: CallEnd): string | undefined {
  return REDIRECTS.includes(status) && typeof location === 'string' ? location : undefined
}

function imageOf({ status, headers, body, error }: CallEnd): Image {
  if (error instanceof NotPublic) throw refusal('RCS_MEDIA_URL_REFUSED', `The file can't be fetched: ${error.message}.`)
  if (error instanceof Aborted && error.isStopped) throw unavailable('The service is shutting down.')
  if (status !== undefined && status !== 200) throw refusal('RCS_MEDIA_STATUS', `The host responds with status ${status} instead of 200.`)
  if (body.length > MAX_IMAGE_BYTES) {
    throw refusal('RCS_MEDIA_TOO_LARGE', `The file is over ${MAX_IMAGE_BYTES / 1024 / 1024} MiB.`)
  }
  if (error !== undefined) throw refusal('RCS_MEDIA_UNREACHABLE', `The file can't be fetched: ${describeFailure(error)}.`)
  const declared = /^[^;\s]+/.exec(String(headers['content-type'] ?? ''))?.[0].toLowerCase()
  if (!IMAGE_TYPES.includes(declared as ImageType)) {
    const is = declared === undefined ? 'The response has no Content-Type' : `The file is ${declared} by its Content-Type`
    throw refusal('RCS_MEDIA_NOT_IMAGE', `${is}; only ${IMAGE_TYPES.join(', ')} are shown.`)
  }
  const actual = imageTypeOf(body)
  if (actual === undefined || actual !== declared) {
    throw refusal('RCS_MEDIA_NOT_IMAGE', `The file is ${declared} by its Content-Type, but ${actual ?? 'no image'} by its first bytes.`)
  }
  return { type: actual, bytes: body }
}
