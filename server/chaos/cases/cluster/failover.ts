import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../test/support/until.ts'
import type { Comeback, Failover } from '../../history/scripted.ts'
import { accepted, type Probes } from '../../load/probes.ts'
import { say, seconds } from '../../support/progress.ts'
import { between, type Random } from '../../support/random.ts'
import { ask, kill, killPostmaster, type PostgresServer } from '../../topology/postgres-server.ts'
import { freezeAll, thawAll } from '../../topology/signals.ts'
import type { Cluster } from './main.ts'

/** `killed`: its postmaster. `frozen`: it hangs, and comes back later. `cut off`: it runs, and no node reaches it. */
export const MANNERS = ['killed', 'frozen', 'cut off'] as const

// Some of these are longer than a caller waits for a response (5 s), and than a statement may take (3 to 4 s).
const NOTICED_MS = [500, 7_000] as const
const CALM_MS = [1_500, 4_000] as const
const TIMEOUT_MS = 60_000

export async function failOver({ pair, address }: Cluster, manner: Failover['manner'], random: Random, probes: Probes): Promise<Failover> {
  const [calmMs, noticedMs] = [between(random, ...CALM_MS), between(random, ...NOTICED_MS)]
  await sleep(calmMs)
  const old = pair.primary()
  say(`the primary is ${manner}, which is noticed after ${seconds(noticedMs)}`)
  if (manner === 'killed') await killPostmaster(old)
  else if (manner === 'frozen') freezeAll(old.process.pid)
  else address.break('black-holed')
  await sleep(noticedMs)

  // No node reaches the old primary any more before there is another.
  address.break('cut')
  const lastBefore = accepted(probes.done).at(-1)?.respondedAt ?? Number.NaN
  const closedAt = Date.now()
  await pair.promote()
  await address.openTo(pair.primary().place.dir)
  const openedAt = Date.now()
  const isAfter = ({ respondedAt }: { respondedAt: number }) => respondedAt > closedAt
  const first = await until('a message is accepted', () => accepted(probes.done).find(isAfter), TIMEOUT_MS)
  const [withoutServiceMs, resumedMs] = [first.respondedAt - lastBefore, first.respondedAt - openedAt]
  say(`the standby was promoted within ${seconds(openedAt - closedAt)}; no message was accepted for ${seconds(withoutServiceMs)}`)

  const comeback = manner === 'killed' ? undefined : await watchComeback(old, probes)
  await kill(old)
  await pair.addStandby()
  return { manner, withoutServiceMs, resumedMs, comeback }
}

const MORE = 20
const OURS = `application_name like 'herald%'`

/** The old primary is back, and does not know that there is another. Watched until that one has accepted 20 messages more. */
async function watchComeback({ place, process: { pid } }: PostgresServer, probes: Probes): Promise<Comeback> {
  thawAll(pid)
  const readIds = async () => new Set<string>((await ask(place, 'select id from messages')).map(({ id }) => id))
  // Sessions end, except those whose commit waits for a standby that no longer follows, and those that wait for their locks.
  const others = `${OURS} and wait_event is distinct from 'SyncRep' and wait_event_type is distinct from 'Lock'`
  const areGone = async () => (await ask(place, `select from pg_stat_activity where ${others}`)).length === 0
  await until('only commits that wait are left at the old primary', areGone, TIMEOUT_MS)
  const [{ waiting, now }] = await ask(place, `select count(*)::int as waiting, now()::text as now from pg_stat_activity where ${OURS}`)
  const visible = await readIds()
  const count = accepted(probes.done).length
  await until('the new primary has accepted more', () => accepted(probes.done).length >= count + MORE, TIMEOUT_MS)
  const newMessages = (await readIds()).size - visible.size
  const newConnections = (await ask(place, `select from pg_stat_activity where ${OURS} and backend_start > '${now}'`)).length
  say(`the old primary is back: ${waiting} commits wait there for ever, ${newConnections} nodes connected to it since`)
  return { visible, lateWrites: waiting, newConnections, newMessages }
}
