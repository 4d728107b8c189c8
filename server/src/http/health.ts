import type { FastifyInstance } from 'fastify'
import { schemaState } from '../db/migrate.ts'
import type { Pool } from '../db/pool.ts'

/**
 * `/healthz`: the process lives; it says nothing of the database, so that an orchestrator does not restart a service whose database is away.
 * `/readyz`: requests can be served; a load balancer asks here.
 */
export function serveHealth(app: FastifyInstance, pool: Pool, isStopping: () => boolean): void {
  app.get('/healthz', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const problem = isStopping() ? 'the service is shutting down' : await databaseProblem(pool)
    if (problem === undefined) return { status: 'ready' }
    return reply.code(503).header('Retry-After', '1').send({ status: 'not ready', reason: problem })
  })
}

async function databaseProblem(pool: Pool): Promise<string | undefined> {
  try {
    return (await schemaState(pool)) === 'current' ? undefined : 'the database lacks migrations'
  } catch {
    return 'the database is out of reach, or of a newer schema'
  }
}
