import { urlOf } from '../../app/api.ts'
import type { Table } from '../../app/csv.ts'
import { isAboutMessages } from '../../app/fresh.ts'
import type { Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { PageHead } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as paletteWords from '../../words/en-palette.ts'
import * as filterWords from '../../words/en-report-filters.ts'
import * as say from '../../words/en-reports.ts'
import { Part } from '../overview/part.tsx'
import { useRefreshed } from '../overview/refreshed.ts'
import { TableCsv } from './download.tsx'
import { type Campaign, ReportFilters } from './filters.tsx'
import { CampaignLists } from './lists.tsx'
import { NumbersTable, type Summary, summaryTable } from './numbers.tsx'
import { type Aggregations, aggregationsTable, OverTime } from './over-time.tsx'
import { isBackwards, reportsOf, type Wanted, wantedOf, withQuery } from './range.ts'
import './reports.css'

/** A report changes with each receipt, and costs more than a list. */
const OFTEN = { everyMs: 5_000, isAbout: isAboutMessages }

/** The report of single messages or of a campaign: its numbers, a plot, and the files. */
export function ReportsPage({ place }: { place: Place }) {
  const { account } = useFrame()
  const wanted = wantedOf(place.query)
  const { campaignId, days } = wanted
  const { value } = useResource<Campaign>(campaignId && `/accounts/${account.accountId}/campaigns/${encodeURIComponent(campaignId)}`)
  return (
    <>
      <PageHead title={pages.reports} note={say.note}>
        {account.role !== 'viewer' && !isBackwards(days) && <Exports {...wanted} />}
      </PageHead>
      <ReportFilters place={place} wanted={wanted} name={value?.name} />
      {!isBackwards(days) && <Report place={place} wanted={wanted} name={value?.name} />}
    </>
  )
}

function Exports({ campaignId, days }: Wanted) {
  const { account } = useFrame()
  const [kind, range, text] = campaignId === undefined ? ['export', days, say.exportCsv] : ['all-data-export', {}, say.exportZip]
  const report = withQuery(`${reportsOf(campaignId)}/${kind}`, { ...range, bom: 'true' })
  return (
    <>
      <AsCurl path={report} />
      <ButtonLink icon="download" kind="primary" href={urlOf(`/accounts/${account.accountId}/${report}`)} download>
        {text}
      </ButtonLink>
    </>
  )
}

type ReportProps = { place: Place; wanted: Wanted; name: string | undefined }

function Report({ place, wanted, name }: ReportProps) {
  const { campaignId, days, interval } = wanted
  const { accountId } = useFrame().account
  const of = reportsOf(campaignId)
  const isSingle = campaignId === undefined
  const reports = {
    summary: withQuery(`${of}/summary`, days),
    aggregations: withQuery(`${of}/aggregations`, { ...days, ...(!isSingle && { interval }) }),
  }
  const summary = useRefreshed<Summary>(`/accounts/${accountId}/${reports.summary}`, OFTEN)
  const aggregations = useRefreshed<Aggregations>(`/accounts/${accountId}/${reports.aggregations}`, OFTEN)
  // Such as a campaign that does not exist: the plot would have the same problem.
  if (summary.problem && summary.value === undefined) return <Problem problem={summary.problem} onRetry={summary.reload} />
  const plot = say.overTime[interval]
  return (
    <div class="report">
      <h2>{isSingle ? filterWords.single : `${paletteWords.kinds.campaigns} ${name ?? campaignId}`}</h2>
      <div class="report-parts">
        <Part
          title={plot}
          report={reports.aggregations}
          resource={aggregations}
          action={(value) => <Csv wanted={wanted} title={plot} what={`by-${interval}`} table={aggregationsTable(value)} />}
        >
          {(value) => (
            <>
              <OverTime aggregations={value} />
              {isSingle && <p class="hint">{say.onlyDays}</p>}
            </>
          )}
        </Part>
        <Part
          title={say.numbers}
          report={reports.summary}
          resource={summary}
          action={(value) => <Csv wanted={wanted} title={say.numbers} what="summary" table={summaryTable(value)} />}
        >
          {(value) => (
            <>
              <NumbersTable summary={value} />
              <p class="hint">{say.numbersHint}</p>
            </>
          )}
        </Part>
      </div>
      {!isSingle && <CampaignLists place={place} campaignId={campaignId} days={days} />}
    </div>
  )
}

type CsvProps = { wanted: Wanted; title: string; what: string; table: Table }

/** Saves a part as a file, which has the campaign and the days in its name. */
function Csv({ wanted: { campaignId, days }, title, what, table }: CsvProps) {
  const of = campaignId === undefined ? 'messages' : `campaign-${campaignId}`
  return <TableCsv title={title} file={[of, ...Object.values(days), what].join('-')} table={() => table} />
}
