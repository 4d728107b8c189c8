import { inspect } from 'node:util'
import { CommanderError } from 'commander'
import { EXIT, OperatorError } from '../errors.ts'
import { createProgram } from './program.ts'
import { type Lines, printError } from './terminal.ts'

/** Runs the command that the arguments name. If it fails, prints the error and sets the exit status. */
export async function runCommand(args: string[], program = createProgram(args[0])): Promise<void> {
  try {
    await (await program).parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = await report(error)
  }
}

/** Prints an error, and returns the exit status. */
async function report(error: unknown): Promise<number> {
  // Commander has printed it. Its own status for help and the version is 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
  if (error instanceof OperatorError) return print(error.lines, error.exitCode)
  // Imported here, so that "--help" does not wait for it.
  const { isUnavailable } = await import('../db/pool.ts')
  if (isUnavailable(error)) return print(`The database is out of reach or read-only: ${(error as Error).message}.`, EXIT.unavailable)
  return print(inspect(error).split('\n'), EXIT.refused)
}

function print(lines: Lines, status: number): number {
  printError(lines)
  return status
}
