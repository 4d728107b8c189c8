import { setTimeout as sleep } from 'node:timers/promises'
import { say, seconds } from '../progress.ts'
import { between, oneOf, type Random } from '../random.ts'
import type { Asked } from '../storm/asked.ts'
import type { Node } from '../storm/nodes.ts'
import { type Beat, type Pulse, startPulse } from './pulse.ts'
import { noteShare, type Shares } from './shares.ts'
import type { World } from './world.ts'

// What befalls nodes: they are stopped in order and started again, one after the other, as for an upgrade; and one of each role is killed.

/** `beats`: what was asked of an API node meanwhile, and of no other. */
export type Stop = { node: string; tookMs: number; beats: Beat[] }

/** Notes what is done to a node, while it is. */
export type Note = <T>(victim: string, manner: string, work: () => Promise<T>) => Promise<T>

const BEAT_EVERY_MS = 10
const BEFORE_MS = 300
const GONE_MS = 3_000

export async function restartInTurn({ nodes, caller }: World, asked: Asked, shares: Shares, note: Note): Promise<Stop[]> {
  const stops: Stop[] = []
  for (const node of nodes) {
    const pulse = node.role === 'api' ? startPulse(asked, { ...caller, nodeUrls: () => [node.url] }, BEAT_EVERY_MS) : undefined
    // So that it has something under way.
    await sleep(BEFORE_MS)
    await noteShare(shares, node)
    const { tookMs, beats } = await note(node.name, 'stopped', () => restart(node, pulse))
    say(`${node.name} was stopped in order, within ${seconds(tookMs)}, and started again`)
    stops.push({ node: node.name, tookMs, beats })
  }
  return stops
}

async function restart(node: Node, pulse: Pulse | undefined): Promise<Omit<Stop, 'node'>> {
  const from = performance.now()
  await node.stop()
  const tookMs = performance.now() - from
  const beats = (await pulse?.stop()) ?? []
  await node.start()
  return { tookMs, beats }
}

export async function killOneOfEach({ nodes }: World, random: Random, shares: Shares, note: Note): Promise<void> {
  const victims = [...Map.groupBy(nodes, ({ role }) => role).values()].map((ofRole) => oneOf(random, ofRole))
  const plan = victims.map((node) => ({ node, goneMs: between(random, 0, GONE_MS) }))
  for (const { node, goneMs } of plan) await note(node.name, 'killed', () => killAndStart(node, goneMs, shares))
}

async function killAndStart(node: Node, goneMs: number, shares: Shares): Promise<void> {
  await noteShare(shares, node)
  say(`${node.name} is killed, for ${seconds(goneMs)}`)
  await node.kill()
  await sleep(goneMs)
  await node.start()
}
