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

/** Describes an operator's mistake or an unavailable database in a sentence, and a fault in Herald by its stack. */
async function linesOf(error: unknown): Promise<Lines> {
  if (error instanceof OperatorError) return error.lines
  // Imported here, so that "--help" does not wait for it.
  const { isUnavailable } = await import('./db/pool.ts')
  if (isUnavailable(error)) return `The database is out of reach or read-only: ${(error as Error).message}.`
  return inspect(error).split('\n')
}
