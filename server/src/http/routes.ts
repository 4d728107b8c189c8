import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'

/**
 * Answers whatever matches no route: 405 with Allow where the path exists for another method, else 404. Called on the instance whose
 * routes it speaks for, before they are added.
 */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const methodsByPath = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPath.get(url) ?? new Set()
    for (const name of [method].flat()) methods.add(name)
    methodsByPath.set(url, methods)
  })
  app.setNotFoundHandler((request) => {
    const path = request.url.replace(/\?.*$/s, '')
    const methods = [...methodsByPath].filter(([pattern]) => matches(pattern, path)).flatMap(([, names]) => [...names])
    if (methods.length === 0) throw new ApiError('RCS_ROUTE_NOT_FOUND')
    throw new ApiError('RCS_METHOD_NOT_ALLOWED', { headers: { Allow: [...new Set(methods)].sort().join(', ') } })
  })
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  return (
    wanted.length === given.length && wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  )
}
