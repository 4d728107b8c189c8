import type { Server } from './checkouts.ts'
import { byMedian, type Figure, once, type Report, type ReportTable } from './lines.ts'
import { cpuOfEach, linesOf, processesOf, ratesOf, totalsOf, walOfEach } from './side-lines.ts'
import { startNetwork } from './simulator-rate.ts'
import { sumOf } from './statistics.ts'
import { labelled, openSide, type Plan, type Side, takeTurns } from './whole-way.ts'

// How many messages a second go the whole way, from the request until they are READ, and what each costs of every process, of the rows and of
// the log. The network alone takes its turns too: no service beside it can surpass it.

const PART = 'through'
/** µs of CPU time, records and bytes for each message; HOT updates in percent. */
const TARGETS = { total: 800, cpu: { postgres: 280, simulator: 330 } as Record<string, number>, records: 22, bytes: 3_200, hot: 97 }

// V8 compiles for tens of thousands of messages: in short rounds that was 11 to 15 % of the CPU time.
export function planOf(quick: boolean): Plan {
  return quick ? { warmUp: 500, count: 1_000, rounds: 3 } : { warmUp: 50_000, count: 10_000, rounds: 5 }
}

export type Measuring = { quick: boolean; servers: Server[]; delayMs: number }

export async function measureThrough({ quick, servers, delayMs }: Measuring, report: Report, reportTable: ReportTable): Promise<void> {
  const plan = planOf(quick)
  const network = await startNetwork(delayMs)
  const sides: Side[] = []
  for (const server of servers) sides.push(await openSide(server, delayMs))
  const alone: number[] = []
  await network.run(plan.count)
  await takeTurns(PART, sides, plan, [async () => void alone.push(await network.run(plan.count))])
  for (const side of sides) {
    reportSide(report, sides, side, byMedian(alone))
    reportTable(tableOfRows(side))
  }
  for (const { stop } of [...sides, network]) await stop()
}

function reportSide(report: Report, sides: Side[], side: Side, network: Figure): void {
  const line = linesOf(PART, sides, side)
  report({ limit: { what: 'network alone', ...network }, ...line('accepted to READ', 'a second', ratesOf) })
  for (const name of processesOf(side)) {
    const most = TARGETS.cpu[name]
    report(line(`CPU of each message: ${name}`, 'µs', cpuOfEach(name), most === undefined ? undefined : { of: 'measured', most }))
  }
  report(line('CPU of each message: service and PostgreSQL', 'µs', totalsOf, { of: 'measured', most: TARGETS.total }))
  report(line('WAL records of each message', '', walOfEach('records'), { of: 'measured', most: TARGETS.records }))
  report(line('commits of each message', '', walOfEach('commits')))
  report(line('WAL of each message, without page images', 'bytes', walOfEach('bytes'), { of: 'measured', most: TARGETS.bytes }))
  report(line('WAL of each message, page images', 'bytes', walOfEach('pageBytes')))
  report(line('HOT share of all updates', '%', hotShareOf, { of: 'measured', least: TARGETS.hot }))
}

function hotShareOf({ rows }: Side): Figure {
  const { hot, updated } = sumOf(rows)
  return once((100 * hot) / updated)
}

function tableOfRows({ label, rows }: Side) {
  const written = ({ inserted, updated, hot, deleted }: ReturnType<typeof sumOf>) => [
    inserted.toFixed(2),
    updated.toFixed(2),
    updated === 0 ? '' : `${((100 * hot) / updated).toFixed(1)} %`,
    deleted.toFixed(2),
  ]
  return {
    title: labelled(label, 'rows written for each message, by table'),
    head: ['table', 'inserted', 'updated', 'HOT', 'deleted'],
    rows: [...Object.entries(rows).map(([table, of]) => [table, ...written(of)]), ['sum', ...written(sumOf(rows))]],
  }
}
