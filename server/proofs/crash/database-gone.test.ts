import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newKey } from '../../test/support/messages.ts'
import { type Answer, call } from '../../test/support/service.ts'
import { until } from '../../test/support/until.ts'
import { breakableDatabase, type Outage } from './proxy.ts'
import {
  assertDeliveredOnce,
  endLeases,
  inParallel,
  isFull,
  nextRecipient,
  say,
  seconds,
  sendReceiptsTo,
  setScene,
  startNode,
  untilDelivered,
} from './support.ts'

// In the short run a black hole is longer than a caller may be kept waiting.
const OUTAGES = { cut: 3_000, refused: 3_000, 'black-holed': 6_000 } satisfies Record<Outage, number>
const FULL_OUTAGE_MS = 20_000
const BEFORE_MS = 1_000
const REQUEST_EVERY_MS = 20
const ANSWERED_WITHIN_MS = 5_000
const RESUMED_WITHIN_MS = 15_000

type Kind = 'send' | 'read' | 'probe'
type Asked = { kind: Kind; key?: string; body?: Record<string, unknown>; from: number; to: number; status: number; messageId?: string }

const scene = await setScene()
const { pool, simulator } = scene
const database = await breakableDatabase(scene.env.HERALD_DATABASE_URL as string)
const env = { ...scene.env, HERALD_DATABASE_URL: database.url }
const [api, worker] = await Promise.all([startNode(env, 'api'), startNode(env, 'delivery')])
const caller = scene.callerAt(api.url)
await sendReceiptsTo(simulator, api.url)
const ids: string[] = []

/** Requests of all kinds, one after the other without waiting for their answers, until stopped. */
function keepAsking() {
  const answered: Asked[] = []
  const pending = new Set<Promise<void>>()
  let isOver = false
  function ask(kind: Kind): void {
    const one: Asked = { kind, from: performance.now(), to: Number.POSITIVE_INFINITY, status: 0 }
    if (kind === 'send') Object.assign(one, { key: newKey(), body: caller.request({ recipient: nextRecipient() }) })
    const asking = answerTo(one).then(({ status, body }) => {
      Object.assign(one, { status, to: performance.now(), ...(kind === 'send' && { messageId: body.messageId }) })
      pending.delete(asking)
      answered.push(one)
    })
    pending.add(asking)
  }
  function answerTo({ kind, key, body }: Asked): Promise<Answer> {
    if (kind === 'probe') return call(`${api.url}/readyz`)
    return kind === 'send' ? caller.send(key as string, body) : caller.read(ids[0] as string)
  }
  async function run(): Promise<void> {
    for (let n = 0; !isOver; n++) {
      ask(n % 10 === 9 ? 'probe' : n % 3 === 2 ? 'read' : 'send')
      await sleep(REQUEST_EVERY_MS)
    }
    await Promise.all(pending)
  }
  const running = run()
  return {
    answered,
    /** Many within some milliseconds: some of them are in the midst of a statement when the next thing happens. */
    burst: async () => {
      for (let n = 0; n < 30; n++) {
        ask(n % 2 === 0 ? 'read' : 'send')
        if (n % 5 === 4) await new Promise(setImmediate)
      }
    },
    stop: async () => {
      isOver = true
      await running
      return answered
    },
  }
}

function assertAnswers(all: Asked[], away: { from: number; to: number }): void {
  for (const { kind, status, from, to } of all) {
    const tookMs = Math.round(to - from)
    const when = `${kind}, ${seconds(from - away.from)} after the database went away, answered with ${status} after ${tookMs} ms`
    assert.ok([kind === 'send' ? 202 : 200, 503].includes(status), when)
    assert.ok(tookMs < ANSWERED_WITHIN_MS, when)
    if (from > away.from && to < away.to) assert.equal(status, 503, when)
  }
  const during = all.filter(({ from, to }) => from > away.from && to < away.to)
  const slowest = all.reduce((one, other) => (other.to - other.from > one.to - one.from ? other : one))
  say(`${all.length} requests, ${during.length} of them while it was away: all of these answered 503`)
  say(`the slowest, to ${slowest.kind}, was answered ${slowest.status} after ${seconds(slowest.to - slowest.from)}`)
}

/** From when on messages that are sent now get through to their phones. */
async function untilItGoesOn(): Promise<{ acceptedAt: number; deliveredAt: number }> {
  const key = newKey()
  const body = caller.request({ recipient: nextRecipient() })
  const { messageId } = await until('a message is accepted', async () => {
    const answer = await caller.send(key, body)
    return answer.status === 202 && answer.body
  })
  ids.push(messageId)
  const acceptedAt = performance.now()
  await until('it is delivered', async () => ['DELIVERED', 'READ'].includes((await caller.read(messageId)).body.status))
  return { acceptedAt, deliveredAt: performance.now() }
}

for (const [outage, shortMs] of Object.entries(OUTAGES) as [Outage, number][]) {
  const awayMs = isFull ? FULL_OUTAGE_MS : shortMs
  test(`the database ${outage} for ${seconds(awayMs)}: 503 within 5 s, nothing lost, and all goes on by itself`, async () => {
    await untilItGoesOn()
    const asking = keepAsking()
    await sleep(BEFORE_MS)
    await asking.burst()
    const from = performance.now()
    database.begin(outage)
    await sleep(awayMs)
    const to = performance.now()
    await database.mend()
    const { acceptedAt, deliveredAt } = await untilItGoesOn()
    const all = await asking.stop()
    say(
      `${outage} for ${seconds(to - from)}: accepting again after ${seconds(acceptedAt - to)}, delivering after ${seconds(deliveredAt - to)}`,
    )
    assert.ok(deliveredAt - to < RESUMED_WITHIN_MS)
    assertAnswers(all, { from, to })

    const sent = all.filter(({ kind }) => kind === 'send')
    const refused = sent.filter(({ status }) => status === 503)
    let kept = 0
    await inParallel(refused, 20, async (one) => {
      const { status, body, headers } = await caller.send(one.key as string, one.body)
      assert.equal(status, 202)
      one.messageId = body.messageId
      if (headers.get('Idempotent-Replayed') === 'true') kept += 1
    })
    ids.push(...sent.map(({ messageId }) => messageId as string))
    // What was claimed by a statement whose answer never came is taken up again when its lease ends; the network tries receipts less and less often.
    if (!isFull) {
      const held = await endLeases(pool)
      await sendReceiptsTo(simulator, api.url)
      say(`${held} leases were left`)
    }
    await untilDelivered(pool, 90_000)
    say(
      `all delivered ${seconds(performance.now() - to)} after it was mended; of ${refused.length} answered 503, ${kept} had been kept all the same`,
    )
    const { repeated } = await assertDeliveredOnce(scene, caller, ids)
    say(`${ids.length} messages so far, each delivered once; the network was handed ${repeated} again`)
    assert.deepEqual([api.child.exitCode, worker.child.exitCode], [null, null])
  })
}
