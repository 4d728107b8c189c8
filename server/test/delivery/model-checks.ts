import assert from 'node:assert/strict'
import { type Message, readMessage } from '../../src/messages/messages.ts'
import { MOVES, type Status } from '../../src/messages/states.ts'
import { assertAllCounted } from '../support/counted.ts'
import { assertAllEmitted } from '../support/emitted.ts'
import type { Known, World } from './model-world.ts'
import { TIMELINE } from './support.ts'

const TIMES = ['acceptedAt', 'sentAt', 'deliveredAt', 'readAt'] as const
const FINAL: Status[] = ['READ', 'FAILED', 'EXPIRED']

/** Everything that is stored about a message, as it is. */
export type Row = {
  id: string
  message: {
    status: Known['status']
    sent_at: string | null
    delivered_at: string | null
    read_at: string | null
    failure_reason: string | null
  }
  queue: { task: 'send' | 'revoke'; lease: string | null; attempts: number; due_at: string } | null
  isLeased: boolean | null
  expiry: object | null
  events: { kind: string }[] | null
}

const ROWS = `
  select m.id, to_json(m) as message, to_json(q) as queue, q.leased_until > now() as "isLeased", to_json(e) as expiry,
    (select json_agg(v order by kind, occurred_at) from (${TIMELINE}) as v) as events
  from messages m left join queue q on q.message_id = m.id left join expiries e on e.message_id = m.id
  where m.id = any ($1)`

export async function readRows({ pool }: World, ids: string[]): Promise<Map<string, Row>> {
  const { rows } = await pool.query<Row>({ name: 'model-rows', text: ROWS, values: [ids] })
  return new Map(rows.map((row) => [row.id, row]))
}

/**
 * Looks at all messages as they are stored, and at those that have changed as callers see them too, and holds them against what was seen
 * before and what the model expects. Where several things ran at once, the model takes over what came of it (`isExpected` false): the
 * rest has to hold all the same.
 */
export async function observe(world: World, isExpected: boolean): Promise<void> {
  const rows = await readRows(world, [...world.known.keys()])
  await Promise.all([...world.known.values()].map((one) => observeOne(world, one, rows.get(one.id) as Row, isExpected)))
  ledgerHasEachOnce(world)
}

async function observeOne({ pool, takenUp }: World, one: Known, row: Row, isExpected: boolean): Promise<void> {
  if (!isExpected) takeOver(one, row)
  const stored = JSON.stringify(row)
  // Only of one that has just run out does a caller see more as time goes by.
  if (stored !== one.stored || one.ranOut === 'just') {
    one.stored = stored
    const message = await readMessage(pool, one.caller.accountId, one.id)
    onlyForward(one, message)
    inOrder(one, message)
    consistent(one, row)
    one.seen = message
  }
  const { status } = one.seen as Message
  const expected = expectedStatuses(one, takenUp.has(one.id))
  assert.ok(expected.includes(status), `${one.id} is ${status}, not ${expected.join(' or ')}`)
}

function takeOver(one: Known, { message, queue, isLeased }: Row): void {
  one.status = message.status
  one.isQueued = queue?.task === 'send'
  one.lease = queue?.lease ?? undefined
  one.isLeased = isLeased ?? false
}

/** In the window of a second after the expiry, both are right. */
function expectedStatuses({ status, ranOut }: Known, isTakenUp: boolean): Status[] {
  const isOpen = status === 'ACCEPTED' || status === 'SENT'
  const now = status === 'ACCEPTED' && isTakenUp ? 'SENDING' : status
  if (!isOpen || ranOut === 'no') return [now]
  return ranOut === 'long' ? ['EXPIRED'] : [now, 'EXPIRED']
}

function onlyForward({ id, seen }: Known, { status }: Message): void {
  if (seen === undefined || seen.status === status) return
  assert.ok(!FINAL.includes(seen.status), `${id}: ${seen.status} is final, and became ${status}`)
  assert.ok(seen.status !== 'DELIVERED' || status === 'READ', `${id}: was delivered, and became ${status}`)
  assert.ok(canBecome(seen.status, status), `${id}: went from ${seen.status} to ${status}`)
}

