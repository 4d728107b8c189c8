import { useEffect, useRef } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import type { Cell, Table } from '../../app/csv.ts'
import { type Page, withCursor } from '../../app/pages-of.ts'
import { useRun } from '../../app/run.ts'
import { saveCsv } from '../../app/save-csv.ts'
import { Button } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-reports.ts'

type Props = { title: string; file: string; table: (signal: AbortSignal) => Table | Promise<Table> }

/** Saves a table as a file. */
export function TableCsv({ title, file, table }: Props) {
  const { run, isBusy, problem } = useRun(() => {})
  const reading = useRef(new AbortController())
  useEffect(() => () => reading.current.abort(), [])
  const save = async () => {
    saveCsv(file, await table(reading.current.signal))
    return ''
  }
  return (
    <>
      <Button icon="download" isBusy={isBusy} aria-label={say.csvOf(title)} onClick={() => void run(save)}>
        {say.csv}
      </Button>
      {problem && <Problem problem={problem} />}
    </>
  )
}

const PAGE_SIZE = 200
/** Fifty requests. Longer lists are in the archive, which Herald streams. */
const MAX_ROWS = 10_000

/** Reads a list of the API, which is longer than what the page has read. `isCut`: it is even longer than the table. */
export async function readTable<Name extends string>(path: string, names: readonly Name[], signal: AbortSignal) {
  const rows: Cell[][] = []
  let cursor: string | undefined
  do {
    const page: Page<Record<Name, Cell>> = await ask(withCursor(path, cursor, PAGE_SIZE), { signal })
    rows.push(...page.items.map((item) => names.map((name) => item[name])))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && rows.length < MAX_ROWS)
  return { names, rows, isCut: cursor !== undefined }
}
