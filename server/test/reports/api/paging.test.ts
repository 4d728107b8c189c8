import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { recordAction } from '../../../src/replies/actions.ts'
import { createReceiver, receipt } from '../../delivery/support.ts'
import { type Written, writeCampaign } from './past.ts'
import { ascending, newCaller, pool } from './shared.ts'
import { phone } from './support.ts'

// Lists are read page by page while further events happen before, at and after the place of the reader.

const receive = createReceiver(pool)
const seed = Number(process.env.HERALD_PAGING_SEED ?? randomInt(2 ** 31))

/** Numbers from 0 up to `below`, the same for each seed (mulberry32). */
function randomFrom(start: number): (below: number) => number {
  let state = start
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const DAY_MS = 86_400_000
const PEOPLE = 24
const LIMIT = 2
const startedMs = Date.now() - 9 * DAY_MS

/** A campaign that was sent nine days ago and has not expired. */
async function newCampaign() {
  const caller = await newCaller()
  const times = { acceptedAt: new Date(startedMs).toISOString(), expiresAt: new Date(startedMs + 14 * DAY_MS).toISOString() }
  const people = Array.from({ length: PEOPLE }, (_, n) => ({ recipient: phone((n * 7) % PEOPLE), ...times, sentAt: times.acceptedAt }))
  const { campaignId, messages } = await writeCampaign(pool, caller, people)
  return { ...caller, campaignId, messages }
}

type Caller = Awaited<ReturnType<typeof newCampaign>>

/** Something happens to a message at a time. */
type Happening = (caller: Caller, message: Written, at: Date) => Promise<void>

const report =
  (kind: 'delivered' | 'read'): Happening =>
  async (_caller, { messageId, recipient }, at) => {
    await receive([{ ...receipt({ messageId, kind, phone: recipient }), occurredAt: at }])
  }

const click: Happening = async ({ accountId, agentId }, { messageId, recipient }, occurredAt) => {
  const action = { accountId, agentId, recipient, messageId, channel: 'rcs', occurredAt } as const
  await recordAction(pool, { ...action, kind: 'clicked', url: 'https://example.com/' })
}

/** What happens to a message again, or next, does not change its place in the list. */
const LISTS: { list: string; happens: Happening; next: Happening }[] = [
  { list: 'delivered', happens: report('delivered'), next: report('read') },
  { list: 'read', happens: report('read'), next: report('delivered') },
  { list: 'clicked', happens: click, next: report('read') },
]

/** A time before, at, or after the last item that the reader has seen, or any. */
function timeNear(last: { occurredAt: string } | undefined, random: (below: number) => number): Date {
  const seenMs = last === undefined ? startedMs : Date.parse(last.occurredAt)
  const any = startedMs + random(9 * DAY_MS)
  const choices = [any, any, seenMs, seenMs - 1, seenMs + 1, startedMs, Date.now() - 1]
  return new Date(Math.max(choices[random(choices.length)] ?? any, startedMs))
}

type Item = { messageId: string; recipient: string; occurredAt: string }

/** Whether `a` comes before `b`, or is it. */
function inOrder(sort: string, a: Item, b: Item): boolean {
  const keys = [a, b].map((item) => (sort.endsWith('recipient') ? item.recipient : `${item.occurredAt} ${item.messageId}`))
  const [first = '', second = ''] = sort.startsWith('-') ? keys.toReversed() : keys
  return first <= second
}

for (const [n, { list, happens, next }] of LISTS.entries()) {
  describe(`while receipts arrive, a walk through recipients/${list} (seed ${seed})`, () => {
    for (const [k, sort] of ['occurredAt', '-occurredAt', 'recipient', '-recipient'].entries()) {
      test(`by ${sort} has each recipient once, in order, and all that were listed before`, async () => {
        const random = randomFrom(seed + n * 1_000 + k)
        const caller = await newCampaign()
        const { campaignId, messages, walk } = caller
        const waiting = [...messages]
        const draw = () => waiting.splice(random(waiting.length), 1)[0]
        for (let count = 0; count < PEOPLE / 2; count += 1)
          await happens(caller, draw() as Written, new Date(startedMs + random(9 * DAY_MS)))
        const path = `/campaigns/${campaignId}/recipients/${list}?sort=${sort}`
        const before: Item[] = await walk(path)
        assert.equal(before.length, PEOPLE / 2)

        const ahead: string[] = []
        const found: Item[] = await walk(path, LIMIT, async (soFar) => {
          const last = soFar.at(-1)
          for (let count = random(3); count > 0 && waiting.length > 0; count -= 1) {
            const newcomer = draw() as Written
            const at = timeNear(last, random)
            await happens(caller, newcomer, at)
            const { messageId, recipient } = newcomer
            if (!inOrder(sort, { messageId, recipient, occurredAt: at.toISOString() }, last)) ahead.push(messageId)
          }
          const seen = soFar[random(soFar.length)]
          await happens(caller, seen, timeNear(last, random))
          await next(caller, seen, timeNear(last, random))
        })
        const ids = found.map(({ messageId }) => messageId)
        assert.equal(new Set(ids).size, ids.length, 'no message twice')
        assert.equal(new Set(found.map(({ recipient }) => recipient)).size, ids.length)
        const kept = found.filter(({ messageId }) => before.some((item) => item.messageId === messageId))
        assert.deepEqual(kept, before, 'all that were listed before, unchanged')
        for (const [index, item] of found.entries()) assert.ok(inOrder(sort, found[index - 1] ?? item, item), `${index} is in order`)
        assert.deepEqual(
          ahead.filter((id) => !ids.includes(id)),
          [],
          'and those that came further on',
        )
        const after: Item[] = await walk(path, 7)
        assert.equal(after.length, PEOPLE - waiting.length, 'a new walk has all')
      })
    }
  })
}

describe(`while recipients act, a walk through action-details (seed ${seed})`, () => {
  for (const [k, sort] of ['-occurredAt', 'recipient', '-action'].entries()) {
    test(`by ${sort} has each action once, and all that were listed before`, async () => {
      const random = randomFrom(seed + 10_000 + k)
      const { campaignId, messages, walk, accountId, agentId } = await newCampaign()
      const kinds = ['clicked', 'tapped', 'wrote', 'sent-file', 'opted-in'] as const
      let count = 0
      const act = async (occurredAt: Date) => {
        count += 1
        // By turns: of two actions of one message in one millisecond, the order could not be known afterwards.
        const { messageId, recipient } = messages[count % 6] as Written
        const kind = kinds[random(kinds.length)] ?? 'wrote'
        await recordAction(pool, { accountId, agentId, messageId, recipient, kind, channel: 'rcs', occurredAt, text: `${count}` })
      }
      for (let first = 0; first < 12; first += 1) await act(new Date(startedMs + random(5) * DAY_MS))
      const path = `/campaigns/${campaignId}/action-details?sort=${sort}`
      const before = await walk(path)
      const found = await walk(path, LIMIT, async (soFar) => {
        for (let more = random(2); more > 0; more -= 1) await act(timeNear(soFar.at(-1), random))
      })
      const texts = found.map(({ text }) => text)
      assert.equal(new Set(texts).size, texts.length)
      assert.deepEqual(
        found.filter(({ text }) => Number(text) <= 12),
        before,
      )
      const keys = found.map((item) => item[sort.replace('-', '')])
      const sorted = ascending(keys)
      assert.deepEqual(keys, sort.startsWith('-') ? sorted.toReversed() : sorted)
      assert.equal((await walk(path, 7)).length, count)
    })
  }
})
