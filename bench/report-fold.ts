import { foldReports } from '../server/src/reports/counters.ts'
import { cpuMs } from './proc.ts'
import type { Scene } from './report-scene.ts'

// How fast changes of counters are added up: while no service runs, by the function that the service calls every second.

const ACCOUNTS = 20
const CAMPAIGNS = 3
const HOURS = 2

/** Each row as a statement leaves it that has moved some messages; of accounts that are not there, so that no report is wrong afterwards. */
const WRITE_CHANGES = `
  insert into report_deltas (account_id, campaign_id, hour, sent, delivered, read)
  select 1000000 + n % ${ACCOUNTS}, md5((n / ${ACCOUNTS} % ${CAMPAIGNS})::text)::uuid, date_trunc('hour', now(), 'UTC') - n % ${HOURS} * interval '1 hour', 20, 20, 10
  from generate_series(1, $1::int) as n`

export async function measureFold({ pool, bare }: Scene, changes: number): Promise<void> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  while ((await foldReports(pool)).mayBeMore);
  await bare.query(WRITE_CHANGES, [changes])
  await bare.query('checkpoint')
  const before = { at: performance.now(), cpu: cpuMs(rows[0] as { pid: number }) }
  while ((await foldReports(pool)).mayBeMore);
  const seconds = (performance.now() - before.at) / 1_000
  const cpu = cpuMs(rows[0] as { pid: number })
  const left = await bare.query('select from report_deltas')
  if (left.rowCount !== 0) throw new Error(`${left.rowCount} changes were not folded`)
  await bare.query('delete from report_totals where account_id >= 1000000')
  const each =
    cpu === undefined || before.cpu === undefined ? '' : `, ${(((cpu - before.cpu) * 1_000) / changes).toFixed(1)} µs of CPU each`
  process.stdout.write(`\n${Math.round(changes / seconds).toLocaleString('en')} changes of counters folded in a second${each}\n`)
}
