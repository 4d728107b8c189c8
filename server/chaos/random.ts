import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { runChecks } from './checks/checks.ts'
import { type Run, report, runScript } from './run.ts'
import { injectFaults } from './schedule/faults.ts'
import { planFaults, requiredFaults } from './schedule/plan.ts'
import type { Cleanup } from './support/cleanup.ts'
import { readOptions } from './support/options.ts'
import { say } from './support/progress.ts'
import { createDatabaseServer } from './topology/database.ts'

const HELP = `npm run chaos -- random [options]: kills and freezes every process of a running service at random, under load, and then compares
the responses to callers with what the network, the database and the endpoints have.

  --seed N      repeats the faults and the load of a run; by default a new seed, which is printed
  --seconds N   how long faults are injected, 120; settling and checking come on top
  --rate N      messages a second, 40; campaigns come on top
  --seeds N     so many runs, with the seeds from --seed on
  --help        prints this

The status is 0 if every check passed, 1 otherwise (then the logs are kept), and 2 if an option is wrong.
`

const CAMPAIGN_EVERY_MS = 10_000
const CAMPAIGN_PEOPLE = 200

export async function runRandom(args: string[]): Promise<number> {
  const numbers = { seed: [0, randomInt(2 ** 32)], seconds: [1, 120], rate: [1, 40], seeds: [1, 1] } as const
  const { seed, seconds, rate, seeds } = readOptions(args, { help: HELP, numbers })
  let failed = 0
  for (let n = 0; n < seeds; n++) {
    const options = { seed: seed + n, seconds, rate }
    if (!(await report(options.seed, (dir, cleanup) => runOnce(options, dir, cleanup)))) failed += 1
  }
  return failed === 0 ? 0 : 1
}

async function runOnce({ seed, seconds, rate }: { seed: number; seconds: number; rate: number }, dir: string, cleanup: Cleanup) {
  const database = await createDatabaseServer(join(dir, 'database'))
  cleanup.push(() => database.stop())
  await database.start()
  const brokenOff = new AbortController()
  cleanup.push(() => brokenOff.abort())
  const campaigns = Math.ceil((seconds * 1_000) / CAMPAIGN_EVERY_MS)
  const load = { seed, rate, campaigns, campaignEveryMs: CAMPAIGN_EVERY_MS, people: CAMPAIGN_PEOPLE }
  const place = { dir, cleanup, databaseUrl: database.url, databaseLog: () => database.logFile }
  const { history } = await runScript(
    { ...place, load, required: requiredFaults(seconds) },
    {
      during: async ({ nodes, network, faults }: Run) => {
        const plan = planFaults(seed, seconds)
        say(`${plan.length} faults are planned in ${seconds} s of ${rate} messages a second`)
        faults.push(...(await injectFaults(plan, [...nodes, database, network], seconds * 1_000, brokenOff.signal)))
      },
    },
  )
  return runChecks(history)
}
