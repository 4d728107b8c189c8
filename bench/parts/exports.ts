import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { to as copyTo } from 'pg-copy-streams'
import { type Column, MESSAGE_COLUMNS, RECIPIENT_COLUMNS } from '../../server/src/reports/exports/columns.ts'
import { atMost, once, ratioAtLeast } from '../measure/figures.ts'
import { cpuOfAll, watchMemory } from '../measure/process-usage.ts'
import { type Rate, reportRates, showRate, sideOf, takeTurns, timed } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import type { Account } from '../setup/accounts.ts'
import type { HeraldProcess } from '../setup/processes.ts'
import { createReportDatabase, openReader, type ReportDatabase, startReportService } from '../setup/report-database.ts'

// Exports against a bare COPY of the same rows and columns with PostgreSQL's own plan, and the memory of the service. The archive is compressed
// and has other files besides, so it has no target.

const CSV_TARGET = ratioAtLeast(0.5)
const MEMORY_TARGET = atMost(64)
const MIB = 2 ** 20

type Export = { what: string; path: string; account: Account; copy: string }

export async function measureExports(bench: Bench): Promise<void> {
  const database = await createReportDatabase(bench)
  const { sender, campaigner } = database
  const herald = await startReportService(database)
  await warmUp(herald, database, bench.quick ? 50 : 2_000)
  const endWatching = watchMemory(herald.child)
  await compare(bench, database, herald, {
    what: 'export of the messages, CSV',
    path: '/reports/messages/export',
    account: sender,
    copy: bareCopy(MESSAGE_COLUMNS, `m.account_id = ${sender.accountId} and m.campaign_id is null`),
  })
  await compare(bench, database, herald, {
    what: 'export of the campaign, ZIP',
    path: `/reports/campaigns/${campaigner.campaignId}/all-data-export`,
    account: campaigner,
    copy: bareCopy(RECIPIENT_COLUMNS, `m.campaign_id = '${campaigner.campaignId}'`),
  })
  const { before, peak } = endWatching()
  const growth = once((peak - before) / MIB)
  bench.report({ what: 'growth of the memory of the service at its peak', unit: 'MiB', measured: growth, target: MEMORY_TARGET })
}

/** By pages of a list: the heap of a new service grows with any work, and only what exports add counts. */
async function warmUp(herald: HeraldProcess, { campaigner }: ReportDatabase, pages: number): Promise<void> {
  const { get, close } = openReader(herald)
  for (let n = 0; n < pages; n++) await get(`/reports/campaigns/${campaigner.campaignId}/recipients/accepted?limit=200`, campaigner)
  await close()
}

async function compare(bench: Bench, database: ReportDatabase, herald: HeraldProcess, one: Export): Promise<void> {
  const bare = sideOf(`bare COPY for the ${one.what}`, () => runCopy(database, one, 'default'))
  const single = sideOf('bare COPY, by one process', () => runCopy(database, one, '0'))
  const ours = sideOf(one.what, () => runExport(database, herald, one))
  await countLines(database, herald, one)
  await bare.run()
  await takeTurns(bench, [bare, single, ours], { rounds: bench.quick ? 1 : 3, show: showRate })
  reportRates(bench, bare, undefined)
  reportRates(bench, single, bare)
  reportRates(bench, ours, bare, one.path.endsWith('/messages/export') ? CSV_TARGET : undefined)
}

/** The columns of an export whose value the service derives. */
const BARE_COLUMNS: Record<string, string> = {
  status: 'm.status',
  expiredAt: `case when m.status = 'EXPIRED' then m.expires_at end`,
  smsStatus: 'f.status',
  smsReason: 'f.reason',
}

function bareCopy(columns: readonly Column[], own: string): string {
  const selected = columns.map(({ name, sql }) => `${BARE_COLUMNS[name] ?? sql} as "${name}"`)
  return `copy (
    select ${selected.join(', ')}
    from messages m
    left join (
      select message_id, max(occurred_at) filter (where kind = 'clicked') as clicked_at, max(occurred_at) filter (where kind = 'replied') as replied_at,
        max(occurred_at) filter (where kind = 'opted-out') as opted_out_at
      from message_events where kind in ('clicked', 'replied', 'opted-out') group by message_id
    ) as did on did.message_id = m.id
    left join sms_fallbacks f on f.message_id = m.id
    where ${own} and not m.test order by m.id
  ) to stdout (format csv, header)`
}

const discard = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** `workers`: how many processes of PostgreSQL may help. */
async function runCopy({ client, messages, postmaster }: ReportDatabase, { copy }: Export, workers: string): Promise<Rate> {
  await client.query(`set max_parallel_workers_per_gather = ${workers}`)
  const cpu = () => cpuOfAll({}, postmaster)
  return await timed(messages, cpu, () => pipeline(client.query(copyTo(copy)), discard()))
}

async function runExport({ messages, postmaster }: ReportDatabase, herald: HeraldProcess, one: Export, sink = discard()): Promise<Rate> {
  const { open, close } = openReader(herald)
  const cpu = () => cpuOfAll({ service: herald.child }, postmaster)
  const rate = await timed(messages, cpu, async () => pipeline(await open(one.path, one.account), sink))
  await close()
  return rate
}

/** Fails unless the CSV has a line for each message. */
async function countLines(database: ReportDatabase, herald: HeraldProcess, one: Export): Promise<void> {
  let lines = 0
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', at + 1)) lines += 1
      done()
    },
  })
  await runExport(database, herald, one, sink)
  const isWrong = one.path.endsWith('/messages/export') && lines !== database.messages + 1
  if (isWrong) throw new Error(`the export has ${lines} lines for ${database.messages} messages`)
}
