import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { createAccount } from '../../server/src/accounts/accounts.ts'
import { importGroup } from '../../server/src/groups/import.ts'
import { once } from '../measure/figures.ts'
import { watchMemory } from '../measure/process-usage.ts'
import { type Rate, reportRates, type Side, showRate, sideOf, takeTurns, timed } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { temporaryDirectory } from '../setup/files.ts'
import { createDatabase, type Database, startPostgres } from '../setup/postgres.ts'

// The import of a group from a CSV file of six columns. The limit is a bare COPY of the same rows, already in its format, into an empty table
// with the same columns, checks and key. The program and PostgreSQL share the machine, so only the ratio means something elsewhere.

const ROUNDS = 3
const READ_BYTES = 256 * 1024
const LINES_A_WRITE = 10_000
const CITIES = ['Warszawa', 'Kraków', 'Gdańsk', 'Poznań', 'Łódź']
const COLUMNS = 'account_id, group_number, phone, consents, control_group, active, attributes'
const MB = 1_000_000

export async function measureImport(bench: Bench): Promise<void> {
  const rows = bench.quick ? 100_000 : 1_000_000
  const directory = temporaryDirectory()
  const [csv, copy] = [join(directory, 'group.csv'), join(directory, 'group.copy')]
  await write(csv, 'phone,consents,controlGroup,status,firstName,city\n', rows, csvLine)
  await write(copy, '', rows, copyLine)
  const database = await createDatabase(await startPostgres())
  await database.client.query('create table bare (like group_members including all)')
  const { accountId } = await createAccount(database.pool, 'Bench', ['rcs'])
  const importCsv = () => importFile(database, accountId, { path: csv, rows })
  const bare = sideOf('bare COPY, same key', () => bareCopy(database, { path: copy, rows }))
  const sides: Side<Rate>[] = [
    sideOf('import into a new group', async () => {
      await empty(database, 'group_members')
      return await importCsv()
    }),
    // In either order of turns, it follows an import.
    sideOf('import of the same file again', importCsv),
  ]
  const endWatching = watchMemory(process)
  await takeTurns(bench, [bare, ...sides], { rounds: ROUNDS, show: showRate })
  const { before, peak } = endWatching()
  reportRates(bench, bare, undefined)
  for (const side of sides) reportRates(bench, side, bare)
  const limit = { what: 'before', ...once(before / MB) }
  bench.report({ what: 'memory of this process at its peak', unit: 'MB', measured: once(peak / MB), limit })
}

/** All different, in no order: 1,000,003 is a prime, so no multiple repeats. */
function phone(index: number): string {
  return `+48${500_000_000 + ((index * 48_271) % 1_000_003) * 97}`
}

function csvLine(index: number): string {
  const known = `${phone(index)},${index % 3 ? '1;2;3' : '7'},${index % 50 ? '' : 'true'},${index % 20 ? 'active' : 'inactive'}`
  return `${known},Name${index},${CITIES[index % CITIES.length]}\n`
}

function copyLine(index: number): string {
  const known = `1\t1\t${phone(index)}\t${index % 3 ? '{1,2,3}' : '{7}'}\t${index % 50 ? 'f' : 't'}\t${index % 20 ? 't' : 'f'}`
  return `${known}\t${JSON.stringify({ firstName: `Name${index}`, city: CITIES[index % CITIES.length] })}\n`
}

async function write(path: string, header: string, rows: number, line: (index: number) => string): Promise<void> {
  function* chunks(): Generator<string> {
    yield header
    for (let from = 0; from < rows; from += LINES_A_WRITE) {
      yield Array.from({ length: Math.min(LINES_A_WRITE, rows - from) }, (_, n) => line(from + n)).join('')
    }
  }
  await pipeline(Readable.from(chunks()), createWriteStream(path))
}

type File = { path: string; rows: number }

async function empty({ client }: Database, table: string): Promise<void> {
  await client.query(`truncate ${table}`)
  await client.query('checkpoint')
}

const noCpu = () => ({})

async function bareCopy(database: Database, { path, rows }: File): Promise<Rate> {
  await empty(database, 'bare')
  const source = createReadStream(path, { highWaterMark: READ_BYTES })
  const copy = database.client.query(copyFrom(`copy bare (${COLUMNS}) from stdin`))
  return await timed(rows, noCpu, () => pipeline(source, copy))
}

async function importFile({ pool }: Database, accountId: number, { path, rows }: File): Promise<Rate> {
  return await timed(rows, noCpu, async () => {
    const { imported } = await importGroup(pool, { accountId, number: 1, source: createReadStream(path, { highWaterMark: READ_BYTES }) })
    if (imported !== rows) throw new Error(`${imported} of ${rows} rows were imported`)
  })
}
