import { finished } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { requireAccount } from '../accounts/accounts.ts'
import type { Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { type CsvRecord, readRecords } from './csv.ts'
import { createGroup } from './groups.ts'
import { type Columns, readHeader, readMember } from './members.ts'

// A file is read into a temporary table, portion by portion, and from there into the group by one transaction: a campaign sees all of it
// or nothing, and an import that is killed has changed nothing, so that it can be run again. Reading holds no transaction open, however
// slowly a file comes in: one that stays open keeps every table from being cleaned up.
//
// Measured for a million new members, in seconds of the database's CPU time: 8.8 by a bare COPY with the key; 1.9 into the temporary
// table, while the file is being read, and then 7.1 from there by an insert in the order of the key (9.5 in the order of the file; 12.7
// with `on conflict`, which asks the index twice for each row). The `merge` below takes no longer than the insert.

export type Import = {
  accountId: number
  number: number
  name?: string | undefined
  source: AsyncIterable<Uint8Array>
  onProgress?: (progress: ImportProgress) => void
}

/** `rows`: read so far, of which `bytes` is how much of the file; or, once all are read, those that are being written. */
export type ImportProgress = { phase: 'reading' | 'writing'; rows: number; bytes: number }

export type RejectedLine = { line: number; reason: string }

export type ImportResult = {
  group: number
  /** How many different numbers of the file are in the group now. */
  imported: number
  /** Of these, how many were there already, with just the same data. */
  unchanged: number
  /** Lines whose number stands again further down, where the last counts. */
  repeated: number
  /** How many lines were rejected; `rejected` has the first thousand of them. */
  rejectedLines: number
  rejected: RejectedLine[]
}

const MAX_REJECTED_SHOWN = 1_000
// Some 15,000 members: a statement of a tenth of a second, far below what a connection of the pool may take.
const PORTION_BYTES = 1024 * 1024
// What one statement over a whole file may take: a million take seconds, but there may be many millions, a slow disk, and another import
// into the same group to wait for. The client's limit is longer, as it is for all statements.
const LONG_STATEMENT_MS = 60 * 60 * 1000
const LONG_QUERY = { query_timeout: LONG_STATEMENT_MS + 1_000 }

/** Changes nothing where no line of the file can be imported. Of two imports into one group at once, one comes after the other. */
export async function importGroup(pool: Pool, { source, onProgress = () => {}, ...group }: Import): Promise<ImportResult> {
  await requireAccount(pool, group.accountId)
  const client = await pool.connect()
  // It would end the process where nobody listens; the next statement fails and tells the caller.
  client.on('error', () => {})
  try {
    await client.query(ARRIVALS)
    const { staged, bytes, rejectedLines, rejected } = await stage(client, source, onProgress)
    if (staged === 0) return { group: group.number, imported: 0, unchanged: 0, repeated: 0, rejectedLines, rejected }
    onProgress({ phase: 'writing', rows: staged, bytes })
    const { repeated, written } = await takeOver(client, group)
    const imported = staged - repeated
    return { group: group.number, imported, unchanged: imported - written, repeated, rejectedLines, rejected }
  } finally {
    // Closed, not given back: with it go the temporary table and, after a failure, the transaction.
    client.release(true)
  }
}

const ARRIVALS = `create temporary table arrivals (
  phone text collate "C" not null,
  consents integer[] not null,
  control_group boolean not null,
  active boolean not null,
  attributes json,
  line integer not null
)`

type Staged = { staged: number; bytes: number; rejectedLines: number; rejected: RejectedLine[] }

/** The next portion is read while the database takes the one before. */
async function stage(client: pg.ClientBase, source: AsyncIterable<Uint8Array>, onProgress: (progress: ImportProgress) => void) {
  const result: Staged = { staged: 0, bytes: 0, rejectedLines: 0, rejected: [] }
  let columns: Columns | undefined
  let portion: Buffer[] = []
  let writing: Promise<void> = Promise.resolve()
  for await (const batch of readRecords(counted(source, result))) {
    const records = columns === undefined ? batch.slice(1) : batch
    columns ??= headerOf(batch[0])
    portion.push(Buffer.from(readBatch(records, columns, result)))
    if (portion.reduce((sum, rows) => sum + rows.length, 0) >= PORTION_BYTES) {
      await writing
      writing = copy(client, portion)
      // Awaited with the next portion; until then it must not count as one that nobody handles.
      writing.catch(() => {})
      portion = []
    }
    onProgress({ phase: 'reading', rows: result.staged + result.rejectedLines, bytes: result.bytes })
  }
  if (columns === undefined) throw new OperatorError('The file is empty; its first line must name the columns.')
  await writing
  await copy(client, portion)
  return result
}

async function* counted(source: AsyncIterable<Uint8Array>, result: Staged): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    result.bytes += chunk.length
    yield chunk
  }
}

