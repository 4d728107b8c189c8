import assert from 'node:assert/strict'
import { type Message, readMessage } from '../../src/messages/messages.ts'
import { MOVES, type Status } from '../../src/messages/states.ts'
import { assertAllCounted } from '../support/counted.ts'
import { assertAllEmitted } from '../support/emitted.ts'
import type { Known, World } from './model-world.ts'
import { TIMELINE } from './support.ts'

const TIMES = ['acceptedAt', 'sentAt', 'deliveredAt', 'readAt'] as const
const FINAL: Status[] = ['READ', 'FAILED', 'EXPIRED']

/** Everything that is stored about a message. */
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
 * Reads all messages as they are stored, and changed messages as callers read them. Compares them with the state before and with the model.
 * After concurrent steps, the model adopts the stored state (`isExpected` is false); everything else must hold all the same.
 */
export async function observe(world: World, isExpected: boolean): Promise<void> {
  const rows = await readRows(world, [...world.known.keys()])
  await Promise.all([...world.known.values()].map((one) => observeOne(world, one, rows.get(one.id) as Row, isExpected)))
  ledgerHasEachOnce(world)
}

async function observeOne({ pool, tried }: World, one: Known, row: Row, isExpected: boolean): Promise<void> {
  if (!isExpected) adopt(one, row)
  const stored = JSON.stringify(row)
  // What a caller reads of a message that has just expired also changes with time.
  if (stored !== one.stored || one.expired === 'just') {
    one.stored = stored
    const message = await readMessage(pool, one.caller.accountId, one.id)
    onlyForward(one, message)
    inOrder(one, message)
    consistent(one, row)
    one.seen = message
  }
  const { status } = one.seen as Message
  const expected = expectedStatuses(one, tried.has(one.id))
  assert.ok(expected.includes(status), `${one.id} is ${status}, not ${expected.join(' or ')}`)
}

function adopt(one: Known, { message, queue, isLeased }: Row): void {
  one.status = message.status
  one.isQueued = queue?.task === 'send'
  one.lease = queue?.lease ?? undefined
  one.isLeased = isLeased ?? false
}

/** Within a second after the expiry, both are right. */
function expectedStatuses({ status, expired }: Known, isTried: boolean): Status[] {
  const isOpen = status === 'ACCEPTED' || status === 'SENT'
  const now = status === 'ACCEPTED' && isTried ? 'SENDING' : status
  if (!isOpen || expired === 'no') return [now]
  return expired === 'long' ? ['EXPIRED'] : [now, 'EXPIRED']
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

/** Times are in order, and a time that a caller has read stays as it is. */
function inOrder({ id, seen }: Known, message: Message): void {
  const times = TIMES.map((name) => message[name]?.getTime()).filter((time) => time !== undefined)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    `${id}: ${TIMES.join(', ')} are in order`,
  )
  for (const name of [...TIMES, 'failedAt'] as const) {
    if (seen?.[name] !== undefined) assert.deepEqual(message[name], seen[name], `${id}: ${name} stays as it was`)
  }
}

function consistent(one: Known, row: Row): void {
  const { message, queue, events } = row
  const status = message.status
  const facts = one.stored
  const count = (kind: string) => (events ?? []).filter((event) => event.kind === kind).length
  const steps = {
    sent: message.sent_at !== null,
    delivered: message.delivered_at !== null,
    read: message.read_at !== null,
    failed: status === 'FAILED',
    expired: status === 'EXPIRED',
  }
  for (const [kind, has] of Object.entries(steps)) assert.equal(count(kind), has ? 1 : 0, `${kind} is noted once: ${facts}`)
  if (queue?.task === 'send') assert.equal(status, 'ACCEPTED', `only an unsent message waits to be sent: ${facts}`)
  if (queue?.task === 'revoke') assert.ok(isRevoked(message), `only a message that Herald ended is revoked: ${facts}`)
  if (status === 'ACCEPTED' && one.expired === 'no') assert.equal(queue?.task, 'send', `an unsent message waits to be sent: ${facts}`)
}

/** Expired messages, and messages of an inactive agent. The network does not have a message that it refused. */
function isRevoked({ status, failure_reason }: Row['message']): boolean {
  return status === 'EXPIRED' || failure_reason === 'AGENT_INACTIVE'
}

/** Checks the numbers too, since a message that was created twice would have two ids but one number. */
function ledgerHasEachOnce({ network, known }: World): void {
  assert.deepEqual(network.changed, [], 'a repeated id has the same message')
  const entries = [...network.ledger.values()]
  for (const { messageId, recipient } of entries) assert.equal(known.get(messageId)?.phone, recipient, 'the ledger has accepted messages')
  assert.equal(new Set(entries.map(({ recipient }) => recipient)).size, entries.length, 'the ledger has each message once')
}

/** For the state after a drain: all messages have expired or ended, and no worker has entries. */
export async function settled(world: World): Promise<void> {
  const { pool, network, known } = world
  assert.ok((await assertAllEmitted(pool)) >= known.size, 'an event was emitted for each end')
  assert.ok((await assertAllCounted(pool)) > 0 || known.size === 0)
  const rows = await readRows(world, [...known.keys()])
  for (const [id, { message, queue, expiry, events }] of rows) {
    const facts = JSON.stringify({ message, queue, expiry, events })
    assert.ok(['DELIVERED', ...FINAL].includes(message.status), `has ended: ${facts}`)
    assert.deepEqual({ queue, expiry }, { queue: null, expiry: null }, 'nothing is left to do')
    const hasFailed = message.status === 'FAILED' || message.status === 'EXPIRED'
    assert.ok(network.ledger.has(id) || hasFailed, `was sent, or failed permanently: ${facts}`)
    if (isRevoked(message) && network.ledger.has(id)) {
      assert.ok(network.revokeAsked.has(id) || network.revokeRefused.has(id), `was revoked at the network: ${facts}`)
    }
  }
}
