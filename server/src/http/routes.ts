import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

/**
 * Refuses requests that match no route, on this instance and below: 405 with Allow if the path exists for another method, else 404. This comes
 * after the credentials, which are checked when a request begins, and before the body is read, since an unknown path has no rules for bodies.
 * Call it before the routes are added. `direct`: the paths whose POST never reaches Fastify.
 */
export function refuseUnknownRoutes(app: FastifyInstance, direct: readonly string[] = []): void {
  const methodsByPath = new Map(direct.map((url) => [url, new Set(['POST'])]))
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPath.get(url) ?? new Set()
    for (const name of [method].flat()) methods.add(name)
    methodsByPath.set(url, methods)
  })
  function refusal(url: string): ApiError {
    const segments = segmentsOf(url)
    const methods = [...methodsByPath].filter(([pattern]) => matches(pattern, segments)).flatMap(([, names]) => [...names])
    if (methods.length === 0) return new ApiError('RCS_ROUTE_NOT_FOUND')
    const allowed = [...new Set(methods)].sort().join(', ')
    return new ApiError('RCS_METHOD_NOT_ALLOWED', {
      headers: { Allow: allowed },
      details: [{ path: '', reason: `The path allows only ${allowed}.` }],
    })
  }
  app.addHook('preParsing', (request, _reply, _payload, done) => done(request.is404 ? refusal(request.url) : null))
  app.setNotFoundHandler(unknownRoute)
}

/**
 * Whether a route matched only because the router lets a parameter be empty: /v1/messages/ names no message, but is an unknown path. The loop
 * costs nothing on a route without parameters.
 */
export function hasEmptyParameter({ params }: FastifyRequest): boolean {
  const values = params as Record<string, string>
  for (const name in values) if (values[name] === '') return true
  return false
}

/** Fastify calls this last, after the hook above. A scope with checks of its own sets it too, so that its checks run for unknown paths. */
export function unknownRoute(_request: FastifyRequest): never {
  throw new ApiError('RCS_ROUTE_NOT_FOUND')
}

/**
 * The segments of a path as the router reads them: split first, then decoded. So /v1/%61gents is /v1/agents, but /v1%2fagents is one segment,
 * which no route has. Such a path is outside /v1, so the response must not reveal which paths and methods /v1 has.
 */
export function segmentsOf(url: string): string[] {
  return url
    .replace(/\?.*$/s, '')
    .split('/')
    .map((segment) => decodeURIComponent(segment))
}

function matches(pattern: string, given: string[]): boolean {
  const wanted = pattern.split('/')
  return (
    wanted.length === given.length && wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  )
}

/**
 * Normalises a request URL: removes scheme and host, which a request to a proxy has, and the fragment, which no request should have. In a path
 * that can't be decoded it escapes every `%`: such a path matches no route, so the caller gets 404.
 */
export function routableUrl(sent: string): string {
  if (/^\/[^%#]*$/.test(sent)) return sent
  const url = sent.replace(/^https?:\/\/[^/?#]*/i, '').replace(/#.*$/s, '') || '/'
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}
