import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { say, seconds } from '../progress.ts'
import type { Asked } from '../storm/asked.ts'
import { isReady } from '../storm/nodes.ts'
import { accepted, askFor, type Beat, newMessage, type Pulse } from './pulse.ts'
import { ask, freeze, type PostgresServer, thaw } from './server.ts'
import type { World } from './world.ts'

// The standby hangs: nothing may be answered with 202 that it does not have. And an address that leads to the standby by mistake.

/** `beats`: what was asked and answered while it hung. */
export type Away = { beats: Beat[]; resumedMs: number }

// Longer than a caller waits for an answer.
const AWAY_MS = 6_000

/** Under load. */
export async function hangStandby({ pair }: World, pulse: Pulse): Promise<Away> {
  freeze(pair.standby())
  const frozenAt = performance.now()
  say(`the standby hangs for ${seconds(AWAY_MS)}`)
  await sleep(AWAY_MS)
  const beats = pulse.beats.filter(({ sentAt }) => sentAt > frozenAt)
  thaw(pair.standby())
  const { resumedMs } = await untilAccepted(pulse)
  say(`the standby goes on: ${beats.length} requests meanwhile, ${accepted(beats).length} accepted; accepting after ${seconds(resumedMs)}`)
  return { beats, resumedMs }
}

/** From now on. */
async function untilAccepted({ beats }: Pulse): Promise<{ resumedMs: number }> {
  const from = performance.now()
  const { answeredAt } = await until('a message is accepted', () => accepted(beats).find(({ sentAt }) => sentAt > from))
  return { resumedMs: answeredAt - from }
}

/** `wasOnPrimary`: it had the message when it was back. `isOnStandby`: that had it, too, once it was accepted. */
export type Unconfirmed = { meanwhile: Beat[]; wasOnPrimary: boolean; isOnStandby: boolean }

const TRIES = 2

/**
 * The primary has committed a message that its standby has not, and nobody was answered; then it dies and starts again, and shows it. Whoever
 * repeats the request now must not be told that it was accepted: the standby still knows nothing of it.
 *
 * When nobody else asks for anything: together with something new, it would be waited for in any case.
 */
export async function crashWhileAlone({ pair, caller }: World, asked: Asked): Promise<Unconfirmed> {
  const [nodeUrl = ''] = caller.nodeUrls()
  const one = newMessage(asked, caller)
  const meanwhile: Beat[] = []
  const tryOnce = () => askFor(asked, caller, one, nodeUrl)
  freeze(pair.standby())
  meanwhile.push(await tryOnce())
  await pair.crashPrimary()
  const wasOnPrimary = (await ask(pair.primary().place, `select from idempotency_keys where key = '${one.key}'`)).length === 1
  for (let n = 0; n < TRIES; n++) meanwhile.push(await tryOnce())
  thaw(pair.standby())
  const { messageId } = await until('it is accepted', async () => {
    const beat = await tryOnce()
    return beat.status === 202 ? beat : undefined
  })
  say(`a primary that had a message before its standby accepted it ${accepted(meanwhile).length} times before that had it`)
  return { meanwhile, wasOnPrimary, isOnStandby: await isSeenAt(pair.standby(), messageId as string) }
}

const APPLIED_WITHIN_MS = 5_000

/** It has it on its disk when it is answered, and shows it a moment later. */
async function isSeenAt({ place }: PostgresServer, messageId: string): Promise<boolean> {
  const look = async () => (await ask(place, `select from messages where id = '${messageId}'`)).length === 1
  return await until('the standby shows it', look, APPLIED_WITHIN_MS).catch(() => false)
}

/** `beats`: what was asked meanwhile. `ready`: nodes that said they could serve. `resumedMs`: from when on there was the primary again. */
export type Misled = { beats: Beat[]; ready: string[]; resumedMs: number }

const MISLED_MS = 2_000

export async function misleadAddress({ pair, address, nodes }: World, pulse: Pulse): Promise<Misled> {
  address.close()
  await address.openTo(pair.standby().place)
  const from = performance.now()
  say('the address leads to the standby')
  await sleep(MISLED_MS)
  const answers = await Promise.all(nodes.map(async (node) => ((await isReady(node)) ? [node.name] : [])))
  const beats = pulse.beats.filter(({ sentAt }) => sentAt > from)
  // What is connected to the standby is not cut off, as with an address that is a name.
  await address.openTo(pair.primary().place)
  const { resumedMs } = await untilAccepted(pulse)
  say(`the address leads to the primary again: ${beats.length} requests meanwhile; accepting after ${seconds(resumedMs)}`)
  return { beats, ready: answers.flat(), resumedMs }
}
