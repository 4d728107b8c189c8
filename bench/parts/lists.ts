import { fillList, type Listed, SHAPES } from '../data/listed-messages.ts'
import { atMost, grouped, median, once, percentile } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import { createBenchAgent, createSender } from '../setup/accounts.ts'
import { createDatabase, startPostgres } from '../setup/postgres.ts'
import { openReader, type Reader, startReportService } from '../setup/report-database.ts'

// Pages of GET /v1/messages with each combination of filters, of an account with ten million messages.

const TARGET_MS = 50
const LIMIT = 200

/** Chooses a value of a filter for the n-th request. */
type Filter = (listed: Listed, n: number) => string

const numberOf = ({ messages }: Listed, n: number) => (n * 7_368_787) % messages

const FILTERS: Record<string, Record<string, Filter>> = {
  recipient: { recipient: (listed, n) => SHAPES.recipient(numberOf(listed, n)) },
  clientReferenceId: { clientReferenceId: (listed, n) => SHAPES.clientReferenceId(20 * Math.floor(numberOf(listed, n) / 20) + 16) },
  'a large campaign': { campaignId: ({ campaignIds }) => campaignIds[0] as string },
  'a rare agent': { agentId: ({ agents }) => agents[1] as string },
  'a common status': { status: () => 'READ' },
  'a rare status': { status: () => 'EXPIRED' },
  'waiting ones': { status: () => 'ACCEPTED,SENDING' },
  test: { test: () => 'true' },
  'a day': {
    acceptedFrom: ({ from, to }, n) => dayWithin(from, to, n, 0),
    acceptedTo: ({ from, to }, n) => dayWithin(from, to, n, 1),
  },
}

function dayWithin(from: Date, to: Date, n: number, plus: number): string {
  const days = Math.floor((to.getTime() - from.getTime()) / 86_400_000)
  return new Date(from.getTime() + (((n * 13) % days) + plus) * 86_400_000).toISOString()
}

/** Every set of filters in which no parameter is given twice. */
function combinations(): string[][] {
  let sets: string[][] = [[]]
  for (const name of Object.keys(FILTERS)) {
    const parameters = Object.keys(FILTERS[name] ?? {})
    const fitting = sets.filter((set) => !set.some((other) => Object.keys(FILTERS[other] ?? {}).some((one) => parameters.includes(one))))
    sets = [...sets, ...fitting.map((set) => [...set, name])]
  }
  return sets
}

function queryOf(listed: Listed, names: string[], sort: string, n: number): string {
  const values = names.flatMap((name) => Object.entries(FILTERS[name] ?? {}).map(([parameter, choose]) => [parameter, choose(listed, n)]))
  return `${new URLSearchParams([...values, ['sort', sort], ['limit', String(LIMIT)]])}`
}

type Page = { items: unknown[]; nextCursor: string | null }

/** The first pages, and for every other request the page behind it. */
async function measureSet({ get }: Reader, listed: Listed, names: string[], each: number): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < each; n += 1) {
    const path = `/messages?${queryOf(listed, names, n % 2 === 0 ? '-acceptedAt' : 'acceptedAt', n)}`
    const { body, ms } = await get<Page>(path, listed.account)
    times.push(ms)
    if (n % 4 < 2 || body.nextCursor === null) continue
    times.push((await get<Page>(`${path}&cursor=${body.nextCursor}`, listed.account)).ms)
  }
  return times
}

export async function measureLists({ quick, report, reportTable, say }: Bench): Promise<void> {
  const messages = quick ? 100_000 : 10_000_000
  const database = await createDatabase(await startPostgres({ max_wal_size: '16GB' }))
  await createBenchAgent(database.pool)
  const account = await createSender(database.pool)
  const listed = await fillList({ ...database, account, say }, messages)
  const reader = openReader(await startReportService(database))
  const each = quick ? 2 : 40
  const sets: { what: string; times: number[] }[] = []
  for (const names of combinations()) {
    await measureSet(reader, listed, names, 2)
    let times = await measureSet(reader, listed, names, each)
    // A pause of a shared machine spoils one set. A slow set is slow the second time too.
    if (!quick && percentile(times, 0.99) >= TARGET_MS) times = await measureSet(reader, listed, names, each)
    sets.push({ what: names.join(', ') || 'no filter', times })
  }
  await reader.close()
  const p99 = ({ times }: { times: number[] }) => percentile(times, 0.99)
  const slowest = sets.toSorted((a, b) => p99(b) - p99(a))
  const rows = slowest.slice(0, 10).map(({ what, times }) => [what, ...[median(times), percentile(times, 0.99)].map((ms) => ms.toFixed(1))])
  reportTable({
    title: `${sets.length} combinations of filters, ${grouped(messages)} messages, ms`,
    head: ['slowest', '50 %', '99 %'],
    rows,
  })
  const [worst] = slowest as [{ what: string; times: number[] }]
  report({
    what: `pages of the slowest combination, ${worst.what}, 99 %`,
    unit: 'ms',
    measured: once(p99(worst)),
    target: atMost(TARGET_MS),
  })
  const all = sets.flatMap(({ times }) => times)
  report({ what: 'pages of all combinations, 50 %', unit: 'ms', measured: once(percentile(all, 0.5)) })
}
