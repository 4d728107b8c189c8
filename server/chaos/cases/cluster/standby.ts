import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../test/support/until.ts'
import type { DatabaseOutage, Unconfirmed } from '../../history/scripted.ts'
import { accepted, newMessage, type Probe, type Probes, sendTo, untilAccepted } from '../../load/probes.ts'
import { say, seconds } from '../../support/progress.ts'
import { isReady } from '../../topology/node.ts'
import { ask } from '../../topology/postgres-server.ts'
import { freezeAll, thawAll } from '../../topology/signals.ts'
import type { Cluster } from './main.ts'

// Nothing is accepted that the standby does not have; and an address that leads to the standby by mistake is a database that is away.

// Longer than a caller waits for a response.
const AWAY_MS = 6_000
const MISLED_MS = 2_000
const LIMIT_MS = 10_000
const TIMEOUT_MS = 60_000

/** Ends an outage, and waits until messages are accepted again. */
async function resume(what: string, from: number, probes: Probes, ready: string[], end: () => Promise<void>): Promise<DatabaseOutage> {
  const to = Date.now()
  await end()
  const resumedMs = await untilAccepted(probes)
  const overlapping = probes.done.filter(({ respondedAt, sentAt }) => respondedAt > from && sentAt < to)
  say(`${what} for ${seconds(to - from)}: ${overlapping.length} requests; accepting ${seconds(resumedMs)} later`)
  return { what, from, to, servesReads: true, probes: overlapping, ready, resumedMs, limitMs: LIMIT_MS }
}

export async function hangStandby({ pair }: Cluster, probes: Probes): Promise<DatabaseOutage> {
  const { pid } = pair.standby().process
  freezeAll(pid)
  const from = Date.now()
  await sleep(AWAY_MS)
  return await resume('the standby hangs', from, probes, [], async () => thawAll(pid))
}

export async function misleadAddress({ pair, address, nodes }: Cluster, probes: Probes): Promise<DatabaseOutage> {
  address.break('cut')
  await address.openTo(pair.standby().place.dir)
  const from = Date.now()
  await sleep(MISLED_MS)
  const ready = await Promise.all(nodes.map(async (node) => ((await isReady(node)) ? [node.name] : [])))
  // Connections to the standby are not cut off, as with an address that is a name.
  return await resume('the address leads to the standby', from, probes, ready.flat(), () => address.openTo(pair.primary().place.dir))
}

const TRIES = 2

/**
 * The primary has committed a message that its standby does not have, and the caller got no 202. Then the primary dies, starts again, and
 * shows the message. A repeated request must not be accepted, since the standby still does not have it.
 *
 * There is no load meanwhile: a new message would make the response wait in any case.
 */
export async function crashWhileAlone({ pair, caller, requested }: Cluster): Promise<Unconfirmed> {
  const [nodeUrl = ''] = caller.nodeUrls()
  const one = newMessage(requested, caller)
  const meanwhile: Probe[] = []
  const send = () => sendTo(requested, caller, one, nodeUrl)
  const { pid } = pair.standby().process
  freezeAll(pid)
  meanwhile.push(await send())
  await pair.crashPrimary()
  const wasOnPrimary = (await ask(pair.primary().place, `select from idempotency_keys where key = '${one.key}'`)).length === 1
  for (let n = 0; n < TRIES; n++) meanwhile.push(await send())
  thawAll(pid)
  await until('it is accepted', async () => (await send()).status === 202, TIMEOUT_MS)
  say(`a message that only the primary had was accepted ${accepted(meanwhile).length} times`)
  // The standby has it on its disk before the response, and shows it a moment later.
  const isShown = async () => (await ask(pair.standby().place, `select from messages where id = '${one.ids[0]}'`)).length === 1
  const isOnStandby = await until('the standby shows it', isShown, TIMEOUT_MS).catch(() => false)
  return { meanwhile, wasOnPrimary, isOnStandby }
}
