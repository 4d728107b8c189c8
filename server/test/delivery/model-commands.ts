import assert from 'node:assert/strict'
import { activateAgent, changeAgent } from '../../src/agents/agents.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { readClaimed } from '../../src/delivery/read-claimed.ts'
import { recordResults } from '../../src/delivery/results.ts'
import type { Accepted, Submission } from '../../src/messages/accept.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { MOVES } from '../../src/messages/states.ts'
import { erased } from '../support/erased.ts'
import { TEXT } from '../support/templates.ts'
import { readRows } from './model-checks.ts'
import type { Receipt, Response } from './model-network.ts'
import { type Caller, type Held, type Known, LEASE_MS, pick, type World } from './model-world.ts'
import { claimNow, type Result } from './worker.ts'

/** One step of the real system. Returns the checks and changes of the model, which apply only if no other step ran at the same time. */
export type Step = (world: World) => Promise<() => void | Promise<void>>

export function accept(n: number, node: number, what: 'new' | 'twice at once' | 'again' | 'other body'): Step {
  return async (world) => {
    const caller = pick(world.callers, n)
    const used = what === 'again' || what === 'other body' ? pick(world.keys, n) : undefined
    const { key, phone } = used ?? { key: world.newName(), phone: `+48500${world.newName()}` }
    const submission = request(used?.caller ?? caller, key, phone, what === 'other body')
    const nodes = what === 'twice at once' ? world.accept : [pick(world.accept, node)]
    const responses = await Promise.all(nodes.map((submit) => submit(submission).catch((error: { code: string }) => error.code)))
    const accepted = responses.filter((response): response is Accepted => typeof response === 'object')
    const messageId = accepted[0]?.messageIds[0]
    if (used === undefined && messageId !== undefined) {
      world.keys.push({ key, caller, phone, messageId })
      world.known.set(messageId, newlyAccepted(messageId, caller, phone))
    }
    return () => {
      if (!submission.isActive && what !== 'again') return assert.deepEqual(new Set(responses), new Set(['RCS_AGENT_NOT_FOUND']))
      if (what === 'other body') return assert.deepEqual(responses, ['RCS_IDEMPOTENCY_CONFLICT'])
      assert.equal(accepted.length, nodes.length, `accepted: ${responses}`)
      assert.deepEqual(new Set(accepted.flatMap(({ messageIds }) => messageIds)), new Set([used?.messageId ?? messageId]))
      assert.equal(accepted.filter(({ replayed }) => !replayed).length, used === undefined ? 1 : 0, 'one response is not a replay')
    }
  }
}

function request(caller: Caller, key: string, phone: string, isOther: boolean): Submission & { isActive: boolean } {
  const { accountId, agentId, isActive } = caller
  const idempotency = { key, hash: requestHash({ phone, isOther }) }
  return { accountId, agentId, message: { inline: TEXT as never }, recipients: [phone], test: false, idempotency, isActive }
}

function newlyAccepted(id: string, caller: Caller, phone: string): Known {
  const state = { status: 'ACCEPTED', isQueued: true, lease: undefined, isLeased: false, expired: 'no' } as const
  return { id, caller, phone, ...state, seen: undefined, stored: '' }
}

export function claimEntries(workerIndex: number, free: number): Step {
  return async (world) => {
    const claimedAt = performance.now()
    const { entries } = await claimNow(world.pool, { carrier: world.network.carrier, free, leaseMs: LEASE_MS })
    pick(world.workers, workerIndex).held.push(...entries.map((entry) => ({ entry, claimedAt })))
    for (const { messageId, task } of entries) if (task === 'send') world.tried.add(messageId)
    return () => {
      for (const entry of entries) checkClaimed(world, entry)
    }
  }
}

function checkClaimed({ known, tried }: World, { messageId, task, lease }: Entry): void {
  const one = known.get(messageId) as Known
  assert.ok(!one.isLeased, 'no worker claims a leased entry')
  if (task === 'revoke')
    assert.ok(/EXPIRED|FAILED/.test(one.status) && tried.has(messageId), 'only a message that may have been sent is revoked')
  else assert.deepEqual([one.status, one.expired, one.caller.isActive], ['ACCEPTED', 'no', true], 'only a sendable message is claimed')
  one.lease = lease
  one.isLeased = true
}

