import type { FastifyInstance } from 'fastify'
import { createBatcher } from '../db/batcher.ts'
import { schemaState } from '../db/migrate.ts'
import { isReadOnly, type Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'

/**
 * `/healthz`: the process lives; it says nothing of the database, so that an orchestrator does not restart a service whose database is away.
 * `/readyz`: requests can be served; a load balancer asks here.
 */
export function serveHealth(app: FastifyInstance, pool: Pool, isStopping: () => boolean): void {
  // Whoever asks while a check runs shares it: nobody can make the database work by asking often.
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
    // A newer schema is that of a rolling upgrade, in which this node serves on.
    if (!['current', 'newer'].includes(await schemaState(pool))) return 'the database lacks migrations'
    return (await isReadOnly(pool)) ? 'the database takes no writes' : undefined
  } catch (error) {
    return error instanceof OperatorError ? error.message : 'the database is out of reach'
  }
}