/** By any number of moves. */
function canBecome(from: Status, to: Status): boolean {
  const sources: readonly Status[] = to === 'ACCEPTED' ? [] : MOVES[to]
  return sources.includes(from) || sources.some((source) => canBecome(from, source))
}

/** What has happened has happened: no time runs backwards, and none that was told is told otherwise later. */
function inOrder({ id, seen }: Known, message: Message): void {
  const times = TIMES.map((name) => message[name]?.getTime()).filter((time) => time !== undefined)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    `${id}: ${TIMES.join(', ')} are in order`,
  )
  for (const name of [...TIMES, 'failedAt'] as const) {
    if (seen?.[name] !== undefined) assert.deepEqual(message[name], seen[name], `${id}: ${name} stays as it was told`)
  }
}

function consistent(one: Known, row: Row): void {
  const { message, queue, events } = row
  const status = message.status
  const told = one.stored
  const count = (kind: string) => (events ?? []).filter((event) => event.kind === kind).length
  assert.equal(count('sent'), message.sent_at === null ? 0 : 1, `sent is noted once: ${told}`)
  assert.equal(count('delivered'), message.delivered_at === null ? 0 : 1, `delivered is noted once: ${told}`)
  assert.equal(count('read'), message.read_at === null ? 0 : 1, `read is noted once: ${told}`)
  assert.equal(count('failed'), status === 'FAILED' ? 1 : 0, `failed is noted once: ${told}`)
  assert.equal(count('expired'), status === 'EXPIRED' ? 1 : 0, `expired is noted once: ${told}`)
  if (queue?.task === 'send') assert.equal(status, 'ACCEPTED', `only what is not sent yet waits to be sent: ${told}`)
  if (queue?.task === 'revoke') assert.ok(isTakenBack(message), `only what was given up by us is taken back: ${told}`)
  if (status === 'ACCEPTED' && one.ranOut === 'no') assert.equal(queue?.task, 'send', `what is not sent yet waits to be sent: ${told}`)
}

/** What has run out, and what its agent may no longer send. What the network has refused, it does not have. */
function isTakenBack({ status, failure_reason }: Row['message']): boolean {
  return status === 'EXPIRED' || failure_reason === 'AGENT_INACTIVE'
}

/** By the number too, of which every message has its own: a message made twice would have two ids. */
function ledgerHasEachOnce({ network, known }: World): void {
  assert.deepEqual(network.changed, [], 'what is repeated is the same message')
  const entries = [...network.ledger.values()]
  for (const { messageId, recipient } of entries) assert.equal(known.get(messageId)?.phone, recipient, 'the ledger has what was accepted')
  assert.equal(new Set(entries.map(({ recipient }) => recipient)).size, entries.length, 'the ledger has each message once')
}

/** After a drain, in which every expiry has passed and every worker has come to an end. Nobody takes events away here. */
export async function settled(world: World): Promise<void> {
  const { pool, network, known } = world
  assert.ok((await assertAllEmitted(pool)) >= known.size, 'each was told at least its end')
  assert.ok((await assertAllCounted(pool)) > 0 || known.size === 0)
  const rows = await readRows(world, [...known.keys()])
  for (const [id, { message, queue, expiry, events }] of rows) {
    const told = JSON.stringify({ message, queue, expiry, events })
    assert.ok(['DELIVERED', ...FINAL].includes(message.status), `has come to an end: ${told}`)
    assert.deepEqual({ queue, expiry }, { queue: null, expiry: null }, 'nothing is left to do')
    const isGivenUp = message.status === 'FAILED' || message.status === 'EXPIRED'
    assert.ok(network.ledger.has(id) || isGivenUp, `what was accepted was sent, or given up: ${told}`)
    if (isTakenBack(message) && network.ledger.has(id)) {
      assert.ok(network.revokeAsked.has(id) || network.revokeRefused.has(id), `what was given up was taken back at the network: ${told}`)
    }
  }
}
