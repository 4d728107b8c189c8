import { createProgram } from './cli/program.ts'
import { OperatorError } from './errors.ts'

try {
  const program = await createProgram(process.argv[2])
  await program.parseAsync()
} catch (error) {
  console.error(await told(error))
  process.exitCode = 1
}

/** A mistake of the operator's gets its sentence, and so does a database that went away meanwhile; a fault of ours gets its stack. */
async function told(error: unknown): Promise<unknown> {
  if (error instanceof OperatorError) return error.message
  // Loaded here and not above, where "--help" would wait for it.
  const { isUnavailable } = await import('./db/pool.ts')
  return isUnavailable(error) ? `The database is out of reach, or takes no writes: ${(error as Error).message}.` : error
}
