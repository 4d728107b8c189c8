import { dayOf } from '../data/report-messages.ts'
import { atMost, once, percentile } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import type { Account } from '../setup/accounts.ts'
import { createReportDatabase, openReader, type Reader, type ReportDatabase, startReportService } from '../setup/report-database.ts'
import { measurePages } from './report-pages.ts'

// Summaries and pages of lists over HTTP, of a campaign of a million messages and of a million sent one by one.

const SUMMARY_TARGET = atMost(20)
const WARM_UP = 20

export async function measureReports(bench: Bench): Promise<void> {
  const database = await createReportDatabase(bench)
  const reader = openReader(await startReportService(database))
  await measureSummaries(bench, database, reader)
  await measurePages(bench, database, reader)
  await reader.close()
}

/** One after the other over one connection. */
async function measureSummaries({ quick, report, reportTable }: Bench, database: ReportDatabase, { get }: Reader): Promise<void> {
  const { campaigner, sender, border, messages } = database
  const each = quick ? 50 : 500
  const range = `?from=${dayOf(border, -1)}&to=${dayOf(border, 1)}`
  const campaign = `/reports/campaigns/${campaigner.campaignId}`
  const asked: [what: string, path: string, account: Account][] = [
    ['for comparison: the list of agents, one', '/agents', sender],
    ['summary of the campaign', `${campaign}/summary`, campaigner],
    ['summary of the campaign, three days', `${campaign}/summary${range}`, campaigner],
    ['summary of the messages', '/reports/messages/summary', sender],
    ['summary of the messages, three days', `/reports/messages/summary${range}`, sender],
    ['aggregations of the campaign, by hour', `${campaign}/aggregations?interval=hour`, campaigner],
    ['aggregations of the messages, by day', '/reports/messages/aggregations', sender],
  ]
  const rows: string[][] = []
  for (const [what, path, account] of asked) {
    for (let n = 0; n < WARM_UP; n += 1) await get(path, account)
    const times: number[] = []
    for (let n = 0; n < each; n += 1) times.push((await get(path, account)).ms)
    rows.push([what, ...[0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(1))])
    const isSummary = what.startsWith('summary')
    if (isSummary) report({ what: `${what}, 99 %`, unit: 'ms', measured: once(percentile(times, 0.99)), target: SUMMARY_TARGET })
  }
  reportTable({ title: `${each} of each, one after the other, ms`, head: ['', '50 %', '99 %', 'longest'], rows })
  const { body } = await get<{ accepted: number }>(`${campaign}/summary`, campaigner)
  if (body.accepted !== messages) throw new Error(`${body.accepted} of ${messages} messages are in the summary`)
}
