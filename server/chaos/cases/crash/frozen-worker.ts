import assert from 'node:assert/strict'
import { COUNTED } from '../../../src/reports/counters.ts'
import { until } from '../../../test/support/until.ts'
import { readEntries } from '../../history/ledger.ts'
import { newMessage } from '../../load/probes.ts'
import { during } from '../../schedule/faults.ts'
import { readMetric } from '../../topology/node.ts'
import {
  type Crash,
  countRows,
  DELIVERING,
  endLeases,
  nodeOf,
  repeatUntilAccepted,
  TIMEOUT_MS,
  untilDelivered,
  whileKilled,
} from './support.ts'

// A worker is frozen with all its calls under way, and wakes up while another worker has the same messages under way: it writes nothing.

// Long enough to freeze a worker that has them all under way.
const FROZEN_CALL_MS = 1_000
// Long enough to read the database while the other worker has them under way.
const OTHER_CALL_MS = 5_000
// Every kind of result: twelve are sent, two have no RCS, two are rejected, and four meet a network that fails twice.
const ENDINGS = [...Array(12).fill('10'), '02', '02', '03', '03', '05', '05', '05', '05']
const REFUSED = /^herald_results_refused_total\{[^}]*\} (\d+)/gm

/** All that a result could change. */
async function readEverything({ checkPool }: Crash): Promise<unknown> {
  const sums = COUNTED.map((counter) => `sum(${counter}) as ${counter}`).join(', ')
  const { rows } = await checkPool.query(`
    select (select json_agg(m order by id) from messages m) as messages,
      (select json_agg(e order by message_id, kind, occurred_at) from message_events e) as events,
      (select json_agg(q order by message_id) from queue q) as queue,
      (select json_agg(x order by message_id) from expiries x) as expiries,
      (select json_agg(json_build_array(page_id, events) order by page_id) from log_pages) as log,
      (select json_agg(c) from (
        select account_id, hour, ${sums} from (
          select account_id, hour, ${COUNTED.join(', ')} from report_totals union all select account_id, hour, ${COUNTED.join(', ')} from report_deltas
        ) as counters group by 1, 2 order by 1, 2
      ) as c) as counts`)
  return rows[0]
}

/** Makes the next calls to the network slow. Returns how to wait until all of them are under way. */
async function slowDown({ network }: Crash, calls: number, ms: number): Promise<() => Promise<unknown>> {
  // One call more than is made: the simulator no longer shows a fault that is used up.
  await network.ask('faults', { api: { latency: { count: calls + 1, ms } } }, 'PUT')
  const areUnderWay = async () => (await network.ask('faults')).api.latency.count === 1
  return () => until('the calls are under way', areUnderWay, TIMEOUT_MS)
}

export async function freezeWorker(crash: Crash): Promise<void> {
  const { requested, caller, network, holdReceipts, releaseReceipts, faults } = crash
  const [frozen, other] = [nodeOf(crash, 'delivery-1'), nodeOf(crash, 'delivery-2')]
  await untilDelivered(crash)
  // Receipts would end the sending of what the other worker is to send again.
  holdReceipts()
  const { seq = 0 } = (await readEntries(network)).at(-1) ?? {}
  await whileKilled(crash, DELIVERING, async () => {
    const all = ENDINGS.map((ending) => newMessage(requested, caller, ending))
    await repeatUntilAccepted(crash, all)
    const untilCalled = await slowDown(crash, all.length, FROZEN_CALL_MS)
    await frozen.start()
    await untilCalled()
    await during(faults, frozen.name, 'frozen', async () => {
      frozen.freeze()
      const isDone = async () => new Set((await readEntries(network, seq)).map(({ messageId }) => messageId)).size === all.length
      await until('the network has dealt with all calls', isDone, TIMEOUT_MS)
      const { rows } = await crash.checkPool.query<{ lease: string }>('select distinct lease from queue where leased_until > now()')
      assert.equal(rows.length, 1, 'one claim has them all')
      const untilOtherCalled = await slowDown(crash, all.length, OTHER_CALL_MS)
      await other.start()
      await endLeases(crash, [frozen.name], ['queue'])
      await untilOtherCalled()
      const before = await readEverything(crash)
      frozen.thaw()
      await until('all its results are refused', async () => (await readMetric(frozen, REFUSED)) === all.length, TIMEOUT_MS)
      assert.deepEqual(await readEverything(crash), before)
      const byOther = 'queue where leased_until > now() and lease is distinct from $1'
      assert.equal(await countRows(crash, byOther, [rows[0]?.lease]), all.length, 'the other worker has them all under way')
    })
    await network.ask('faults', undefined, 'DELETE')
    await until('all are sent or refused', async () => (await countRows(crash, `messages where status = 'ACCEPTED'`)) === 0, TIMEOUT_MS)
    await releaseReceipts()
    await untilDelivered(crash)
    assert.equal(await readMetric(other, REFUSED), 0)
    assert.ok(frozen.isRunning())
  })
}
