import { HELP, parseOptions, StartError } from './options.ts'
import { startSimulator } from './simulator.ts'

try {
  const options = parseOptions(process.argv.slice(2))
  if (options === undefined) process.stdout.write(HELP)
  else await run(options)
} catch (error) {
  // An operator's mistake is printed as a message, a bug with its stack.
  console.error(error instanceof StartError ? error.message : error)
  process.exit(1)
}

async function run(options: NonNullable<ReturnType<typeof parseOptions>>): Promise<void> {
  const { stop, ...where } = await startSimulator(options)
  let stopping = false
  const end = () => {
    if (stopping) return
    stopping = true
    stop().then(
      () => process.exit(0),
      (error) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  // An uncaught exception ends the process, which is Node's default. Its turn is not committed: half a turn would be worse than none.
  if (options.stopWithStdin) process.stdin.on('end', end).on('error', end).resume()
  process.stdout.write(`${JSON.stringify({ ready: true, ...where })}\n`)
}
