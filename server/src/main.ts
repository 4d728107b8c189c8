import { createProgram } from './cli/program.ts'
import { OperatorError } from './errors.ts'

try {
  const program = await createProgram(process.argv[2])
  await program.parseAsync()
} catch (error) {
  // A mistake of the operator's gets its sentence; a fault of ours gets its stack.
  console.error(error instanceof OperatorError ? error.message : error)
  process.exitCode = 1
}
