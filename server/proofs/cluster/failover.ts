import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { say, seconds } from '../progress.ts'
import { between, type Random } from '../random.ts'
import { accepted, type Pulse } from './pulse.ts'
import { ask, freeze, kill, killPostmaster, type PostgresServer, thaw } from './server.ts'
import type { World } from './world.ts'

/** How a primary goes. */
export type Manner =
  /** SIGKILL of its first process. */
  | 'killed'
  /** It hangs, and comes back when another is the primary. */
  | 'frozen'
  /** It lives, and nobody reaches it: a cable that is pulled. */
  | 'cut off'

export type Failover = {
  manner: Manner
  /** From the last 202 before it to the first one after it. */
  withoutServiceMs: number
  /** From the moment that the address led to the new primary. */
  resumedMs: number
  /** What the old one was seen to do, where it came back. */
  comeback: Comeback | undefined
}

/** `visible`: what it shows. `lateWrites`: what it was sent before, and can't commit any more. */
export type Comeback = { visible: Set<string>; lateWrites: number; newConnections: number; newMessages: number }

export const MANNERS: readonly Manner[] = ['killed', 'frozen', 'cut off']

// Some of these are longer than callers wait for an answer (5 s), and than a statement is waited for (3 to 4 s).
const NOTICED_MS = [500, 7_000] as const
const CALM_MS = [1_500, 4_000] as const

export async function failOver(world: World, manner: Manner, random: Random, pulse: Pulse): Promise<Failover> {
  const { pair, address } = world
  const [calmMs, noticedMs] = [between(random, ...CALM_MS), between(random, ...NOTICED_MS)]
  await sleep(calmMs)
  const old = pair.primary()
  say(`the primary is ${manner}, which is noticed after ${seconds(noticedMs)}`)
  if (manner === 'killed') await killPostmaster(old)
  else if (manner === 'frozen') freeze(old)
  else address.blackHole()
  await sleep(noticedMs)

  // Before there is another primary, nobody reaches the old one any more.
  address.close()
  const lastBefore = accepted(pulse.beats).at(-1)?.answeredAt ?? Number.NaN
  const closedAt = performance.now()
  await pair.promote()
  await address.openTo(pair.primary().place)
  const openedAt = performance.now()
  const first = await until('a message is accepted', () => accepted(pulse.beats).find(({ answeredAt }) => answeredAt > closedAt))
  const [withoutServiceMs, resumedMs] = [first.answeredAt - lastBefore, first.answeredAt - openedAt]
  say(`the standby was promoted within ${seconds(openedAt - closedAt)}; no message was accepted for ${seconds(withoutServiceMs)}`)

  const comeback = manner === 'killed' ? undefined : await watchComeback(old, pulse)
  await kill(old)
  await pair.addStandby()
  say('the new primary has a standby')
  return { manner, withoutServiceMs, resumedMs, comeback }
}

const MORE = 20
const OURS = `application_name like 'herald%'`

/** The old primary is there again, and does not know that there is another. Watched until that one has accepted some more. */
async function watchComeback(old: PostgresServer, pulse: Pulse): Promise<Comeback> {
  thaw(old)
  // Whoever was connected is gone, but for those whose commit waits for a standby that follows it no more, and those who wait for them.
  await until('only commits that wait are left there', async () => {
    const [{ others }] = await ask(
      old.place,
      `select count(*)::int as others from pg_stat_activity where ${OURS} and wait_event is distinct from 'SyncRep' and wait_event_type is distinct from 'Lock'`,
    )
    return others === 0
  })
  const [{ waiting, now }] = await ask(old.place, `select count(*)::int as waiting, now()::text as now from pg_stat_activity where ${OURS}`)
  const visible = await readMessages(old)
  const count = accepted(pulse.beats).length
  await until('the new primary has accepted more', () => accepted(pulse.beats).length >= count + MORE)
  const later = await readMessages(old)
  const [{ since }] = await ask(old.place, `select count(*)::int as since from pg_stat_activity where ${OURS} and backend_start > '${now}'`)
  say(`the old primary is back: ${waiting} late changes wait there for ever, ${since} nodes came to it since`)
  return { visible, lateWrites: waiting, newConnections: since, newMessages: later.size - visible.size }
}

async function readMessages({ place }: PostgresServer): Promise<Set<string>> {
  const rows = await ask(place, 'select id from messages')
  return new Set(rows.map(({ id }) => id))
}
