import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { breakOffInOrder, type Cleanup, inDirectory } from '../cleanup.ts'
import { wholeNumber } from '../options.ts'
import { seconds as inSeconds, say } from '../progress.ts'
import { describe, isClean } from '../storm/verdict.ts'
import { findPostgres } from './packages.ts'
import { type ClusterOptions, runCluster } from './run.ts'

const HELP = `npm run test:cluster -- [options]: two nodes of each role on a PostgreSQL with a synchronous standby, under load. Nodes are stopped
in order and killed, the primary is lost and the standby promoted, the standby hangs; then what callers were told is held against what the
network, the promoted database and the endpoints have. Needs Debian's packages of PostgreSQL.

  --seed N           repeats the load and the draws of a run (else another one each time, which is said)
  --rounds N         so many failovers, 3: killed, frozen and cut off in turn
  --rate N           messages a second, 30; campaigns come on top
  --where-possible   says so and ends with status 0 where PostgreSQL's packages are missing
  --help             prints this

The status is 0 where every line of the verdict is "ok", 1 otherwise (then the logs are kept), and 2 where an option is wrong or packages are missing.
`

function readOptions() {
  try {
    const text = { type: 'string' } as const
    const yes = { type: 'boolean' } as const
    const { values } = parseArgs({ options: { seed: text, rounds: text, rate: text, 'where-possible': yes, help: yes } })
    return {
      help: values.help,
      isOptional: values['where-possible'] === true,
      seed: wholeNumber('--seed', values.seed, 0) ?? randomInt(2 ** 32),
      rounds: wholeNumber('--rounds', values.rounds, 1) ?? 3,
      rate: wholeNumber('--rate', values.rate, 1) ?? 30,
    }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

async function run(options: Omit<ClusterOptions, 'dir'>): Promise<boolean> {
  const begunAt = performance.now()
  const cluster = (dir: string, cleanup: Cleanup) => runCluster({ ...options, dir }, cleanup)
  const lines = await inDirectory('herald-cluster-', cluster, isClean)
  const clean = isClean(lines)
  say(`seed ${options.seed}: ${clean ? 'clean' : 'NOT CLEAN'} after ${inSeconds(performance.now() - begunAt)}`)
  process.stdout.write(`${describe(lines)}\n`)
  return clean
}

const { help, isOptional, seed, rounds, rate } = readOptions()
if (help) {
  process.stdout.write(HELP)
  process.exit(0)
}
const installed = findPostgres()
if (typeof installed === 'string') {
  console.error(`${installed}\n${isOptional ? 'Skipped: nothing was tested.' : 'Nothing was tested.'}`)
  process.exit(isOptional ? 0 : 2)
}
breakOffInOrder()
say(`PostgreSQL ${installed.version} of ${installed.binDir}, seed ${seed}, ${rounds} failovers, ${rate} messages a second`)
const clean = await run({ seed, rounds, rate, binDir: installed.binDir })
process.exit(clean ? 0 : 1)
