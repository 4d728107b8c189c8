import { once as onceEmitted } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { headOf } from '../load/connections.ts'
import { createVictim, PER_SECOND, type Sample } from '../load/victim.ts'
import { atMost, labelled, once, percentile, ratioAtMost } from '../measure/figures.ts'
import { type MemoryUse, watchMemory } from '../measure/process-usage.ts'
import type { Bench } from '../part.ts'
import type { Order, Outcome } from '../peers/attacker.ts'
import { type Account, createSendersBy } from '../setup/accounts.ts'
import type { Server } from '../setup/checkouts.ts'
import { type HeraldProcess, startHerald, startPeer } from '../setup/processes.ts'

// What another account notices of an attack, and how much memory the attack takes. The service has all roles in one process, the embedded
// database and the default limits. Every attacker stays within the limits of each of its addresses.

const P99_TARGET = ratioAtMost(3)
const MEMORY_TARGET = atMost(300)
const FAILURES_TARGET = atMost(0)
const MB = 1_000_000
// What the service frees after an attack still counts for the attack.
const SETTLE_MS = 3_000
const DEFAULT_LIMITS = { HERALD_LIMIT_MESSAGES_PER_SECOND: '', HERALD_LIMIT_EVENTS_PER_SECOND: '', HERALD_LIMIT_OTHERS_PER_MINUTE: '' }

export async function measureAttacks(bench: Bench): Promise<void> {
  for (const attack of ATTACKS) for (const server of bench.servers) await measureAttack(bench, attack, server)
}

type Attack = {
  what: string
  seconds: number
  quickSeconds: number
  prepare?: (bench: Bench, herald: HeraldProcess, attacker: Account) => Promise<void>
  order: (attacker: Account) => Omit<Order, 'port' | 'seconds'>
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
  order: ({ authorization: Authorization }) => ({
    addresses: addresses(1),
    perSecond: 35,
    heads: [headOf('POST', '/v1/messages', { Authorization, 'Idempotency-Key': 'attack', Connection: 'close' })],
    body: 'names',
    isUnread: false,
  }),
}

// As much in a minute as one address may request in ten.
const UNREAD_ADDRESSES = 10
const UNREAD: Attack = {
  what: `unread pages of templates, 29 a minute from each of ${UNREAD_ADDRESSES} addresses`,
  seconds: 60,
  quickSeconds: 5,
  prepare: fillTemplates,
  order: ({ authorization: Authorization }) => ({
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

async function measureAttack(
  bench: Bench,
  { what, quickSeconds, prepare, order, ...attack }: Attack,
  { checkout, label }: Server,
): Promise<void> {
  const seconds = bench.quick ? quickSeconds : attack.seconds
  const herald = await startHerald([], DEFAULT_LIMITS, { checkout })
  const [account, attackerAccount] = (await createSendersBy(checkout, { HERALD_DATA_DIR: herald.dataDir }, 2)) as [Account, Account]
  await prepare?.(bench, herald, attackerAccount)
  const attacker = await startPeer('attacker')
  const port = Number(new URL(herald.url).port)
  const victim = createVictim(port, account)
  await victim.warmUp()
  const alone = await victim.send(seconds)
  const endWatching = watchMemory(herald.child)
  const ended = onceEmitted(attacker.child, 'message') as Promise<[{ outcome: Outcome }]>
  attacker.child.send({ ...order(attackerAccount), port, seconds } satisfies Order)
  const attacked = await victim.send(seconds)
  const [{ outcome }] = await ended
  await sleep(SETTLE_MS)
  const memory = endWatching()
  await attacker.stop()
  await herald.stop()
  const { sent, skipped, responses } = outcome
  bench.say(`${labelled(label, what)}: the attacker sent ${sent}, skipped ${skipped}: ${JSON.stringify(responses)}`)
  reportTimes(bench, labelled(label, what), alone, attacked)
  reportMemory(bench, labelled(label, what), memory)
}

function reportTimes({ report, say }: Bench, what: string, alone: Sample[], attacked: Sample[]): void {
  const at = (samples: Sample[], share: number) =>
    once(
      percentile(
        samples.map(({ tookMs }) => tookMs),
        share,
      ),
    )
  for (const [name, share] of Object.entries({ '50 %': 0.5, '99 %': 0.99, longest: 1 })) {
    const limit = { what: 'without', ...at(alone, share) }
    report({ what: `${what}: ${name}`, unit: 'ms', measured: at(attacked, share), limit, target: share === 0.99 ? P99_TARGET : undefined })
  }
  const failed = (samples: Sample[]) => samples.filter(({ status }) => status !== 202).length
  say(`of ${attacked.length} requests at ${PER_SECOND} a second ${failed(attacked)} failed, of ${alone.length} before ${failed(alone)}`)
  report({ what: `${what}: failed requests`, unit: '', measured: once(failed(attacked)), target: FAILURES_TARGET })
}

function reportMemory({ report }: Bench, what: string, { before, peak, after }: MemoryUse): void {
  report({ what: `${what}: growth of RSS at its peak`, unit: 'MB', measured: once((peak - before) / MB), target: MEMORY_TARGET })
  report({ what: `${what}: RSS after`, unit: 'MB', measured: once(after / MB), limit: { what: 'before', ...once(before / MB) } })
}

// 20 fill the page of 4 MiB that older versions sent (now 1 MiB), and one address may create them in a minute.
const TEMPLATES = 20

async function fillTemplates({ say }: Bench, { url }: HeraldProcess, { authorization }: Account): Promise<void> {
  const headers = { authorization, 'content-type': 'application/json' }
  for (let n = 0; n < TEMPLATES; n++) {
    const response = await fetch(`${url}/v1/templates`, { method: 'POST', headers, body: JSON.stringify(largestTemplate(n)) })
    if (response.status !== 201) throw new Error(`template ${n} was refused: ${await response.text()}`)
    await response.arrayBuffer()
  }
  const page = await (await fetch(`${url}/v1/templates?limit=200`, { headers })).arrayBuffer()
  say(`a page of templates has ${(page.byteLength / MB).toFixed(1)} MB`)
}

/** 252 KB as JSON: a carousel with all its buttons, each with the longest payload, of three bytes a character. */
function largestTemplate(number: number): object {
  const button = (id: string) => ({ id, type: 'quick_reply', text: 'Yes', payload: '\u20ac'.repeat(2_048) })
  const card = (n: number) => ({ title: `Card ${n}`, buttons: [0, 1, 2, 3].map((b) => button(`b${n}-${b}`)) })
  const message = { type: 'CAROUSEL', data: { cards: Array.from({ length: 10 }, (_, n) => card(n)) } }
  return { name: `Large ${number}`, message }
}
