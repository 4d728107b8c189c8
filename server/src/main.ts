import { inspect } from 'node:util'
import { createProgram } from './cli/program.ts'
import { type Lines, printError } from './cli/terminal.ts'
import { OperatorError } from './errors.ts'

try {
  const program = await createProgram(process.argv[2])
  await program.parseAsync()
} catch (error) {
  printError(await linesOf(error))
  process.exitCode = 1
}

/** A mistake of the operator's gets its sentence, and so does a database that went away meanwhile; a fault of ours gets its stack. */
async function linesOf(error: unknown): Promise<Lines> {
  if (error instanceof OperatorError) return error.lines
  // Loaded here and not above, where "--help" would wait for it.
  const { isUnavailable } = await import('./db/pool.ts')
  if (isUnavailable(error)) return `The database is out of reach, or takes no writes: ${(error as Error).message}.`
  return inspect(error).split('\n')
}
