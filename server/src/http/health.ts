import type { FastifyInstance } from 'fastify'
import { createBatcher } from '../db/batcher.ts'
import { schemaState } from '../db/migrate.ts'
import { isReadOnly, type Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'

/**
 * `/healthz`: the process runs. It does not check the database, so that an orchestrator does not restart a service whose database is down.
 * `/readyz`: the service can handle requests. This is the check for load balancers.
 */
export function serveHealth(app: FastifyInstance, pool: Pool, isStopping: () => boolean): void {
  // Requests that arrive while a check runs share the next one, so that frequent requests put no load on the database.
  const check = createBatcher<void, string | undefined>(
    async (waiting) => {
      const problem = await databaseProblem(pool)
      return waiting.map(() => problem)
    },
    { maxItems: 1_000 },
  )

  app.get('/healthz', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const problem = isStopping() ? 'the service is shutting down' : await check()
    if (problem === undefined) return { status: 'ready' }
    return reply.code(503).header('Retry-After', '1').send({ status: 'not ready', reason: problem })
  })
}

async function databaseProblem(pool: Pool): Promise<string | undefined> {
  try {
    // A newer schema comes from a rolling upgrade, during which this node continues to serve.
    if (!['current', 'newer'].includes(await schemaState(pool))) return 'the database lacks migrations'
    return (await isReadOnly(pool)) ? 'the database is read-only' : undefined
  } catch (error) {
    return error instanceof OperatorError ? error.message : 'the database is out of reach'
  }
}
