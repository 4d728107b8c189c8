import assert from 'node:assert/strict'
import pg from 'pg'
import { NO_CAMPAIGN } from '../../../src/ids.ts'
import { COUNTED } from '../../../src/reports/counters.ts'
import { until } from '../../../test/support/until.ts'
import { BACKEND_KILLED } from '../../checks/processes.ts'
import { compareCounters } from '../../history/history.ts'
import { during } from '../../schedule/faults.ts'
import { say } from '../../support/progress.ts'
import { type Crash, countRows, TIMEOUT_MS, unlessUnavailable, whileKilled } from './support.ts'

// Folds of counters are ended between the delete of their deltas and the update of the totals. No count is lost, and none is doubled.

/** Locks the totals of this hour and the next, which may begin meanwhile. Returns how to unlock them. */
async function lockTotals({ database, callers }: Crash): Promise<() => Promise<void>> {
  const client = new pg.Client(database.url)
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query(
    `insert into report_totals as c (account_id, campaign_id, hour, ${COUNTED.join(', ')})
     select account, $2::uuid, date_trunc('hour', now(), 'UTC') + n * interval '1 hour', ${COUNTED.map(() => 0).join(', ')}
     from unnest($1::int[]) as account, generate_series(0, 1) as n order by 1, 2, 3
     on conflict (account_id, campaign_id, hour) do update set accepted = c.accepted`,
    [callers.map(({ accountId }) => accountId), NO_CAMPAIGN],
  )
  return async () => {
    await client.query('rollback').catch(() => {})
    await client.end().catch(() => {})
  }
}

type Fold = { pid: number; node: string }

/** Folds that have deleted their deltas, and wait for the totals. */
async function waitingFolds({ checkPool }: Crash): Promise<Fold[]> {
  const { rows } = await checkPool.query<Fold>(
    `select pid, replace(application_name, 'herald-', '') as node from pg_stat_activity
     where wait_event_type = 'Lock' and application_name like 'herald-%' and query like '%delete from report_deltas%'`,
  )
  return rows
}

async function assertCounted({ checkPool }: Crash, when: string): Promise<void> {
  const { compared, wrong } = await compareCounters(checkPool)
  assert.ok(compared > 0 && wrong.length === 0, `${when}: ${wrong.join('\n')}`)
}

type Unlock = () => Promise<void>

/** Each ends the folds that wait, and then unlocks the totals. */
const FAULTS: Record<string, (crash: Crash, folds: Fold[], unlock: Unlock) => Promise<void>> = {
  'kill of their nodes': async (crash, folds, unlock) => {
    const nodes = [...new Set(folds.map(({ node }) => node))]
    for (const { name, kill } of crash.nodes) if (nodes.includes(name)) await during(crash.faults, name, 'killed', kill)
    await assertCounted(crash, 'after the nodes are gone, and before their folds are')
    await unlock()
    await whileKilled(crash, nodes)
  },
  'the end of their sessions': async (crash, folds, unlock) => {
    const pids = folds.map(({ pid }) => pid)
    for (const pid of pids) await crash.checkPool.query('select pg_terminate_backend($1)', [pid])
    await until('they are gone', async () => (await waitingFolds(crash)).every(({ pid }) => !pids.includes(pid)), TIMEOUT_MS)
    await assertCounted(crash, 'after the sessions are gone')
    await unlock()
  },
  'kill of a PostgreSQL process': async (crash, [first], unlock) => {
    const isUp = async () => (await unlessUnavailable(() => crash.checkPool.query('select'))) !== undefined
    process.kill((first as Fold).pid, 'SIGKILL')
    await until('PostgreSQL has noticed', async () => !(await isUp()), TIMEOUT_MS)
    await until('PostgreSQL is back', isUp, TIMEOUT_MS)
    await unlock()
  },
}

export async function endFolds(crash: Crash): Promise<void> {
  for (let round = 0; round < (crash.isFull ? 20 : 1); round++) {
    for (const [fault, end] of Object.entries(FAULTS)) {
      await during(crash.faults, 'database', fault.includes('PostgreSQL') ? BACKEND_KILLED : 'locked', async () => {
        const unlock = await lockTotals(crash)
        const isWaiting = async () => {
          const folds = await waitingFolds(crash)
          return folds.length > 0 ? folds : undefined
        }
        const folds = await until('folds wait for the totals', isWaiting, TIMEOUT_MS)
        const deltas = await countRows(crash, 'report_deltas')
        await assertCounted(crash, 'while folds wait')
        await end(crash, folds, unlock)
        await assertCounted(crash, 'after the folds were ended')
        say(`${fault}: ${folds.length} folds waited, with ${deltas} deltas`)
      })
    }
  }
}
