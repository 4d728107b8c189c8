import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newKey } from '../../test/support/messages.ts'
import { assertDeliveredOnce, isFull, say, sendReceiptsTo, setScene, startNode, untilDelivered } from './support.ts'

const ROUNDS = isFull ? 50 : 5

const scene = await setScene()
const { env, pool, simulator } = scene
const [one, two] = await Promise.all([startNode(env, 'api'), startNode(env, 'api')])
const callers = [scene.callerAt(one.url), scene.callerAt(two.url)]
const callerOf = (n: number) => callers[n % 2] as (typeof callers)[number]
const ids: string[] = []

test('a hundred equal requests at once over two nodes make one message and a hundred equal answers', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const key = newKey()
    const request = callerOf(0).request()
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => callerOf(n).send(key, request)))
    const [first] = answers
    for (const { status, body } of answers) assert.deepEqual({ status, body }, { status: 202, body: first?.body })
    const firsts = answers.filter(({ headers }) => headers.get('Idempotent-Replayed') !== 'true')
    assert.equal(firsts.length, 1)
    ids.push(first?.body.messageId)
  }
  say(`${ROUNDS} times 100 equal requests over two nodes: ${ids.length} messages`)
})

test('fifty and fifty of two contents under one key make one winner and fifty conflicts', async () => {
  const wins = [0, 0]
  for (let round = 0; round < ROUNDS; round++) {
    const key = newKey()
    // Both contents at both nodes, and each is first in every other round.
    const contentOf = (n: number) => ((n >> 1) + round) % 2
    const requests = ['One', 'Other'].map((content) => callerOf(0).request({ message: { inline: { type: 'MESSAGE', content } } }))
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => callerOf(n).send(key, requests[contentOf(n)])))
    const winner = contentOf(answers.findIndex(({ status }) => status === 202))
    const winning = new Set<string>()
    answers.forEach(({ status, body }, n) => {
      assert.equal(status, contentOf(n) === winner ? 202 : 409, JSON.stringify(body))
      if (status === 202) winning.add(body.messageId)
      else assert.equal(body.code, 'RCS_IDEMPOTENCY_CONFLICT')
    })
    assert.equal(winning.size, 1)
    ids.push(...winning)
    wins[winner] = (wins[winner] as number) + 1
  }
  say(`${ROUNDS} times 50 and 50 requests of two contents: the first content won ${wins[0]} times, the second ${wins[1]}`)
})

test('each of them is sent once', async () => {
  const worker = await startNode(env, 'delivery')
  await sendReceiptsTo(simulator, worker.url)
  await untilDelivered(pool, 20_000)
  await assertDeliveredOnce(scene, callerOf(0), ids)
  say(`${ids.length} messages, each delivered once`)
})
