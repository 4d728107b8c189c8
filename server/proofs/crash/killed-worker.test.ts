import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newKey } from '../../test/support/messages.ts'
import { until } from '../../test/support/until.ts'
import {
  assertDeliveredOnce,
  countUnsettled,
  createRandom,
  endLeases,
  inParallel,
  isFull,
  kill,
  nextRecipient,
  say,
  seconds,
  sendReceiptsTo,
  setScene,
  startNode,
} from './support.ts'

const MESSAGES = isFull ? 5_000 : 500
// An account gets half of the connections: some 300 messages a second in the full run, so that a worker is killed many times before all
// are out.
const CONNECTIONS = isFull ? 32 : 128
const CALL_MS = 50
// From its first claim on.
const LONGEST_LIFE_MS = 300
// While all that is left is leased to workers that are dead, there is nothing to claim.
const CLAIM_TIMEOUT_MS = 1_500
// Half of the receipts come after the lease has ended. Otherwise a receipt would settle what a killed worker had sent, and hardly any
// message would be handed to the network again.
const LATE_MS = isFull ? 35_000 : 4_000
const TIMEOUT_MS = isFull ? 600_000 : 120_000

const random = createRandom()
const scene = await setScene(CONNECTIONS)
const { env, pool, simulator } = scene
const api = await startNode(env, 'api')
const caller = scene.callerAt(api.url)
await sendReceiptsTo(simulator, api.url)
const latency = { rate: 1, ms: CALL_MS }
await simulator.ask('faults', { api: { latency }, webhooks: { late: { rate: 0.5, ms: LATE_MS } } }, 'PUT')
const ids: string[] = []

async function acceptAll(): Promise<void> {
  await inParallel(Array(MESSAGES).keys(), 20, async () => {
    const { body } = await caller.send(newKey(), caller.request({ recipient: nextRecipient() }))
    ids.push(body.messageId)
  })
}

async function readLeases(): Promise<Set<string>> {
  const { rows } = await pool.query<{ lease: string }>('select distinct lease from queue where lease is not null')
  return new Set(rows.map(({ lease }) => lease))
}

/** A worker that lives until it is in the midst of something. */
async function liveAndDie(): Promise<void> {
  const before = await readLeases()
  const worker = await startNode(env, 'delivery')
  const deadline = performance.now() + CLAIM_TIMEOUT_MS
  await until('it has claimed something', async () => {
    return performance.now() > deadline || [...(await readLeases())].some((lease) => !before.has(lease))
  })
  await sleep(random() * LONGEST_LIFE_MS)
  await kill(worker)
}

/** Starts workers and kills them, one after the other, until nothing is left to send. */
async function killWorkersUntilAllIsOut(): Promise<void> {
  const from = performance.now()
  for (let kills = 1; performance.now() < from + TIMEOUT_MS; kills++) {
    await liveAndDie()
    // The full run waits until they end by themselves, 30 s after the claim.
    const held = isFull ? 0 : await endLeases(pool)
    const left = MESSAGES - ids.length + (await countUnsettled(pool))
    if (kills % 10 === 0 || held > 0 || left === 0) {
      say(`${kills} kills in ${seconds(performance.now() - from)}: ${left} left${held > 0 ? `, ${held} of them were being sent` : ''}`)
    }
    if (left === 0) return
  }
  throw new Error(`not all was sent within ${seconds(TIMEOUT_MS)}`)
}

test(`kill -9 of the worker in a loop while ${MESSAGES} messages go out: none is lost, none is sent twice`, async () => {
  await Promise.all([acceptAll(), killWorkersUntilAllIsOut()])
  const { repeated } = await assertDeliveredOnce(scene, caller, ids)
  say(`${ids.length} messages, each delivered once; the network was handed ${repeated} again, and ignored them`)
})
