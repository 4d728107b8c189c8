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
const worker = await startNode(env, 'delivery')
await sendReceiptsTo(simulator, worker.url)

const all: Sent[] = []

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

/** From now on, a process that also delivers sends messages of this agent at once. */
async function sendOne(caller: MessageCaller): Promise<Sent> {
  const one: Sent = { key: newKey(), body: caller.request({ recipient: nextRecipient() }) }
  await retry(caller, one)
  await untilDelivered(pool, 60_000)
  return one
}

for (const [roles, who] of [
  ['api', 'the API'],
  ['api,delivery', 'a process that accepts and sends'],
] as const) {
  test(`kill -9 of ${who} right after an answer, ${ROUNDS} rounds: every answered message is delivered, every retry finds its first try`, async () => {
    let api = await startNode(env, roles)
    // Callers find it where it was.
    const port = new URL(api.url).port
    const caller = scene.callerAt(api.url)
    const counts = { answered: 0, cutOff: 0, cutOffAfterCommit: 0, leased: 0 }
    for (let round = 1; round <= ROUNDS; round++) {
      all.push(await sendOne(caller))
      const sent = await sendAndKill(caller, api, 1 + Math.floor((random() * REQUESTS) / 2))
      all.push(...sent)
      counts.leased += await endLeases(pool)
      api = await startNode({ ...env, HERALD_PORT: port }, roles)
      const cutOff = sent.filter(({ messageId }) => messageId === undefined)
      counts.answered += sent.length - cutOff.length
      counts.cutOff += cutOff.length
      await inParallel(cutOff, REQUESTS, async (one) => {
        if (await retry(caller, one)) counts.cutOffAfterCommit += 1
      })
      if (round % 20 === 0 || round === ROUNDS) {
        const { answered, ...unanswered } = counts
        say(
          `${round} kills: ${answered} answered, ${unanswered.cutOff} cut off, of those ${unanswered.cutOffAfterCommit} after their commit`,
        )
      }
    }
    const waitedMs = await untilDelivered(pool, 60_000)
    say(`all delivered ${Math.round(waitedMs)} ms after the last kill was mended; ${counts.leased} were leased to a killed process`)
    const ids = all.map(({ messageId }) => messageId as string)
    await inParallel(all, REQUESTS, async (one) => {
      const { messageId } = one
      assert.ok(await retry(caller, one), 'a key that was accepted is not replayed')
      assert.equal(one.messageId, messageId)
    })
    const { repeated } = await assertDeliveredOnce(scene, caller, ids)
    say(`${ids.length} keys, ${ids.length} messages, each delivered once; the network was handed ${repeated} again`)
    await kill(api)
  })
}
