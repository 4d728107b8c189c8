import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { finished, pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { migrate } from '../server/src/db/migrate.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { importGroup } from '../server/src/groups/import.ts'
import { startPostgres } from './postgres.ts'
import { remove, temporaryDirectory } from './temporary.ts'

// How fast a group is imported: `npm run bench:import`. The yardstick is a bare COPY of the same rows, written for it beforehand, into an
// empty table of the same columns, checks and key. Program and PostgreSQL share the machine, so only the ratio of one run tells something.

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const ROWS = values.quick ? 100_000 : 1_000_000
const ROUNDS = 3
const READ_BYTES = 256 * 1024
const WRITE_CHARACTERS = 1024 * 1024
const CITIES = ['Warszawa', 'Kraków', 'Gdańsk', 'Poznań', 'Łódź']
const COLUMNS = 'account_id, group_number, phone, consents, control_group, active, attributes'

type Round = { what: string; seconds: number }

/** All different, in no order: 1,000,003 is a prime, so that no multiple comes twice. */
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

async function write(path: string, header: string, line: (index: number) => string): Promise<void> {
  const file = createWriteStream(path)
  let text = header
  for (let index = 0; index < ROWS; index += 1) {
    text += line(index)
    if (text.length < WRITE_CHARACTERS) continue
    if (!file.write(text)) await new Promise((resolve) => file.once('drain', resolve))
    text = ''
  }
  file.end(text)
  await finished(file)
}

async function timed(what: string, work: () => Promise<unknown>): Promise<Round> {
  const startedAt = performance.now()
  await work()
  return { what, seconds: (performance.now() - startedAt) / 1000 }
}

async function bareCopy(what: string, client: pg.Client, { table, path }: { table: string; path: string }): Promise<Round> {
  await client.query(`truncate ${table}`)
  await client.query('checkpoint')
  return timed(what, () =>
    pipeline(createReadStream(path, { highWaterMark: READ_BYTES }), client.query(copyFrom(`copy ${table} (${COLUMNS}) from stdin`))),
  )
}

async function herald(what: string, pool: Pool, { accountId, path }: { accountId: number; path: string }): Promise<Round> {
  return timed(what, async () => {
    const source = createReadStream(path, { highWaterMark: READ_BYTES })
    const { imported } = await importGroup(pool, { accountId, number: 1, source })
    if (imported !== ROWS) throw new Error(`${imported} of ${ROWS} were imported`)
  })
}

async function rounds(pool: Pool, client: pg.Client, directory: string): Promise<Round[][]> {
  const csv = join(directory, 'group.csv')
  const copy = join(directory, 'group.copy')
  await write(csv, 'phone,consents,controlGroup,status,firstName,city\n', csvLine)
  await write(copy, '', copyLine)
  const { accountId } = await createAccount(pool, 'Bench', ['rcs'])
  await client.query('create table bare (like group_members including all)')
  await client.query('create table without_key (like group_members including all excluding indexes)')
  const all: Round[][] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const keyed = await bareCopy('bare COPY, same key', client, { table: 'bare', path: copy })
    const keyless = await bareCopy('bare COPY, no key', client, { table: 'without_key', path: copy })
    await client.query('truncate group_members')
    await client.query('checkpoint')
    const fresh = await herald('import into a new group', pool, { accountId, path: csv })
    const again = await herald('import of the same file again', pool, { accountId, path: csv })
    all.push([keyed, keyless, fresh, again])
  }
  return all
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

function print(all: Round[][]): void {
  const [first = []] = all
  process.stdout.write(`${''.padEnd(34)}${['rows a second', 'of the bare COPY', 'each round'].map((cell) => cell.padStart(20)).join('')}\n`)
  first.forEach(({ what }, index) => {
    const seconds = all.map((round) => round[index]?.seconds as number)
    const ratios = all.map((round) => (round[0] as Round).seconds / (round[index] as Round).seconds)
    const cells = [
      Math.round(ROWS / median(seconds)).toLocaleString('en'),
      median(ratios).toFixed(2),
      ratios.map((ratio) => ratio.toFixed(2)).join(' '),
    ]
    process.stdout.write(`${what.padEnd(34)}${cells.map((cell) => cell.padStart(20)).join('')}\n`)
  })
  process.stdout.write(`peak memory of this process: ${Math.round(process.resourceUsage().maxRSS / 1024)} MB\n`)
}

const directory = temporaryDirectory()
const server = await startPostgres()
const pool = createPool(server.connection, () => {})
const client = new pg.Client(server.connection)
try {
  await migrate(pool)
  await client.connect()
  print(await rounds(pool, client, directory))
} finally {
  await client.end()
  await pool.end()
  await server.stop()
  remove(directory)
}
