import { createProgram } from '../../src/cli/program.ts'
import { runCommand } from '../../src/cli/run.ts'

export type Command = { args: string[]; env: NodeJS.ProcessEnv; cwd: string }
export type Outcome = { code: number; stdout: string; stderr: string }

/**
 * A process that runs one `herald` command after the other, each with its own environment, directory and output. A new process for each command
 * takes 0.2 to 0.5 s of CPU, most of it to load the program. It is not the process of the tests, so that a command shares
 * nothing with their services but the database.
 */
const program = createProgram()
let written: Record<'stdout' | 'stderr', Buffer[]>
for (const name of ['stdout', 'stderr'] as const) {
  process[name].write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    written[name].push(Buffer.from(chunk as string))
    const done = rest.findLast((each) => typeof each === 'function')
    if (done !== undefined) process.nextTick(done as () => void)
    return true
  }
}
const { exit } = process
// A command ends its process a second after it has closed its database, whatever is still open.
process.exit = (() => {}) as typeof process.exit

let last = Promise.resolve()
process.on('message', (command: Command) => {
  last = last.then(async () => void process.send?.(await run(command)))
})
process.once('disconnect', () => exit())

async function run({ args, env, cwd }: Command): Promise<Outcome> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  written = { stdout: [], stderr: [] }
  process.exitCode = undefined
  await runCommand(args, program)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal)
  // A command that prints page by page leaves its listeners. Node warns of the eleventh, as if they were a leak.
  for (const event of ['error', 'close']) process.stdout.removeAllListeners(event)
  const [stdout, stderr] = [written.stdout, written.stderr].map((chunks) => Buffer.concat(chunks).toString()) as [string, string]
  return { code: Number(process.exitCode ?? 0), stdout, stderr }
}
