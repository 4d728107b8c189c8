import { finished } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { requireAccount } from '../accounts/accounts.ts'
import { refuseBeyondQuota } from '../accounts/quotas.ts'
import { countUsage } from '../accounts/usage.ts'
import type { RecordChange } from '../audit/record.ts'
import type { Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { readRecords } from './csv.ts'
import type { CsvRecord } from './csv-records.ts'
import { createGroup, type GroupKey, LONG_QUERY, LONG_STATEMENTS } from './groups.ts'
import { memberBytes } from './member-bytes.ts'
import { type Columns, readHeader, readMember } from './members.ts'

// A file is copied into a temporary table in chunks, and from there into the group in one transaction: a campaign sees all of it or
// nothing, and a killed import changes nothing and can be run again. Reading the file holds no transaction open, however slow the file is:
// an open transaction would keep VACUUM from cleaning up every table.
//
// Measured for a million new members, in seconds of the database's CPU time: 8.8 by a bare COPY with the key; 1.9 into the temporary table,
// while the file is being read, and then 7.1 from there by an insert in the order of the key (9.5 in the order of the file; 12.7 with `on
// conflict`, which searches the index twice for each row). The `merge` below takes no longer than the insert.

type Import = {
  accountId: number
  number: number
  name?: string | undefined
  source: AsyncIterable<Uint8Array>
  onProgress?: (progress: ImportProgress) => void
  /** Called in the transaction that changes the group, with the counts. */
  record?: RecordChange | undefined
}

/** `rows` and `bytes`: how much of the file has been read so far; in the phase `writing`, how much is being written. */
export type ImportProgress = { phase: 'reading' | 'writing'; rows: number; bytes: number }

type RejectedLine = { line: number; reason: string }

export type ImportResult = {
  group: number
  /** Distinct numbers of the file that are in the group now. */
  imported: number
  /** Numbers of `imported` that were already members with the same data. */
  unchanged: number
  /** Lines whose number occurs again further down; the last line counts. */
  repeated: number
  /** All rejected lines; `rejected` has the first thousand. */
  rejectedLines: number
  rejected: RejectedLine[]
}

const MAX_REJECTED_SHOWN = 1_000
// Some 15,000 members: a COPY of a tenth of a second, far below the statement timeout of the pool.
const CHUNK_BYTES = 1024 * 1024

/** Imports a file into a group. Changes nothing if no line can be imported. Concurrent imports into one group run one after the other. */
export async function importGroup(pool: Pool, { source, onProgress = () => {}, record, ...group }: Import): Promise<ImportResult> {
  await requireAccount(pool, group.accountId)
  const client = await pool.connect()
  // Without a listener, an `error` event would end the process. The next statement fails anyway, and its error reaches the caller.
  client.on('error', () => {})
  try {
    await client.query(ARRIVALS)
    const { staged, bytes, rejectedLines, rejected } = await stage(client, source, onProgress)
    if (staged === 0) return { group: group.number, imported: 0, unchanged: 0, repeated: 0, rejectedLines, rejected }
    onProgress({ phase: 'writing', rows: staged, bytes })
    const counts = await moveIntoGroup(client, group, { staged, rejectedLines }, record)
    return { ...counts, rejected }
  } finally {
    // Close the connection instead of returning it to the pool: that drops the temporary table and, after a failure, the transaction.
    client.release(true)
  }
}

const ARRIVALS = `create temporary table arrivals (
  phone text collate "C" not null,
  consents integer[] not null,
  control_group boolean not null,
  active boolean not null,
  time_zone text,
  attributes json,
  line integer not null
)`

type Staged = { staged: number; bytes: number; rejectedLines: number; rejected: RejectedLine[] }

/** Reads the next chunk while the database stores the previous one. */
async function stage(client: pg.ClientBase, source: AsyncIterable<Uint8Array>, onProgress: (progress: ImportProgress) => void) {
  const result: Staged = { staged: 0, bytes: 0, rejectedLines: 0, rejected: [] }
  let columns: Columns | undefined
  let chunk: Buffer[] = []
  let writing: Promise<void> = Promise.resolve()
  for await (const batch of readRecords(countBytes(source, result))) {
    const records = columns === undefined ? batch.slice(1) : batch
    columns ??= headerOf(batch[0])
    chunk.push(Buffer.from(readBatch(records, columns, result)))
    if (chunk.reduce((sum, rows) => sum + rows.length, 0) >= CHUNK_BYTES) {
      await writing
      writing = copy(client, chunk)
      // Awaited before the next chunk. Until then, mark the promise as handled.
      writing.catch(() => {})
      chunk = []
    }
    onProgress({ phase: 'reading', rows: result.staged + result.rejectedLines, bytes: result.bytes })
  }
  if (columns === undefined) throw new OperatorError('The file is empty; its first line must name the columns.')
  await writing
  await copy(client, chunk)
  return result
}

async function* countBytes(source: AsyncIterable<Uint8Array>, result: Staged): AsyncGenerator<Uint8Array> {
  for await (const bytes of source) {
    result.bytes += bytes.length
    yield bytes
  }
}

function headerOf(record: CsvRecord | undefined): Columns {
  if (record === undefined || 'problem' in record) throw new OperatorError(`The header can't be read: ${record?.problem}.`)
  return readHeader(record.fields)
}

/** Returns rows for COPY. */
function readBatch(records: CsvRecord[], columns: Columns, result: Staged): string {
  let rows = ''
  for (const record of records) {
    const member = 'problem' in record ? record : readMember(record.fields, columns)
    if ('row' in member) {
      rows += `${member.row}\t${record.line}\n`
      result.staged += 1
    } else {
      if (result.rejectedLines < MAX_REJECTED_SHOWN) result.rejected.push({ line: record.line, reason: member.problem })
      result.rejectedLines += 1
    }
  }
  return rows
}

async function copy(client: pg.ClientBase, chunk: Buffer[]): Promise<void> {
  const stream = client.query(copyFrom('copy arrivals (phone, consents, control_group, active, time_zone, attributes, line) from stdin'))
  for (const rows of chunk) stream.write(rows)
  stream.end()
  await finished(stream)
}

type Target = GroupKey & { name?: string | undefined }

/** Moves the rows from the temporary table into the group, and counts them. */
async function moveIntoGroup(
  client: pg.ClientBase,
  group: Target,
  { staged, rejectedLines }: Pick<Staged, 'staged' | 'rejectedLines'>,
  record: RecordChange = async () => {},
): Promise<Omit<ImportResult, 'rejected'>> {
  await client.query('begin isolation level read committed')
  await client.query(`${LONG_STATEMENTS}; set local work_mem = '64MB'`)
  const repeated = await dropRepeated(client)
  const generation = await createGroup(client, group, LONG_QUERY)
  const written = await merge(client, group, generation)
  await countMembers(client, group)
  const imported = staged - repeated
  const counts = { group: group.number, imported, unchanged: imported - written, repeated, rejectedLines }
  await record(client, counts)
  const { command } = await client.query({ text: 'commit', ...LONG_QUERY })
  if (command !== 'COMMIT') throw new Error('the import was rolled back because a statement failed')
  return counts
}

/** Keeps only the last line of each number. */
async function dropRepeated(client: pg.ClientBase): Promise<number> {
  const { rowCount } = await client.query({
    text: `delete from arrivals a
      using (select phone, max(line) as line from arrivals group by phone having count(*) > 1) as last
      where a.phone = last.phone and a.line < last.line`,
    ...LONG_QUERY,
  })
  return rowCount ?? 0
}

/**
 * Forces a merge join in the order of the key, whatever the planner knows of the tables' sizes. The lock of the group keeps other transactions
 * from adding members meanwhile; without it, a number that two transactions add would fail here. Unchanged rows are not written, since writing
 * them would take most of the time of an import that changes little.
 */
async function merge(client: pg.ClientBase, { accountId, number }: Target, generation: number): Promise<number> {
  await client.query('set local enable_hashjoin = off; set local enable_nestloop = off')
  const { rowCount } = await client.query({
    text: `merge into group_members m
      using (select * from arrivals order by phone) as a
      on m.account_id = $1 and m.group_number = $2 and m.phone = a.phone
      when matched and (
        (m.consents, m.control_group, m.active, m.time_zone) is distinct from (a.consents, a.control_group, a.active, a.time_zone)
        or m.attributes::text is distinct from a.attributes::text) then
        update set consents = a.consents, control_group = a.control_group, active = a.active, time_zone = a.time_zone, attributes = a.attributes
      when not matched then
        insert (account_id, group_number, phone, consents, control_group, active, time_zone, attributes, generation)
        values ($1, $2, a.phone, a.consents, a.control_group, a.active, a.time_zone, a.attributes, $3)`,
    values: [accountId, number, generation],
    ...LONG_QUERY,
  })
  return rowCount ?? 0
}

/** Counts the members and their bytes, and refuses an import beyond the quota. */
async function countMembers(client: pg.ClientBase, { accountId, number }: Target): Promise<void> {
  const { rows } = await client.query<{ bytes: number }>({ text: COUNT_MEMBERS, values: [accountId, number], ...LONG_QUERY })
  await refuseBeyondQuota(client, accountId, { storedBytes: rows[0]?.bytes ?? 0 })
}

const COUNT_MEMBERS = `
  with old as materialized (
    select bytes from groups where account_id = $1 and number = $2
  ), all_members as materialized (
    select count(*) as members, coalesce(sum(${memberBytes('m')}), 0) as bytes
    from group_members m where m.account_id = $1 and m.group_number = $2
  ), more as (
    update groups g set members = a.members, bytes = a.bytes from all_members a where g.account_id = $1 and g.number = $2
    returning g.account_id, g.bytes - (select bytes from old) as bytes
  ), used as (${countUsage({ account: 'account_id', from: 'more', contentBytes: 'sum(bytes)' })}
  )
  select bytes from more`