/** Makes the calls of the first entries that the worker holds. */
export function callNetwork(workerIndex: number, count: number, response: Response): Step {
  return async ({ pool, network, workers, send }) => {
    const waiting = pick(workers, workerIndex)
      .held.filter(({ result }) => result === undefined)
      .slice(0, count)
    const messages = await readClaimed(
      pool,
      waiting.map(({ entry }) => entry),
      erased,
    )
    network.respondWith(response)
    for (const [index, held] of waiting.entries()) {
      held.result = await send(held.entry, messages[index], held.claimedAt)
    }
    return () => {
      for (const held of waiting) checkCall(held, response, network.ledger.has(held.entry.messageId))
    }
  }
}

function checkCall({ entry, claimedAt, result }: Held, response: Response, isKept: boolean): void {
  const is = result?.is
  if (performance.now() - claimedAt > LEASE_MS) assert.equal(is, 'not-tried', 'no call begins after the lease')
  else if (response === 'not asked') assert.equal(is, 'not-tried')
  else if (entry.task === 'revoke') assert.match(is ?? '', /revoke|retry|unknown/)
  else if (response === 'accepted' || (response === 'refused' && isKept)) assert.deepEqual([is, isKept], ['sent', true])
  else assert.match(is ?? '', response === 'refused' ? /^failed$/ : /^(retry|unknown)$/, 'only a refused message fails permanently')
}

/** Records results of the worker. An entry that another worker has claimed since, or whose message has moved on, must not change. */
export function recordCalls(workerIndex: number, count: number): Step {
  return async (world) => {
    const worker = pick(world.workers, workerIndex)
    const done = worker.held.filter(({ result }) => result !== undefined).slice(0, count)
    worker.held = worker.held.filter((held) => !done.includes(held))
    const results = done.map(({ entry: { messageId, lease }, result }) => ({ messageId, lease, ...result }) as Result)
    const stale = results.filter(({ messageId, lease }) => world.known.get(messageId)?.lease !== lease).map(({ messageId }) => messageId)
    const before = await readRows(world, stale)
    const isRecorded = await recordResults(world.pool, results)
    const recorded = new Set(results.filter((_, index) => isRecorded[index]).map(({ messageId }) => messageId))
    return async () => {
      const fresh = results.filter(({ messageId, lease }) => world.known.get(messageId)?.lease === lease)
      assert.deepEqual(recorded, new Set(fresh.map(({ messageId }) => messageId)), 'the results with a valid lease are recorded')
      const untouched = stale.filter((id) => !recorded.has(id))
      const after = await readRows(world, untouched)
      for (const id of untouched) assert.deepEqual(after.get(id), before.get(id), 'a result without the lease changes nothing')
      for (const result of fresh) checkRecorded(result, world.known.get(result.messageId) as Known)
    }
  }
}

function checkRecorded({ is }: Result, one: Known): void {
  one.lease = undefined
  one.isLeased = false
  if (is === 'retry' || is === 'unknown' || is === 'not-tried') return
  one.isQueued = false
  if (one.expired !== 'no') return
  if (is === 'sent') one.status = 'SENT'
  if (is === 'failed') one.status = 'FAILED'
}

export function crash(workerIndex: number): Step {
  return async ({ workers }) => {
    pick(workers, workerIndex).held = []
    return () => {}
  }
}

/** Ends all leases and pauses, by the data and by the clock with which a worker measures its lease. */
export function passTime(): Step {
  return async ({ pool, workers, known }) => {
    await pool.query('update queue set due_at = least(due_at, now()), leased_until = least(leased_until, now())')
    for (const held of workers.flatMap((worker) => worker.held)) held.claimedAt -= LEASE_MS
    return () => {
      for (const one of known.values()) one.isLeased = false
    }
  }
}

export type ReceiptPick = Receipt & { n: number }

