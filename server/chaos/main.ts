import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { breakOffInOrder } from './support/cleanup.ts'
import { readOptions } from './support/options.ts'

// npm run chaos -- KIND [options]. Each kind starts whole processes, breaks them, and checks what is left.

type Kind = { does: string; run: (args: string[]) => Promise<number> }

const here = dirname(fileURLToPath(import.meta.url))
const GLOBAL_SETUP = join(here, '../test/support/global-setup.ts')

const HELP = `npm run chaos -- KIND [--full]: runs the tests of this kind. --full: exports make archives larger than 4 GiB.
`

/** The tests of a folder, with Node's runner, on a PostgreSQL that they share. */
function tests(pattern: string, { concurrency = 2, timeoutMinutes = 25 } = {}): Kind['run'] {
  return async (args) => {
    const { full } = readOptions(args, { help: HELP, flags: ['full'] })
    const options = [
      `--test-global-setup=${GLOBAL_SETUP}`,
      `--test-concurrency=${concurrency}`,
      `--test-timeout=${timeoutMinutes * 60_000}`,
    ]
    const env = { ...process.env, ...(full && { HERALD_CHAOS_FULL: 'true' }) }
    const [code] = await once(spawn(process.execPath, ['--test', ...options, join(here, pattern)], { stdio: 'inherit', env }), 'exit')
    return code ?? 1
  }
}

const KINDS: Record<string, Kind> = {
  random: {
    does: 'kills and freezes every process at random under load, then compares all records',
    run: async (args) => (await import('./random.ts')).runRandom(args),
  },
  crash: {
    does: 'kills and freezes processes at chosen instants, case by case',
    run: async (args) => (await import('./cases/crash/main.ts')).runCrash(args),
  },
  cluster: {
    does: 'stops and kills nodes and fails PostgreSQL over to its standby',
    run: async (args) => (await import('./cases/cluster/main.ts')).runCluster(args),
  },
  process: {
    does: 'starts, kills and restarts whole services with their embedded database and simulated network',
    run: tests('cases/process/*.test.ts'),
  },
  exports: {
    does: 'opens large archives with other programs',
    run: tests('cases/exports/*.test.ts', { concurrency: 1, timeoutMinutes: 50 }),
  },
  install: {
    does: "runs the README's commands in a fresh clone",
    run: async (args) => (await import('./cases/install.ts')).runInstall(args),
  },
  checks: { does: 'proves that each check can fail, and that schedules are repeatable', run: tests('{mutator,schedule}/*.test.ts') },
}

const USAGE = `npm run chaos -- KIND [options]

${Object.entries(KINDS)
  .map(([name, { does }]) => `  ${name.padEnd(8)}  ${does}`)
  .join('\n')}

Each kind prints its options with --help.
`

const [name, ...args] = process.argv.slice(2)
const kind = name === undefined ? undefined : KINDS[name]
if (kind === undefined) {
  const isMistake = name !== undefined && name !== '--help'
  process[isMistake ? 'stderr' : 'stdout'].write(isMistake ? `There is no kind "${name}".\n\n${USAGE}` : USAGE)
  process.exit(isMistake ? 2 : 0)
}
breakOffInOrder()
process.exit(await kind.run(args))
