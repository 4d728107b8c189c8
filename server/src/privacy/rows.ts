import pg from 'pg'
import type { Executor } from '../db/pool.ts'
import type { Place } from './places.ts'

// Finds and erases the rows of a place. A table is read in the order of its key, which no statement changes: a row that exists throughout is
// never missed, however often it is updated meanwhile.

/** `accounts`: where to look. `placeholders`: what replaces the number in each of them; empty if nothing is to be erased. */
export type Person = { phone: string; accounts: number[]; placeholders: string[] }

/** A row of a place. `key` has the values of its key as text. */
type FoundRow = { key: string[]; accountId: number }

/** A place in one table: of a monthly place, the table of one month. */
type TablePlace = Place & { month?: string }

const READ_ROWS = 5_000

/** The tables of a place. `months`: such as `2026_08`. */
export function tablesOf(place: Place, months: string[]): TablePlace[] {
  return place.monthly ? months.map((month) => ({ ...place, table: `${place.table}_${month}`, month })) : [place]
}

/** The months that have tables, oldest first. */
export async function listMonths(db: Executor): Promise<string[]> {
  const { rows } = await db.query<{ month: string }>(
    `select right(tablename, 7) as month from pg_tables where schemaname = current_schema() and tablename ~ '^messages_\\d{4}_\\d{2}$' order by 1`,
  )
  return rows.map(({ month }) => month)
}

// The statements of all places have the same first parameters, whether they use them or not.
const STEPS = `with given as (
    select $1::text as phone, $2::text as pattern, $5::text[] as ids
  ), person as materialized (
    select * from unnest($3::int[], $4::text[]) as p (account_id, placeholder)
  )`

function valuesOf({ phone, accounts, placeholders }: Person, ids: string[]): unknown[] {
  return [phone, `%${phone.slice(1)}%`, accounts, accounts.map((_, index) => placeholders[index] ?? ''), ids]
}

/** Reads the rows of a person, some thousand rows of the table at a time. `onRead` gets how many rows were read. */
export async function* findRows(
  db: Executor,
  place: TablePlace,
  person: Person,
  { ids = [], onRead = () => {} }: { ids?: string[]; onRead?: (rows: number) => void } = {},
): AsyncGenerator<FoundRow[]> {
  const text = findIn(place)
  for (let after: string[] = []; ; ) {
    const { rows } = await db.query<FoundRow & { accountId: number | null; read: number }>(text(after.length > 0), [
      ...valuesOf(person, ids),
      ...after,
    ])
    const last = rows.at(-1)
    if (last === undefined) return
    onRead(last.read)
    const mine = rows.slice(0, -1).flatMap(({ key, accountId }) => (accountId === null ? [] : [{ key, accountId }]))
    if (mine.length > 0) yield mine
    if (last.read < READ_ROWS) return
    after = last.key
  }
}

/** The rows of the person come first. The last row of the result is the last one that was read. */
function findIn({ table, key, mine, account = 't.account_id', from }: TablePlace) {
  const names = Object.keys(key)
  const inOrder = names.map((name) => `t.${name}`).join(', ')
  const cursor = Object.values(key).map((type, index) => `$${6 + index}::${type}`)
  const isIndexed = from !== undefined
  return (isContinued: boolean) => `${STEPS}, chunk as materialized (
    select ${inOrder}, row_number() over (order by ${inOrder}) as place,
      case when ${isIndexed ? 'true' : mine} then (select p.account_id from person p where p.account_id = ${account}) end as found_in
    from ${table} t ${from ?? ''}
    where ${isIndexed ? mine : 'true'}${isContinued ? ` and (${inOrder}) > (${cursor.join(', ')})` : ''}
    order by ${inOrder} limit ${READ_ROWS}
  )
  select array[${names.map((name) => `${name}::text`).join(', ')}] as key, found_in as "accountId", place::int as read
  from (
    select *, false as is_last from chunk where found_in is not null
    union all (select *, true from chunk order by place desc limit 1)
  ) as found order by is_last, place`
}