export function receive(picks: ReceiptPick[], node: number): Step {
  return async ({ pool, network, receivers, known }) => {
    const kept = [...network.ledger.values()]
    if (kept.length === 0) return () => {}
    const events = picks.map(({ n, ...receipt }) => ({
      messageId: pick(kept, n).messageId,
      receipt,
      event: network.receipt(pick(kept, n), receipt),
    }))
    await pick(receivers, node)(events.map(({ event }) => event))
    return async () => {
      const own = events.filter(({ receipt }) => receipt.stray === 'no')
      for (const kind of ['read', 'delivered'] as const) {
        for (const { messageId } of own.filter(({ receipt }) => receipt.kind === kind)) checkReceipt(kind, known.get(messageId) as Known)
      }
      const strays = events.filter(({ receipt }) => receipt.stray !== 'no').map(({ event }) => event.eventId)
      const { rows } = await pool.query('select count(*) as kept from carrier_events where event_id = any ($1)', [strays])
      assert.equal(rows[0]?.kept, new Set(strays).size, 'a receipt without a message is stored once')
    }
  }
}

/** Every second delivered message is read, long after its delivery. */
export function readSome(): Step {
  return async (world) => {
    const kept = [...world.network.ledger.values()]
    const isUnread = ({ messageId }: { messageId: string }, n: number) => n % 2 === 0 && world.known.get(messageId)?.status === 'DELIVERED'
    const unread = kept.flatMap((one, n) => (isUnread(one, n) ? [n] : []))
    return await receive(
      unread.map((n) => ({ n, kind: 'read', stray: 'no', skewMs: 0 })),
      0,
    )(world)
  }
}

function checkReceipt(kind: 'delivered' | 'read', one: Known): void {
  const becomes = kind === 'read' ? 'READ' : 'DELIVERED'
  const moves: readonly string[] = MOVES[becomes]
  if (!moves.includes(one.status) || (one.expired !== 'no' && one.status !== 'DELIVERED')) return
  Object.assign(one, { status: becomes, isQueued: false, lease: undefined, isLeased: false })
}

const MOVE_EXPIRY = `
  with queued as (update queue set expires_at = now() - $2 * interval '1 second' where message_id = any ($1)),
    expiring as (
      insert into expiries (message_id, expires_at) select id, now() - $2 * interval '1 second' from messages where id = any ($1)
      on conflict (message_id) do update set expires_at = excluded.expires_at
    )
  update messages set expires_at = now() - $2 * interval '1 second' where id = any ($1)`

/** When the messages expire; `soon` is while the next steps run. */
const SINCE_S = { long: 2, just: 0, soon: -0.01 } as const

export function moveExpiries(numbers: number[], when: keyof typeof SINCE_S): Step {
  return async ({ pool, known }) => {
    const all = [...known.values()]
    const ones = numbers.map((n) => pick(all, n)).filter((one) => one.expired === 'no')
    await pool.query({ name: 'model-move-expiry', text: MOVE_EXPIRY, values: [ones.map(({ id }) => id), SINCE_S[when]] })
    for (const one of ones) one.expired = when === 'long' ? 'long' : 'just'
    return () => {}
  }
}

export function expire(): Step {
  return async ({ pool, known }) => {
    const { expired } = await expireDue(pool)
    return () => {
      const moves: readonly string[] = MOVES.EXPIRED
      const due = [...known.values()].filter((one) => one.expired !== 'no' && moves.includes(one.status))
      assert.equal(expired, due.length, 'every expired message is marked')
      for (const one of due) Object.assign(one, { status: 'EXPIRED', isQueued: false, lease: undefined })
    }
  }
}

export function setActive(n: number, isActive: boolean): Step {
  return async ({ pool, callers }) => {
    const caller = pick(callers, n)
    if (isActive) await activateAgent(pool, caller.agentId, caller.accountId)
    else await changeAgent(pool, caller.accountId, caller.agentId, { active: false })
    caller.isActive = isActive
    return () => {}
  }
}

export function failOfInactive(): Step {
  return async ({ pool, known }) => {
    await failInactive(pool)
    return () => {
      for (const one of known.values()) {
        if (one.caller.isActive || !one.isQueued || one.isLeased || one.expired !== 'no') continue
        Object.assign(one, { status: 'FAILED', isQueued: false, lease: undefined })
      }
    }
  }
}
