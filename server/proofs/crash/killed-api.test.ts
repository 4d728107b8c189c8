import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type MessageCaller, newKey } from '../../test/support/messages.ts'
import {
  assertDeliveredOnce,
  createRandom,
  endLeases,
  inParallel,
  isFull,
  kill,
  type Node,
  nextRecipient,
  type Roles,
  say,
  sendReceiptsTo,
  setScene,
  startNode,
  untilDelivered,
} from './support.ts'

const ROUNDS = isFull ? 200 : 5
const REQUESTS = 16
// So that a round has requests in several batches: some committed and answered, some committed, some on their way, some not yet there.
const SPREAD_MS = 8

type Sent = { key: string; body: Record<string, unknown>; messageId?: string }

const random = createRandom()
const scene = await setScene()
const { env, pool, simulator } = scene
// Receives the receipts. It is never killed, so none is lost.
const receiver = await startNode(env, 'webhooks')
await sendReceiptsTo(simulator, receiver.url)

/** By both tests: the checks compare it with the whole database. */
const everySent: Sent[] = []

/** Sends at once; the process is killed the instant that so many were answered. Returns what was sent, with the ids that were answered. */
async function sendAndKill(caller: MessageCaller, api: Node, answersBeforeTheKill: number): Promise<Sent[]> {
  const all: Sent[] = Array.from({ length: REQUESTS }, () => ({ key: newKey(), body: caller.request({ recipient: nextRecipient() }) }))
  let answers = 0
  async function send(one: Sent): Promise<void> {
    await sleep(random() * SPREAD_MS)
    try {
      const { status, body } = await caller.send(one.key, one.body)
      assert.equal(status, 202)
      one.messageId = body.messageId
      answers += 1
      if (answers === answersBeforeTheKill) api.child.kill('SIGKILL')
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
    }
  }
  await Promise.all(all.map(send))
  await kill(api)
  return all
}

/** Says whether it had been accepted the first time, unknown to its caller. */
async function retry(at: MessageCaller, one: Sent): Promise<boolean> {
  const { status, body, headers } = await at.send(one.key, one.body)
  assert.equal(status, 202)
  one.messageId = body.messageId
  return headers.get('Idempotent-Replayed') === 'true'
}

/** Lets an `api,delivery` process learn that the agent belongs to its carrier: it claims this message, as no other process delivers. */
async function sendAndAwaitDelivery(caller: MessageCaller): Promise<Sent> {
  const one: Sent = { key: newKey(), body: caller.request({ recipient: nextRecipient() }) }
  await retry(caller, one)
  await untilDelivered(pool, 60_000)
  return one
}

/** Kills a process of these roles again and again, and tries again what it left unanswered. `onKilled`: before the next process starts. */
async function killInALoop(roles: Roles, onKilled: () => Promise<void>): Promise<{ api: Node; caller: MessageCaller }> {
  let api = await startNode(env, roles)
  // The restarted process keeps its port, so the caller's URL stays valid.
  const port = new URL(api.url).port
  const caller = scene.callerAt(api.url)
  const counts = { answered: 0, cutOff: 0, cutOffAfterCommit: 0 }
  for (let round = 1; round <= ROUNDS; round++) {
    everySent.push(await sendAndAwaitDelivery(caller))
    const sent = await sendAndKill(caller, api, 1 + Math.floor((random() * REQUESTS) / 2))
    everySent.push(...sent)
    await onKilled()
    api = await startNode({ ...env, HERALD_PORT: port }, roles)
    const cutOff = sent.filter(({ messageId }) => messageId === undefined)
    counts.answered += sent.length - cutOff.length
    counts.cutOff += cutOff.length
    await inParallel(cutOff, REQUESTS, async (one) => {
      if (await retry(caller, one)) counts.cutOffAfterCommit += 1
    })
    if (round % 20 === 0 || round === ROUNDS) {
      const { answered, cutOff, cutOffAfterCommit } = counts
      say(`${round} kills: ${answered} answered, ${cutOff} cut off, of those ${cutOffAfterCommit} after their commit`)
    }
  }
  return { api, caller }
}

/** Every message is delivered once, and every retry is replayed. */
async function assertAllDelivered(caller: MessageCaller): Promise<void> {
  const waitedMs = await untilDelivered(pool, 60_000)
  say(`all delivered ${Math.round(waitedMs)} ms after the last restart`)
  const ids = everySent.map(({ messageId }) => messageId as string)
  await inParallel(everySent, REQUESTS, async (one) => {
    const { messageId } = one
    assert.ok(await retry(caller, one), 'a key that was accepted is not replayed')
    assert.equal(one.messageId, messageId)
  })
  const { repeated } = await assertDeliveredOnce(scene, caller, ids)
  say(`${ids.length} keys, ${ids.length} messages, each delivered once; the network was handed ${repeated} again`)
}

test(`delivers every accepted message and replays every retry when the API is killed after a response (${ROUNDS} kills)`, async () => {
  const worker = await startNode(env, 'delivery')
  const { api, caller } = await killInALoop('api', async () => {})
  await assertAllDelivered(caller)
  await kill(api)
  await kill(worker)
})

test(`delivers every accepted message when a process that accepts and sends is killed after a response (${ROUNDS} kills)`, async () => {
  let leased = 0
  const { api, caller } = await killInALoop('api,delivery', async () => {
    leased += await endLeases(pool)
  })
  say(`${leased} messages were leased to a process when it was killed`)
  assert.ok(leased > 0)
  await assertAllDelivered(caller)
  await kill(api)
})
