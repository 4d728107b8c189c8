import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COUNTED } from '../../src/reports/counters.ts'
import { newKey } from '../../test/support/messages.ts'
import { isRunning } from '../../test/support/process.ts'
import { call } from '../../test/support/service.ts'
import { until } from '../../test/support/until.ts'
import {
  countUnsettled,
  endLeases,
  inParallel,
  isFull,
  kill,
  type Node,
  readLedger,
  type Scene,
  say,
  sendReceiptsTo,
  setScene,
  startNode,
} from './support.ts'

const MESSAGES = 20
// Long enough to freeze a worker that has them all under way.
const FROZEN_CALL_MS = 1_000
// Long enough to look at the database while the other worker has them under way.
const OTHER_CALL_MS = 3_000
// Twelve are sent. Two have no RCS, two are refused, and four meet a network that fails twice: every kind of result has to be refused.
const ENDINGS = [...Array(12).fill('10'), '02', '02', '03', '03', '05', '05', '05', '05']

/** All that a result could change. */
async function everything({ pool }: Scene) {
  const { rows } = await pool.query(`
    select (select json_agg(m order by id) from messages m) as messages,
      (select json_agg(e order by message_id, kind, occurred_at) from message_events e) as events,
      (select json_agg(q order by message_id) from queue q) as queue,
      (select json_agg(x order by message_id) from expiries x) as expiries,
      (select json_agg(json_build_array(page_id, events) order by page_id) from log_pages) as log,
      (select json_agg(c) from (
        select account_id, hour, ${COUNTED.map((counter) => `sum(${counter}) as ${counter}`).join(', ')} from (
          select account_id, hour, ${COUNTED.join(', ')} from report_totals union all select account_id, hour, ${COUNTED.join(', ')} from report_deltas
        ) as counters group by 1, 2 order by 1, 2
      ) as c) as counts`)
  return rows[0]
}

async function metric({ metricsUrl }: Node, name: string): Promise<number> {
  const { body } = await call(metricsUrl)
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\d+)`, 'm').exec(body)?.[1] ?? 0)
}

async function countLeased({ pool }: Scene, otherThan?: string): Promise<number> {
  const { rows } = await pool.query('select count(*) from queue where leased_until > now() and lease is distinct from $1', [
    otherThan ?? null,
  ])
  return rows[0].count
}

async function countAccepted({ pool }: Scene): Promise<number> {
  const { rows } = await pool.query(`select count(*) from messages where status = 'ACCEPTED'`)
  return rows[0].count
}

async function leaseOf({ pool }: Scene): Promise<string> {
  const { rows } = await pool.query('select distinct lease from queue where lease is not null')
  assert.equal(rows.length, 1, 'one claim took them all')
  return rows[0].lease
}

/** The next so many calls to the network take this long; returns how to wait until all of them are under way. */
async function slowDown({ simulator }: Scene, calls: number, ms: number): Promise<() => Promise<unknown>> {
  // One more, which nobody makes: a fault that is used up is no longer told of.
  await simulator.ask('faults', { api: { latency: { count: calls + 1, ms } } }, 'PUT')
  return () => until('the calls are under way', async () => (await simulator.ask('faults')).api.latency.count === 1, 60_000)
}

/** Has a worker take up all messages, and freezes it while the network deals with them. */
async function freezeInTheMidst(scene: Scene, ids: string[]): Promise<Node> {
  const { env, simulator } = scene
  const untilCalled = await slowDown(scene, ids.length, FROZEN_CALL_MS)
  const frozen = await startNode(env, 'delivery')
  await untilCalled()
  frozen.child.kill('SIGSTOP')
  await until('the network has dealt with them all', async () => (await readLedger(simulator)).size === ids.length)
  assert.equal(await countLeased(scene), ids.length, 'nothing was written before the freeze')
  return frozen
}

async function acceptAll(scene: Scene, url: string): Promise<string[]> {
  const caller = scene.callerAt(url)
  const ids: string[] = []
  await inParallel(ENDINGS.entries(), MESSAGES, async ([n, ending]) => {
    const { body } = await caller.send(newKey(), caller.request({ recipient: `+4850010${String(n).padStart(2, '0')}${ending}` }))
    ids.push(body.messageId)
  })
  return ids
}

/** Receipts are withheld until the end: they would settle what the other worker is to send again. */
async function proveThatItWritesNothing(endTheLease: (scene: Scene) => Promise<unknown>): Promise<void> {
  const scene = await setScene()
  const { env, pool, simulator } = scene
  const api = await startNode(env, 'api')
  const ids = await acceptAll(scene, api.url)
  const frozen = await freezeInTheMidst(scene, ids)
  const lease = await leaseOf(scene)
  const frozenAt = performance.now()
  const untilCalled = await slowDown(scene, ids.length, OTHER_CALL_MS)
  const other = await startNode(env, 'delivery')
  await endTheLease(scene)
  await untilCalled()

  const before = await everything(scene)
  frozen.child.kill('SIGCONT')
  say(`woken after ${Math.round(performance.now() - frozenAt)} ms, while another worker has the ${ids.length} messages under way`)
  await until('all its results were refused', async () => (await metric(frozen, 'herald_results_refused_total')) === ids.length)
  assert.deepEqual(await everything(scene), before)
  assert.equal(await countLeased(scene, lease), ids.length, 'the other worker was still at it')
  say(`all ${ids.length} results of the frozen worker were refused, and nothing has changed`)

  await simulator.ask('faults', undefined, 'DELETE')
  await until('all were sent or refused', async () => (await countAccepted(scene)) === 0, 60_000)
  await sendReceiptsTo(simulator, api.url)
  await until('all is over', async () => (await countUnsettled(pool)) === 0, 60_000)
  assert.equal(await metric(other, 'herald_results_refused_total'), 0)
  assert.ok(isRunning(frozen.child.pid as number))
  await assertOutcomes(scene, api.url, ids)
  for (const node of [frozen, other, api]) await kill(node)
}

async function assertOutcomes(scene: Scene, url: string, ids: string[]): Promise<void> {
  const caller = scene.callerAt(url)
  const ledger = await readLedger(scene.simulator)
  assert.deepEqual(new Set(ledger.keys()), new Set(ids))
  await inParallel(ids, MESSAGES, async (id) => {
    const { body } = await caller.read(id)
    const isRefused = /0[23]$/.test(body.recipient)
    assert.equal(body.status, isRefused ? 'FAILED' : 'READ', body.recipient)
    const { accepted = 0, delivered = 0 } = ledger.get(id) ?? {}
    assert.deepEqual({ accepted, delivered }, isRefused ? { accepted: 0, delivered: 0 } : { accepted: 1, delivered: 1 })
  })
}

test('a worker that was frozen, and whose messages another has taken up, writes nothing when it wakes', async () => {
  await proveThatItWritesNothing(({ pool }) => endLeases(pool))
})

test('so does one that was frozen until its lease ended by itself', { skip: isFull ? false : 'only in the full run' }, async () => {
  await proveThatItWritesNothing(async () => {})
})
