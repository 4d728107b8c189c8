import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { joinEmbeddedServer } from '../../src/db/embedded/server.ts'
import { createPool } from '../../src/db/pool.ts'
import { callerAt, newKey } from '../../test/support/messages.ts'
import { createDataDir, type HeraldProcess, postmasterPid, startHerald } from '../../test/support/process.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import {
  assertDeliveredOnce,
  createRandom,
  endLeases,
  inParallel,
  isFull,
  nextRecipient,
  say,
  seconds,
  sendReceiptsTo,
  settingsFor,
  untilDelivered,
} from './support.ts'

const ROUNDS = isFull ? 20 : 2
const REQUESTS = 40
const RESUMED_WITHIN_MS = 15_000

type Sent = { key: string; body: Record<string, unknown>; messageId?: string }

const random = createRandom()
const simulator = await startSimulator()
const dataDir = await createDataDir()
const env: Record<string, string> = { ...(await settingsFor(simulator)), HERALD_DATA_DIR: dataDir }
const first = await startHerald(env, undefined, ['serve'])
env.HERALD_PORT = new URL(first.url).port
await sendReceiptsTo(simulator, first.url)
const { accountId, integrationKey, secret, authorization } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'))
const caller = callerAt(first.url, { accountId, integrationKey, secret, authorization, agentId: 'demo-single' })

/** PostgreSQL is killed, and in every other round the service with it, once so many were answered. */
async function sendAndKill(service: HeraldProcess, answersBeforeTheKill: number, isServiceKilled: boolean): Promise<Sent[]> {
  const all: Sent[] = Array.from({ length: REQUESTS }, () => ({ key: newKey(), body: caller.request({ recipient: nextRecipient() }) }))
  let answers = 0
  await inParallel(all, 4, async (one) => {
    const answer = await caller.send(one.key, one.body).catch(() => undefined)
    if (answer === undefined || answer.status === 503) return
    assert.equal(answer.status, 202)
    one.messageId = answer.body.messageId
    answers += 1
    if (answers !== answersBeforeTheKill) return
    process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
    if (isServiceKilled) service.child.kill('SIGKILL')
  })
  return all
}

test(`kill -9 of PostgreSQL, ${ROUNDS} rounds: what was answered survives, is delivered once, and all goes on by itself`, async () => {
  let service = first
  const all: Sent[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    const isServiceKilled = round % 2 === 0
    const sent = await sendAndKill(service, 1 + Math.floor((random() * REQUESTS) / 2), isServiceKilled)
    const killedAt = performance.now()
    if (isServiceKilled) {
      await service.ended
      service = await startHerald(env, undefined, ['serve'])
    }
    const cutOff = sent.filter(({ messageId }) => messageId === undefined)
    let kept = 0
    await inParallel(cutOff, 4, async (one) => {
      const { body, headers } = await until('the database is back', async () => {
        const answer = await caller.send(one.key, one.body)
        assert.ok([202, 503].includes(answer.status), `answered with ${answer.status}`)
        return answer.status === 202 ? answer : undefined
      })
      one.messageId = body.messageId
      if (headers.get('Idempotent-Replayed') === 'true') kept += 1
    })
    const tookMs = performance.now() - killedAt
    const what = isServiceKilled ? 'PostgreSQL and the service' : 'PostgreSQL'
    say(
      `${what} killed: ${sent.length - cutOff.length} answered, ${cutOff.length} not, of those ${kept} kept; back after ${seconds(tookMs)}`,
    )
    assert.ok(tookMs < RESUMED_WITHIN_MS)
    all.push(...sent)
  }
  const server = await joinEmbeddedServer(dataDir, false, () => {})
  const pool = createPool(server.connection, () => {})
  after(async () => {
    await pool.end()
    await server.leave()
  })
  if (!isFull) await endLeases(pool)
  await untilDelivered(pool, 60_000)
  const ids = all.map(({ messageId }) => messageId as string)
  const { repeated } = await assertDeliveredOnce({ pool, simulator }, caller, ids)
  say(`${ids.length} messages, each delivered once; the network was handed ${repeated} again`)
})
