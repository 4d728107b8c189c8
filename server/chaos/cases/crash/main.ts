import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../test/support/until.ts'
import { runChecks } from '../../checks/checks.ts'
import { compareCounters, compareStatusCounts } from '../../history/history.ts'
import type { Tenant } from '../../load/tenants.ts'
import { type Run, report, runScript } from '../../run.ts'
import type { Cleanup } from '../../support/cleanup.ts'
import { readOptions } from '../../support/options.ts'
import { say } from '../../support/progress.ts'
import { streamOf } from '../../support/random.ts'
import { createDatabaseServer } from '../../topology/database.ts'
import { isReady } from '../../topology/node.ts'
import { openAddress } from '../../topology/proxy.ts'
import { killApi, killApiThatDelivers, killDatabase } from './bursts.ts'
import { killAfterCancel, killAfterPause, killDuringFanOut } from './campaigns.ts'
import { killWalk } from './expiry-walk.ts'
import { endFolds } from './folding.ts'
import { freezeWorker } from './frozen-worker.ts'
import { breakAddress } from './outages.ts'
import { type Case, type Crash, TIMEOUT_MS, unlessUnavailable } from './support.ts'

const CASES: Case[] = [
  { name: 'api', does: 'kills an API node the instant that it has responded', isQuiet: true, run: killApi },
  { name: 'api-delivery', does: 'the same, of a node that also delivers', isQuiet: true, run: killApiThatDelivers },
  { name: 'frozen-worker', does: 'freezes a worker past its lease with all its calls under way', isQuiet: true, run: freezeWorker },
  { name: 'expiry-walk', does: 'kills workers in the midst of a batch of expiries', isQuiet: true, run: killWalk },
  { name: 'database', does: 'kills the database the instant that a request was accepted', run: killDatabase },
  { name: 'outages', does: 'cuts, refuses and black-holes the connections to the database', run: breakAddress },
  { name: 'folding', does: 'ends folds of counters halfway, in three ways', run: endFolds },
  { name: 'fan-out', does: 'kills all workers while a campaign is fanned out and sent', run: killDuringFanOut },
  { name: 'paused', does: 'kills all workers just after a campaign was paused, and resumed', run: killAfterPause },
  { name: 'cancelled', does: 'kills all workers just after a campaign was cancelled', run: killAfterCancel },
]

const HELP = `npm run chaos -- crash [options]: breaks a service at chosen instants, case by case, under load, and then makes the same checks as a
random run.

${CASES.map(({ name, does }) => `  ${name.padEnd(14)}${does}`).join('\n')}

  --only NAME,NAME  only these cases
  --full            as many faults as the promises need; leases expire by themselves (about an hour)
  --rate N          messages a second beside the cases, 20
  --seed N          repeats the load and the draws of a run; by default a new seed, which is printed
  --help            prints this

The status is 0 if every check passed, 1 otherwise (then the logs are kept), and 2 if an option is wrong.
`

const LOOK_EVERY_MS = 1_000
// Of each account, so that a run of few cases has all kinds of phones.
const LEAST_MESSAGES = 80

export async function runCrash(args: string[]): Promise<number> {
  const numbers = { seed: [0, randomInt(2 ** 32)], rate: [1, 20] } as const
  const { seed, rate, only, full } = readOptions(args, { help: HELP, numbers, texts: ['only'], flags: ['full'] })
  const names = only?.split(',') ?? CASES.map(({ name }) => name)
  const unknown = names.find((name) => !CASES.some((one) => one.name === name))
  if (unknown !== undefined) {
    console.error(`There is no case "${unknown}".\n\n${HELP}`)
    return 2
  }
  const cases = CASES.filter(({ name }) => names.includes(name))
  return (await report(seed, (dir, cleanup) => runCases(cases, { seed, rate, isFull: full }, dir, cleanup))) ? 0 : 1
}

async function runCases(
  cases: Case[],
  { seed, rate, isFull }: { seed: number; rate: number; isFull: boolean },
  dir: string,
  cleanup: Cleanup,
) {
  const database = await createDatabaseServer(join(dir, 'database'))
  cleanup.push(() => database.stop())
  await database.start()
  const address = await openAddress(database.socketDir, cleanup)
  const load = { seed, rate, campaigns: 4, campaignEveryMs: 10_000, people: 100 }
  const place = { dir, cleanup, databaseUrl: address.url, databaseLog: () => database.logFile }
  const crashOf = (run: Run): Crash => {
    const { caller, requested } = run.tenants[0] as Tenant
    return Object.assign(run, { random: streamOf(seed, 'cases'), isFull, database, address, caller, requested })
  }
  async function runSome(run: Run, isQuiet: boolean): Promise<void> {
    const crash = crashOf(run)
    for (const one of cases) if ((one.isQuiet === true) === isQuiet) await runCase(crash, one)
  }
  const { history } = await runScript(
    { ...place, load, required: [] },
    {
      before: (run) => runSome(run, true),
      during: async (run) => {
        const looking = lookAtCounters(run)
        await runSome(run, false)
        const isEnough = ({ requested }: Tenant) => requested.messages.length >= LEAST_MESSAGES && requested.campaigns.length > 0
        await until('every check has something to compare', () => run.tenants.every(isEnough), TIMEOUT_MS)
        await looking.stop()
      },
    },
  )
  return runChecks(history)
}

/** A case that fails does not stop the others. */
async function runCase(crash: Crash, { name, does, run }: Case): Promise<void> {
  say(`${name}: ${does}`)
  crash.scripted.cases ??= []
  try {
    const areReady = async () => (await Promise.all(crash.nodes.map(isReady))).every(Boolean)
    await until('all nodes are ready', areReady, TIMEOUT_MS)
    await run(crash)
    crash.scripted.cases.push({ name })
  } catch (error) {
    say(`${name} FAILED: ${(error as Error).stack}`)
    crash.scripted.cases.push({ name, error: (error as Error).message })
    for (const node of crash.nodes) {
      node.thaw()
      if (!node.isRunning()) await node.start()
    }
  }
}

/** At every moment, whatever has died, the counters equal the rows. */
function lookAtCounters(run: Run): { stop: () => Promise<void> } {
  const seen = { compared: 0, wrong: [] as string[] }
  run.scripted.counters = seen
  let isOver = false
  async function look(): Promise<void> {
    for (; !isOver; await sleep(LOOK_EVERY_MS)) {
      for (const compare of [compareCounters, compareStatusCounts]) {
        const outcome = await unlessUnavailable(() => compare(run.checkPool))
        if (outcome !== undefined) seen.compared += 1
        seen.wrong.push(...(outcome?.wrong ?? []))
      }
    }
  }
  const looking = look()
  return {
    stop: async () => {
      isOver = true
      await looking
    },
  }
}
