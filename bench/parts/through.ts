import { setTimeout as sleep } from 'node:timers/promises'
import { type Cost, cpuLine, reportCosts, showCost, TOTAL, WAL_BYTES, WAL_RECORDS } from '../measure/costs.ts'
import { atLeast, atMost, grouped, labelled, once } from '../measure/figures.ts'
import { type Rows, type RowsByTable, readRows, rowsOfEach, STATISTICS_DELAY_MS, sumOfRows } from '../measure/postgres-statistics.ts'
import { type Rate, type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import { LEAD_IN, openWholeWay, type WholeWay } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { startNetwork } from '../setup/network.ts'
import { openClient } from '../setup/postgres.ts'

// Messages from acceptance to READ: how many a second, and the cost of each in CPU time, rows and WAL. The network alone takes turns with the
// servers, since no server can be faster.

const TARGETS = {
  [cpuLine('postgres')]: atMost(280),
  [cpuLine('simulator')]: atMost(330),
  [TOTAL]: atMost(800),
  [WAL_RECORDS]: atMost(22),
  [WAL_BYTES]: atMost(3_200),
}
const HOT_TARGET = atLeast(97)

// V8 compiles for tens of thousands of messages: in short rounds that was 11 to 15 % of the CPU time.
export function planOf(quick: boolean): { warmUp: number; count: number; rounds: number } {
  return quick ? { warmUp: 500, count: 1_000, rounds: 3 } : { warmUp: 50_000, count: 10_000, rounds: 5 }
}

export async function measureThrough(bench: Bench): Promise<void> {
  const { count, rounds } = planOf(bench.quick)
  const network = await startNetwork(bench.delayMs)
  const alone: Side<Rate> = sideOf('network alone', () => network.run(count))
  const ways: WholeWay[] = []
  for (const server of bench.servers) ways.push(await openWholeWay(server, bench.delayMs))
  const sides = ways.map((way, index) => sideOf(bench.servers[index]?.label ?? '', () => way.run(count)))
  await alone.run()
  await warmUpAll(bench, ways)
  const before = await readAllRows(ways)
  await takeTurns<Rate>(bench, [alone, ...sides], { rounds, show: showCost })
  const after = await readAllRows(ways)
  for (const [index, side] of sides.entries()) {
    const targets = side === sides.at(-1) ? TARGETS : undefined
    reportCosts(bench, side, { base: index === 0 ? undefined : sides[0], rateLimit: alone, targets })
    const rows = rowsOfEach(before[index] as RowsByTable, after[index] as RowsByTable, (count + LEAD_IN) * rounds)
    reportRows(bench, side, rows, side === sides.at(-1))
  }
}

export async function warmUpAll({ quick, say }: Bench, ways: WholeWay[]): Promise<void> {
  const { warmUp } = planOf(quick)
  for (const way of ways) {
    const { perSecond } = await way.run(warmUp)
    say(`warmed up with ${grouped(warmUp)} messages at ${grouped(perSecond)} a second`)
  }
}

async function readAllRows(ways: WholeWay[]): Promise<RowsByTable[]> {
  await sleep(STATISTICS_DELAY_MS)
  const all: RowsByTable[] = []
  for (const { service } of ways) {
    const { client, close } = await openClient(service.databaseUrl)
    all.push(await readRows(client))
    await close()
  }
  return all
}

function reportRows({ report, reportTable }: Bench, { label }: Side<Cost>, rows: RowsByTable, isLast: boolean): void {
  const { hot, updated } = sumOfRows(rows)
  const target = isLast ? HOT_TARGET : undefined
  report({ what: labelled(label, 'HOT share of all updates'), unit: '%', measured: once((100 * hot) / updated), target })
  const cells = (of: Rows) => [
    of.inserted.toFixed(2),
    of.updated.toFixed(2),
    of.updated === 0 ? '' : `${((100 * of.hot) / of.updated).toFixed(1)} %`,
    of.deleted.toFixed(2),
  ]
  reportTable({
    title: labelled(label, 'rows written for each message, by table'),
    head: ['table', 'inserted', 'updated', 'HOT', 'deleted'],
    rows: [...Object.entries(rows).map(([table, of]) => [table, ...cells(of)]), ['sum', ...cells(sumOfRows(rows))]],
  })
}
