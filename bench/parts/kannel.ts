import { saturateHttp } from '../load/connections.ts'
import { byMedian, labelled, ratioAtLeast } from '../measure/figures.ts'
import { type Cpu, cpuMs, cpuOfAll } from '../measure/process-usage.ts'
import { ratesOf, type Side, showRate, sideOf, takeTurns, warmUp } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { createSenderBy, messageRequest } from '../setup/accounts.ts'
import type { Server } from '../setup/checkouts.ts'
import { isKannelInstalled, startKannel } from '../setup/kannel.ts'
import { postmasterIn } from '../setup/postgres.ts'
import { startHerald } from '../setup/processes.ts'

// Kannel does far less for each message: bench/standard-parts.md has the differences. Both respond with 202 to the same client.

const TARGET = ratioAtLeast(0.9)

export async function measureKannel(bench: Bench): Promise<void> {
  if (!isKannelInstalled()) {
    bench.note("SKIPPED: kannel: Kannel is not installed here; it is in Debian's packages kannel and kannel-extras.")
    return
  }
  const { seconds, rounds } = bench.quick ? { seconds: 1, rounds: 3 } : { seconds: 5, rounds: 7 }
  const base = await startKannelSide(seconds)
  const heralds: Side[] = []
  for (const server of bench.servers) heralds.push(await startHeraldSide(server, seconds))
  await warmUp([base, ...heralds])
  await takeTurns(bench, [base, ...heralds], { rounds, show: showRate })
  const cpuOfEach = (side: Side) => byMedian(side.rounds.map(({ cpu }) => Object.values(cpu).reduce((sum, each) => sum + each, 0)))
  for (const side of heralds) {
    const target = side === heralds.at(-1) ? TARGET : undefined
    const [rate, cpu] = [ratesOf(base), cpuOfEach(base)]
    bench.report({ what: side.label, unit: 'a second', measured: ratesOf(side), limit: { what: base.label, ...rate }, target })
    const what = `${side.label}: CPU of each, all processes`
    bench.report({ what, unit: 'µs', measured: cpuOfEach(side), limit: { what: base.label, ...cpu } })
  }
}

async function startKannelSide(seconds: number): Promise<Side> {
  const { url, request, programs } = await startKannel()
  const cpu = (): Cpu => Object.fromEntries(Object.entries(programs).map(([name, { child }]) => [name, cpuMs(child)]))
  return sideOf('Kannel', () => saturateHttp({ url, request }, seconds, cpu, request))
}

/** As in the part `accept`: the API alone, on the embedded database. */
async function startHeraldSide({ checkout, label }: Server, seconds: number): Promise<Side> {
  const { url, dataDir, child } = await startHerald(['--only', 'api'], {}, { checkout })
  const account = await createSenderBy(checkout, { HERALD_DATA_DIR: dataDir })
  const postmaster = postmasterIn(dataDir)
  const cpu = () => cpuOfAll({ api: child }, postmaster)
  return sideOf(labelled(label, 'accepted'), () => saturateHttp({ url, request: () => messageRequest(account) }, seconds, cpu))
}
