import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../test/support/until.ts'
import { newMessage, sendTo, startProbes } from '../../load/probes.ts'
import { during } from '../../schedule/faults.ts'
import { say, seconds } from '../../support/progress.ts'
import type { Outage } from '../../topology/proxy.ts'
import { type Crash, DELIVERING, endLeases, repeatUntilAccepted, TIMEOUT_MS } from './support.ts'

// The database is away in three ways, without a restart of any process.

// A short black hole is longer than a response may take.
const OUTAGES = { cut: 3_000, refused: 3_000, 'black-holed': 6_000 } satisfies Record<Outage, number>
const FULL_OUTAGE_MS = 20_000
const BEFORE_MS = 1_000
const PROBE_EVERY_MS = 20
const BURST = 30
const RESUMED_WITHIN_MS = 15_000

export async function breakAddress(crash: Crash): Promise<void> {
  const { requested, caller, address, database, faults, isFull } = crash
  for (const [outage, shortMs] of Object.entries(OUTAGES) as [Outage, number][]) {
    await untilOneIsDelivered(crash)
    const probes = startProbes(requested, caller, PROBE_EVERY_MS)
    await sleep(BEFORE_MS)
    // Within milliseconds, so that some are in the midst of a statement.
    const urls = caller.nodeUrls()
    const burst = Array.from({ length: BURST }, (_, n) =>
      sendTo(requested, caller, newMessage(requested, caller), urls[n % urls.length] as string),
    )
    await new Promise(setImmediate)
    const from = Date.now()
    const { to, resumedMs } = await during(faults, 'database', outage, async () => {
      address.break(outage)
      await sleep(isFull ? FULL_OUTAGE_MS : shortMs)
      const to = Date.now()
      await address.openTo(database.socketDir)
      await untilOneIsDelivered(crash)
      return { to, resumedMs: Date.now() - to }
    })
    say(`the database was ${outage} for ${seconds(to - from)}; a message was delivered ${seconds(resumedMs)} later`)
    const all = [...(await probes.stop()), ...(await Promise.all(burst))]
    crash.scripted.outages ??= []
    crash.scripted.outages.push({
      what: outage,
      from,
      to,
      servesReads: false,
      probes: all,
      ready: [],
      resumedMs,
      limitMs: RESUMED_WITHIN_MS,
    })
    // A claim whose response was lost is repeated when its lease ends.
    await endLeases(crash, DELIVERING, ['queue'])
    const sent = new Set(all.map(({ key }) => key))
    await repeatUntilAccepted(
      crash,
      requested.messages.filter(({ key, outcome }) => sent.has(key) && outcome === 'unanswered'),
    )
  }
}

async function untilOneIsDelivered(crash: Crash): Promise<void> {
  const { requested, caller, checkPool } = crash
  const one = newMessage(requested, caller)
  await repeatUntilAccepted(crash, [one])
  const isDelivered = async () =>
    (await checkPool.query(`select from messages where id = $1 and status in ('DELIVERED', 'READ')`, [one.ids[0]])).rowCount === 1
  await until('a message is delivered', isDelivered, TIMEOUT_MS)
}