function headerOf(record: CsvRecord | undefined): Columns {
  if (record === undefined || 'problem' in record) throw new OperatorError(`The header can't be read: ${record?.problem}.`)
  return readHeader(record.fields)
}

/** Lines for COPY. */
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

async function copy(client: pg.ClientBase, portion: Buffer[]): Promise<void> {
  const stream = client.query(copyFrom('copy arrivals (phone, consents, control_group, active, attributes, line) from stdin'))
  for (const rows of portion) stream.write(rows)
  stream.end()
  await finished(stream)
}

type Target = { accountId: number; number: number; name?: string | undefined }

/** From the temporary table into the group. Returns how many lines were repeated, and how many rows were written. */
async function takeOver(client: pg.ClientBase, group: Target): Promise<{ repeated: number; written: number }> {
  await client.query('begin isolation level read committed')
  await client.query(`set local statement_timeout = ${LONG_STATEMENT_MS}; set local work_mem = '64MB'`)
  const repeated = await dropRepeated(client)
  await waitForTurn(client, group)
  const generation = await createGroup(client, group)
  const written = await merge(client, group, generation)
  await countMembers(client, group)
  const { command } = await client.query({ text: 'commit', ...LONG_QUERY })
  if (command !== 'COMMIT') throw new Error('an import was rolled back, since one of its statements had failed')
  return { repeated, written }
}

/** Leaves the last line of each number. */
async function dropRepeated(client: pg.ClientBase): Promise<number> {
  await client.query('set local enable_seqscan = on; set local enable_hashjoin = on')
  const { rowCount } = await client.query({
    text: `delete from arrivals a
      using (select phone, max(line) as line from arrivals group by phone having count(*) > 1) as last
      where a.phone = last.phone and a.line < last.line`,
    ...LONG_QUERY,
  })
  return rowCount ?? 0
}

/** Imports into one group come one after the other, until their transactions end: `merge` counts on it. */
async function waitForTurn(client: pg.ClientBase, { accountId, number }: Target): Promise<void> {
  const values = [`import into group ${number} of account ${accountId}`]
  await client.query({ text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))', values, ...LONG_QUERY })
}

/**
 * One walk through both in the order of the key, whatever the planner knows of the tables' sizes. Nobody else may add members meanwhile:
 * a number that both add would fail here. A row that says nothing new is not written, which would take most of the time of an import
 * that changes little.
 */
async function merge(client: pg.ClientBase, { accountId, number }: Target, generation: number): Promise<number> {
  await client.query('set local enable_mergejoin = on; set local enable_hashjoin = off; set local enable_nestloop = off')
  const { rowCount } = await client.query({
    text: `merge into group_members m
      using (select * from arrivals order by phone) as a
      on m.account_id = $1 and m.group_number = $2 and m.phone = a.phone
      when matched and ((m.consents, m.control_group, m.active) is distinct from (a.consents, a.control_group, a.active)
        or m.attributes::text is distinct from a.attributes::text) then
        update set consents = a.consents, control_group = a.control_group, active = a.active, attributes = a.attributes
      when not matched then
        insert (account_id, group_number, phone, consents, control_group, active, attributes, generation)
        values ($1, $2, a.phone, a.consents, a.control_group, a.active, a.attributes, $3)`,
    values: [accountId, number, generation],
    ...LONG_QUERY,
  })
  return rowCount ?? 0
}

async function countMembers(client: pg.ClientBase, { accountId, number }: Target): Promise<void> {
  await client.query({
    text: `update groups set members = (select count(*) from group_members m where m.account_id = $1 and m.group_number = $2)
           where account_id = $1 and number = $2`,
    values: [accountId, number],
    ...LONG_QUERY,
  })
}
