import { once as onceEmitted } from 'node:events'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Order, Outcome } from './attack-peer.ts'
import { fillTemplates, headOf, type Scene, setScene } from './attack-scene.ts'
import { createVictim, PER_SECOND, type Sample } from './attack-victim.ts'
import { once, type Report } from './lines.ts'
import { commitOf } from './machine.ts'
import { percentile, say } from './measure.ts'
import { residentBytes } from './proc.ts'
import { startPeer } from './processes.ts'

// What another account notices of an attack, and what the attack leaves in memory. Every attacker stays within the default limits of each
// of its addresses; the victim sends 50 messages a second, first alone and then during the attack, to the same process.

const MAX_RATIO = 3
const MAX_GROWTH_MB = 300
const MB = 1_000_000
const RSS_EVERY_MS = 200
// What the service still has to free after an attack belongs to the attack.
const SETTLE_MS = 3_000

type Attack = {
  what: string
  seconds: number
  quickSeconds: number
  prepare?: (scene: Scene) => Promise<unknown>
  order: (scene: Scene) => Omit<Order, 'port' | 'seconds'>
}

const addresses = (count: number) => Array.from({ length: count }, (_, n) => `127.0.${4 + Math.floor(n / 250)}.${(n % 250) + 1}`)

/** Every second request has a wrong signature, the others have none. */
function brackets(carrier: string, perSecond: number, addressCount: number): Attack {
  const path = `/carriers/${carrier}/webhook`
  const signature = { 'X-Goog-Signature': Buffer.alloc(64).toString('base64') }
  const heads = [headOf('POST', path, { ...signature, Connection: 'close' }), headOf('POST', path, { Connection: 'close' })]
  return {
    what: `1 MB of [ to ${path}, ${perSecond} a second from ${addressCount} ${addressCount === 1 ? 'address' : 'addresses'}`,
    seconds: 20,
    quickSeconds: 3,
    order: () => ({ addresses: addresses(addressCount), perSecond, heads, body: 'brackets', isUnread: false }),
  }
}

const NAMES: Attack = {
  what: '24,840 names in 248 kB to POST /v1/messages, 35 a second from 1 address',
  seconds: 20,
  quickSeconds: 3,
  order: ({ attacker: Authorization }) => ({
    addresses: addresses(1),
    perSecond: 35,
    heads: [headOf('POST', '/v1/messages', { Authorization, 'Idempotency-Key': 'attack', Connection: 'close' })],
    body: 'names',
    isUnread: false,
  }),
}

// As much in a minute as one address may ask for in ten.
const UNREAD_ADDRESSES = 10
const UNREAD: Attack = {
  what: `unread pages of templates, 29 a minute from each of ${UNREAD_ADDRESSES} addresses`,
  seconds: 60,
  quickSeconds: 5,
  prepare: async (scene) => say(`attacks: a page of templates has ${((await fillTemplates(scene)) / MB).toFixed(1)} MB`),
  order: ({ attacker: Authorization }) => ({
    addresses: addresses(UNREAD_ADDRESSES),
    perSecond: (29 * UNREAD_ADDRESSES) / 60,
    heads: [headOf('GET', '/v1/templates?limit=200', { Authorization })],
    body: 'none',
    isUnread: true,
  }),
}

const ATTACKS = [
  brackets('simulator', 6, 1),
  brackets('simulator', 50, 1),
  brackets('simulator', 50, 50),
  brackets('unknown', 50, 50),
  NAMES,
  UNREAD,
]

/** `checkouts`: directories of the Heralds to measure, each attack on one after the other; this one where none is named. */
export async function measureAttacks(quick: boolean, report: Report, checkouts: string[]): Promise<void> {
  const measured = checkouts.length === 0 ? [dirname(import.meta.dirname)] : checkouts
  for (const attack of ATTACKS) {
    for (const checkout of measured) {
      const label = checkouts.length > 0 ? `${commitOf(checkout)}: ` : ''
      await measureAttack(attack, { checkout, label, seconds: quick ? attack.quickSeconds : attack.seconds, report })
    }
  }
}

type Run = { checkout: string; label: string; seconds: number; report: Report }

async function measureAttack(attack: Attack, { checkout, label, seconds, report }: Run): Promise<void> {
  const scene = await setScene(checkout)
  await attack.prepare?.(scene)
  const attacker = await startPeer('attack-peer.ts')
  const victim = createVictim({ port: scene.port, account: scene.victim })
  await victim.warmUp()
  const alone = await victim.send(seconds)
  const before = residentBytes(scene.pid, 'VmRSS')
  const peak = watchPeak(scene.pid)
  const ended = onceEmitted(attacker.child, 'message') as Promise<[{ outcome: Outcome }]>
  attacker.child.send({ ...attack.order(scene), port: scene.port, seconds } satisfies Order)
  const attacked = await victim.send(seconds)
  const [{ outcome }] = await ended
  await sleep(SETTLE_MS)
  const rss = { before, most: peak(), after: residentBytes(scene.pid, 'VmRSS') }
  victim.close()
  await attacker.stop()
  await scene.stop()
  say(
    `attacks: ${label}${attack.what}: the attacker sent ${outcome.sent}, skipped ${outcome.skipped}: ${JSON.stringify(outcome.responses)}`,
  )
  reportTimes(report, `${label}${attack.what}`, alone, attacked)
  reportMemory(report, `${label}${attack.what}`, rss)
}

/** Watches the resident memory. The function that it returns ends that, and returns the highest value. */
function watchPeak(pid: number): () => number {
  let most = 0
  const look = () => {
    most = Math.max(most, residentBytes(pid, 'VmRSS'))
  }
  const timer = setInterval(look, RSS_EVERY_MS)
  return () => {
    clearInterval(timer)
    look()
    return most
  }
}

function reportTimes(report: Report, what: string, alone: Sample[], attacked: Sample[]): void {
  const part = 'attacks'
  const at = (samples: Sample[], share: number) => {
    const times = samples.map(({ tookMs }) => tookMs)
    return once(percentile(times, share))
  }
  const shares = [
    { share: 0.5, name: '50 %' },
    { share: 0.99, name: '99 %', target: { of: 'ratio', most: MAX_RATIO } as const },
    { share: 1, name: 'longest' },
  ]
  for (const { share, name, target } of shares) {
    const limit = { what: 'without', ...at(alone, share) }
    report({ part, what: `${what}: ${name}`, unit: 'ms', measured: at(attacked, share), limit, ...(target && { target }) })
  }
  const failed = (samples: Sample[]) => samples.filter(({ status }) => status !== 202).length
  say(
    `attacks: of ${attacked.length} requests at ${PER_SECOND} a second ${failed(attacked)} failed, of ${alone.length} before ${failed(alone)}`,
  )
  report({ part, what: `${what}: failed requests`, unit: '', measured: once(failed(attacked)), target: { of: 'measured', most: 0 } })
}

function reportMemory(report: Report, what: string, { before, most, after }: { before: number; most: number; after: number }): void {
  const growth = once((most - before) / MB)
  const target = { of: 'measured', most: MAX_GROWTH_MB } as const
  report({ part: 'attacks', what: `${what}: growth of RSS at its peak`, unit: 'MB', measured: growth, target })
  const limit = { what: 'before', ...once(before / MB) }
  report({ part: 'attacks', what: `${what}: RSS after`, unit: 'MB', measured: once(after / MB), limit })
}