/** Reads what an export shows of these rows. The driver parses their JSON: PostgreSQL stores JSON that its own functions can't read. */
export async function readRows(db: Executor, place: TablePlace, person: Person, found: FoundRow[], ids: string[]): Promise<object[]> {
  const { table, columns, key, mine, account = 't.account_id' } = place
  const text = `${STEPS}
    select ${account} as "accountId", ${columns}
    from ${table} t join ${keysOf(key)} using (${Object.keys(key).join(', ')}) where ${ofJoined(key, mine)} order by ${Object.keys(key).join(', ')}`
  return (await db.query<object>(text, [...valuesOf(person, ids), ...keyValues(key, found)])).rows
}

/** In SQL: the keys of rows, as a table. */
function keysOf(key: Place['key']): string {
  const lists = Object.values(key).map((type, index) => `$${6 + index}::text[]::${type}[]`)
  return `unnest(${lists.join(', ')}) as k (${Object.keys(key).join(', ')})`
}

/**
 * In SQL: a condition that is checked only for rows that have one of the keys. Otherwise PostgreSQL, before it knows the size of a new table, may
 * check every row for every key, and a condition that looks up messages then takes longer than a statement may.
 */
const ofJoined = (key: Place['key'], condition: string) => `case when k.${Object.keys(key)[0]} is not null then ${condition} end`

function keyValues(key: Place['key'], found: FoundRow[]): string[][] {
  return Object.keys(key).map((_, index) => found.map((row) => row.key[index] as string))
}

/**
 * Erases these rows in one statement, and returns how many. Rows that are no longer about the person are left alone. The statement locks the rows
 * in the order of their keys, as other statements do, and corrects the usage of the accounts.
 */
export async function eraseRows(db: Executor, place: TablePlace, person: Person, found: FoundRow[], ids: string[] = []): Promise<number> {
  const values = [...valuesOf(person, ids), ...keyValues(place.key, found)]
  const { rows } = await db.query<{ erased: number }>(eraseIn(place), values)
  return rows[0]?.erased ?? 0
}

function eraseIn({
  table,
  key,
  mine,
  account = 't.account_id',
  set,
  exceptIf = 'false',
  deleteIf,
  also,
  bytes = '0',
  month,
}: TablePlace): string {
  const names = Object.keys(key)
  const isHeld = names.map((name) => `t.${name} = h.${name}`).join(' and ')
  const changed =
    set === undefined
      ? 'select null::int as owner, 0 as freed where false'
      : `update ${table} t set ${set} from held h where ${isHeld} and not h.is_deleted returning h.owner, h.bytes - (${bytes}) as freed`
  // The bytes of a message are freed in its month, which is dropped as a whole (accounts/usage.ts).
  const at = month === undefined ? 'now()' : `'${month.replace('_', '-')}-01T00:00:00Z'::timestamptz`
  return `${STEPS}, held as materialized (
    select ${names.map((name) => `t.${name}`).join(', ')}, p.account_id as owner, p.placeholder, ${bytes} as bytes,
      ${set === undefined ? 'true' : (deleteIf ?? 'false')} as is_deleted
    from ${table} t join ${keysOf(key)} using (${names.join(', ')}) join person p on p.account_id = ${account}
    where ${ofJoined(key, mine)} and not (${exceptIf}) order by ${names.map((name) => `t.${name}`).join(', ')} for update of t
  ), deleted as (
    delete from ${table} t using held h where ${isHeld} and h.is_deleted returning t.*
  ), changed as (
    ${changed}
  ), freed as (
    insert into account_usage_deltas (account_id, at, messages, message_bytes, content_bytes)
    select owner, ${at}, 0, ${month === undefined ? '0, -sum(freed)' : '-sum(freed), 0'} from changed group by 1 having sum(freed) <> 0
  )${also === undefined ? '' : `, ${also}`}
  select count(*)::int as erased from held`
}

/** Whether a statement failed because the tables of a month were dropped meanwhile. */
export function isDroppedMonth(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42P01'
}
