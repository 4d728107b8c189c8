import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable } from '../../../src/db/pool.ts'
import { until } from '../../../test/support/until.ts'
import { LEASE_CHANGES } from '../../history/leases.ts'
import { type Caller, persist } from '../../load/caller.ts'
import { newMessage, sendTo } from '../../load/probes.ts'
import { MESSAGE, type Requested, type RequestedMessage, recordResponse } from '../../load/requested.ts'
import type { Run } from '../../run.ts'
import { during } from '../../schedule/faults.ts'
import { inParallel } from '../../support/in-parallel.ts'
import type { Random } from '../../support/random.ts'
import type { DatabaseServer } from '../../topology/database.ts'
import type { Node } from '../../topology/node.ts'
import type { Address } from '../../topology/proxy.ts'

// What the scripted cases share: a run, and faults at chosen instants.

export type Crash = Run & {
  random: Random
  /** With --full: as many faults as the promises need, and leases that expire by themselves. */
  isFull: boolean
  database: DatabaseServer
  address: Address
  /** The first account. */
  caller: Caller
  requested: Requested
}

/** `isQuiet`: it runs before the load begins. */
export type Case = { name: string; does: string; isQuiet?: boolean; run: (crash: Crash) => Promise<void> }

// How long a condition may take on a busy machine; leases of SMS, which --full waits for, end after 93 s at most.
export const TIMEOUT_MS = 180_000
/** The nodes that deliver. */
export const DELIVERING = ['delivery-1', 'delivery-2', 'api-2']

export function nodeOf({ nodes }: Pick<Run, 'nodes'>, name: string): Node {
  return nodes.find((node) => node.name === name) as Node
}

/** Kills nodes and starts them again after `work`. By then the database has ended their sessions: a claim may be committed after the kill. */
export async function whileKilled(crash: Crash, names: string[], work: () => Promise<unknown> = async () => {}): Promise<void> {
  const [first, ...rest] = names
  if (first === undefined) return void (await work())
  const node = nodeOf(crash, first)
  await during(crash.faults, first, 'killed', async () => {
    await node.kill()
    await untilDisconnected(crash, first)
    await whileKilled(crash, rest, work)
    if (!node.isRunning()) await node.start()
  })
}

async function untilDisconnected({ checkPool }: Crash, name: string): Promise<void> {
  const sessions = 'select from pg_stat_activity where application_name = $1'
  const isGone = async () => (await checkPool.query(sessions, [`herald-${name}`])).rowCount === 0
  await until(`the database has ended the sessions of ${name}`, () => unlessUnavailable(isGone), TIMEOUT_MS)
}

/** Undefined while the database is away. */
export async function unlessUnavailable<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return undefined
  }
}

const LEASES = { queue: 'leased_until', sms_queue: 'due_at' }

/**
 * Ends the leases of nodes that were killed or frozen, and returns how many they held. With --full they expire by themselves. An SMS of a
 * node that runs must not be named: its outcome would be unknown without a fault.
 */
export async function endLeases({ checkPool, isFull }: Crash, names: string[], queues: (keyof typeof LEASES)[]): Promise<number> {
  const theirs = `lease in (select lease from ${LEASE_CHANGES} where by = any ($1))`
  const values = [names.map((name) => `herald-${name}`)]
  let count = 0
  for (const queue of queues) {
    const column = LEASES[queue]
    const condition = `${column} > now() and ${theirs}`
    const statement = `update ${queue} set ${column} = now() - interval '1 minute' where ${condition}`
    count += (await checkPool.query(isFull ? `select from ${queue} where ${condition}` : statement, values)).rowCount ?? 0
  }
  return count
}

export async function countRows({ checkPool }: Crash, from: string, values: unknown[] = []): Promise<number> {
  return (await checkPool.query<{ count: number }>(`select count(*) as count from ${from}`, values)).rows[0]?.count ?? 0
}

/** All messages have their final status. */
export async function untilDelivered(crash: Crash): Promise<void> {
  const open = `messages where status in ('ACCEPTED', 'SENT') or status = 'DELIVERED' and right(recipient, 2) not in ('01', '09')`
  const isDelivered = async () => (await countRows(crash, 'queue')) + (await countRows(crash, open)) === 0
  await until('all messages are delivered', isDelivered, TIMEOUT_MS)
}

const SPREAD_MS = 8

/**
 * Sends messages, `width` at a time, and acts the instant that so many are accepted. Some are then committed, some are in a batch, and some
 * are under way. Returns those without a response.
 */
export async function burst(
  crash: Crash,
  nodeUrl: string,
  { count, width = count, actAt = 1 + Math.floor((crash.random() * count) / 2) }: { count: number; width?: number; actAt?: number },
  act: () => void = () => {},
): Promise<RequestedMessage[]> {
  const { requested, caller, random } = crash
  const all = Array.from({ length: count }, () => newMessage(requested, caller))
  let accepted = 0
  await inParallel(all, width, async (one) => {
    await sleep(random() * SPREAD_MS)
    const { status } = await sendTo(requested, caller, one, nodeUrl)
    if (status === 202) accepted += 1
    if (status === 202 && accepted === actAt) act()
  })
  // On a machine without a free processor, fewer may be accepted in time.
  if (accepted < actAt) act()
  return all.filter(({ outcome }) => outcome === 'unanswered')
}

/** Repeats requests until all of them are accepted. */
export async function repeatUntilAccepted({ requested, caller }: Crash, all: RequestedMessage[]): Promise<void> {
  async function repeat(one: RequestedMessage): Promise<void> {
    const request = { method: 'POST', path: '/messages', key: one.key, body: one.body } as const
    await persist(caller, request, (response) => recordResponse(requested, one, response, MESSAGE))
    assert.equal(one.outcome, 'accepted', `${one.key} is not accepted`)
  }
  await Promise.all(all.map(repeat))
}
