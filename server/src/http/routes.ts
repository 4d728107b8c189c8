import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

/**
 * Answers whatever matches no route, on this instance and below: 405 with Allow where the path exists for another method, else 404.
 * That is after the credentials, which are checked when a request begins, and before its body is read: a path that is not there has no
 * rules for bodies. Call it before the routes are added. `direct`: the paths whose POST never reaches Fastify.
 */
export function answerUnknownRoutes(app: FastifyInstance, direct: readonly string[] = []): void {
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
    return new ApiError('RCS_METHOD_NOT_ALLOWED', { headers: { Allow: [...new Set(methods)].sort().join(', ') } })
  }
  app.addHook('preParsing', (request, _reply, _payload, done) => done(request.is404 ? refusal(request.url) : null))
  app.setNotFoundHandler(unknownRoute)
}

/** What Fastify calls last; the hook above comes before it. A scope with checks of its own sets it, so that they run for unknown paths. */
export function unknownRoute(_request: FastifyRequest): never {
  throw new ApiError('RCS_ROUTE_NOT_FOUND')
}

/**
 * The segments as the router reads them: split first, then decoded. So /v1/%61gents is /v1/agents, but /v1%2fagents is one segment that
 * no route has: outside /v1, it must not reveal which paths and methods /v1 has.
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
 * One way to write an address, whatever the client's: without scheme and host, which a request to a proxy has, and without a fragment,
 * which no request should have. A path that can't be decoded is taken to the letter: it names nothing that exists, and is answered so.
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
