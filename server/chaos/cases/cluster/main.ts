import { randomInt } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { runChecks } from '../../checks/checks.ts'
import type { Caller } from '../../load/caller.ts'
import { startProbes } from '../../load/probes.ts'
import type { Requested } from '../../load/requested.ts'
import type { Tenant } from '../../load/tenants.ts'
import { type Run, report, runScript } from '../../run.ts'
import { during } from '../../schedule/faults.ts'
import type { Cleanup } from '../../support/cleanup.ts'
import { readOptions } from '../../support/options.ts'
import { say } from '../../support/progress.ts'
import { streamOf } from '../../support/random.ts'
import { findPostgres } from '../../topology/packages.ts'
import { type Pair, startPair } from '../../topology/pair.ts'
import { logFileOf } from '../../topology/postgres-server.ts'
import { type Address, openAddress } from '../../topology/proxy.ts'
import { failOver, MANNERS } from './failover.ts'
import { addShare, killOneOfEach, restartInTurn } from './nodes.ts'
import { crashWhileAlone, hangStandby, misleadAddress } from './standby.ts'

const HELP = `npm run chaos -- cluster [options]: two nodes of each role on a PostgreSQL with a synchronous standby, under load. Nodes are stopped in
order and killed, the primary is lost and the standby promoted, and the standby hangs; then the same checks are made as in a random run.
Needs Debian's packages of PostgreSQL.

  --seed N           repeats the load and the draws of a run; by default a new seed, which is printed
  --rounds N         so many failovers, 3: killed, frozen and cut off in turn
  --rate N           messages a second, 30; campaigns come on top
  --where-possible   says so and exits with 0 if PostgreSQL's packages are missing
  --help             prints this

The status is 0 if every check passed, 1 otherwise (then the logs are kept), and 2 if an option is wrong or packages are missing.
`

export type Cluster = Run & { pair: Pair; address: Address; caller: Caller; requested: Requested }

type Options = { seed: number; rounds: number; rate: number; binDir: string }

const CAMPAIGN_EVERY_MS = 12_000
const CAMPAIGN_PEOPLE = 200
const WARM_UP_MS = 2_000
const PROBE_EVERY_MS = 50
/** One node of each role. The faults of the database have checks of their own. */
const REQUIRED = ['api', 'delivery', 'webhooks'].map((target) => ({ target, manner: 'killed', leastFrozenMs: 0 }) as const)

export async function runCluster(args: string[]): Promise<number> {
  const numbers = { seed: [0, randomInt(2 ** 32)], rounds: [1, 3], rate: [1, 30] } as const
  const { 'where-possible': isOptional, ...options } = readOptions(args, { help: HELP, numbers, flags: ['where-possible'] })
  const installed = findPostgres()
  if (typeof installed === 'string') {
    console.error(`${installed}\n${isOptional ? 'Skipped: nothing was tested.' : 'Nothing was tested.'}`)
    return isOptional ? 0 : 2
  }
  const { version, binDir } = installed
  say(`PostgreSQL ${version} of ${binDir}, ${options.rounds} failovers, ${options.rate} messages a second`)
  return (await report(options.seed, (dir, cleanup) => runOnce({ ...options, binDir }, dir, cleanup))) ? 0 : 1
}

async function runOnce({ seed, rounds, rate, binDir }: Options, dir: string, cleanup: Cleanup) {
  // For PostgreSQL's user.
  chmodSync(dir, 0o755)
  const pair = await startPair(binDir, dir, cleanup)
  const address = await openAddress(pair.primary().place.dir, cleanup)
  // Faults of nodes take 50 s, and a failover 12 s.
  const load = { seed, rate, campaigns: 5 + rounds, campaignEveryMs: CAMPAIGN_EVERY_MS, people: CAMPAIGN_PEOPLE }
  const place = { dir, cleanup, databaseUrl: address.url, databaseLog: () => logFileOf(pair.primary().place) }
  const clusterOf = (run: Run): Cluster => {
    const { caller, requested } = run.tenants[0] as Tenant
    return Object.assign(run, { pair, address, caller, requested })
  }
  const { history } = await runScript(
    { ...place, load, required: REQUIRED },
    {
      during: (run) => breakCluster(clusterOf(run), seed, rounds),
      after: async (run) => {
        const cluster = clusterOf(run)
        run.scripted.unconfirmed = await during(run.faults, 'database', 'crashed while alone', () => crashWhileAlone(cluster))
        for (const node of run.nodes) await addShare(cluster, node)
      },
    },
  )
  return runChecks(history)
}

async function breakCluster(cluster: Cluster, seed: number, rounds: number): Promise<void> {
  const { faults, requested, caller, scripted } = cluster
  const inDatabase = <T>(manner: string, work: () => Promise<T>) => during(faults, 'database', manner, work)
  await sleep(WARM_UP_MS)
  scripted.shares = []
  scripted.stops = await restartInTurn(cluster)
  await killOneOfEach(cluster, streamOf(seed, 'kills'))
  const probes = startProbes(requested, caller, PROBE_EVERY_MS)
  const random = streamOf(seed, 'failovers')
  const first = Math.floor(random() * MANNERS.length)
  scripted.failovers = []
  for (let n = 0; n < rounds; n++) {
    const manner = MANNERS[(first + n) % MANNERS.length] as (typeof MANNERS)[number]
    scripted.failovers.push(await inDatabase(manner, () => failOver(cluster, manner, random, probes)))
  }
  scripted.outages = [
    await inDatabase('its standby frozen', () => hangStandby(cluster, probes)),
    await inDatabase('its standby at its address', () => misleadAddress(cluster, probes)),
  ]
  await probes.stop()
}
