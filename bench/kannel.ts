import { heraldOf } from './checkouts.ts'
import { type Rate, saturate } from './http-load.ts'
import { isKannelInstalled, startKannel } from './kannel-process.ts'
import { byMedian, type Report } from './lines.ts'
import { interleave, say } from './measure.ts'
import { postmasterIn } from './postgres.ts'
import { type Cpu, cpuMs } from './proc.ts'
import { startHerald } from './processes.ts'
import { cpuOf, createAccountAt, messageRequest } from './service.ts'
import type { Measuring } from './through.ts'
import { labelled } from './whole-way.ts'

// How many messages are accepted a second, beside Kannel, which does far less for each: docs/performance.md says what. Both answer 202 to the same
// client over as many connections, and take turns.

const PART = 'kannel'
const MIN_RATIO = 0.9

type Side = { label: string; saturate: (seconds: number) => Promise<Rate>; rates: Rate[]; stop: () => Promise<void> }

/** `note`: says what is to stand below the table. */
export async function measureKannel({ quick, servers }: Measuring, report: Report, note: (sentence: string) => void): Promise<void> {
  if (!isKannelInstalled()) {
    note("SKIPPED: kannel: Kannel is not installed here; it is in Debian's packages kannel and kannel-extras.")
    return
  }
  const { seconds, rounds } = quick ? { seconds: 1, rounds: 3 } : { seconds: 5, rounds: 7 }
  const kannel = await startKannelSide()
  const heralds: Side[] = []
  for (const { checkout, label } of servers) heralds.push(await startHeraldSide(checkout, labelled(label, 'Herald')))
  const all = [kannel, ...heralds]
  for (const side of all) await side.saturate(seconds)
  const turns = all.map((side) => async (round: number) => {
    const rate = await side.saturate(seconds)
    side.rates.push(rate)
    say(`${PART}, round ${round} of ${rounds}: ${side.label}: ${rate.perSecond.toFixed(0)} a second`)
  })
  await interleave(rounds, turns)
  for (const { stop } of all.toReversed()) await stop()
  const rateOf = ({ rates }: Side) => byMedian(rates.map(({ perSecond }) => perSecond))
  const cpuOfEach = ({ rates }: Side) => byMedian(rates.map(({ cpu }) => Object.values(cpu).reduce((sum, each) => sum + each, 0)))
  for (const side of heralds) {
    const target = side === heralds.at(-1) ? { target: { of: 'ratio' as const, least: MIN_RATIO } } : {}
    const limit = { what: kannel.label, ...rateOf(kannel) }
    report({ part: PART, what: `${side.label}: accepted`, unit: 'a second', measured: rateOf(side), limit, ...target })
    const cpu = { what: kannel.label, ...cpuOfEach(kannel) }
    report({ part: PART, what: `${side.label}: CPU of each, all processes`, unit: 'µs', measured: cpuOfEach(side), limit: cpu })
  }
}

async function startKannelSide(): Promise<Side> {
  const { url, request, programs, stop } = await startKannel()
  const cpu = (): Cpu => Object.fromEntries(Object.entries(programs).map(([name, { child }]) => [name, cpuMs(child) ?? 0]))
  return { label: 'Kannel', saturate: (seconds) => saturate(url, seconds, request, cpu, request), rates: [], stop }
}

/** As in the part `accept`: the API alone, on the embedded database. */
async function startHeraldSide(checkout: string, label: string): Promise<Side> {
  const { url, dataDir, child, stop } = await startHerald(['--only', 'api'], {}, { program: heraldOf(checkout) })
  const account = await createAccountAt(checkout, { HERALD_DATA_DIR: dataDir })
  const postmaster = postmasterIn(dataDir)
  const request = () => messageRequest(account)
  return { label, saturate: (seconds) => saturate(url, seconds, request, () => cpuOf({ api: child }, postmaster)), rates: [], stop }
}
