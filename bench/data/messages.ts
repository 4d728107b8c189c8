import type pg from 'pg'
import { PRIORITIES } from '../../server/src/messages/states.ts'
import { grouped } from '../measure/figures.ts'
import { inParallel } from '../measure/rounds.ts'
import { type Account, AGENT } from '../setup/accounts.ts'
import { openClient } from '../setup/postgres.ts'

// Many messages, written by SQL: READ ones, and ones that wait to be sent. The database may be that of another checkout: tables and columns
// that it does not have are left out.

/** A database with an account that sends. */
export type Filled = { url: string; client: pg.Client; account: Account; say: (sentence: string) => void }

const CHUNK = 50_000
const SAY_EVERY = 500_000
const WRITERS = 2

/** READ messages, each with its idempotency key and its three events. */
export async function fillHistory(database: Filled, messages: number): Promise<void> {
  await inChunks(database, messages, { what: 'messages of history', text: await statementOf(database.client, HISTORY), more: [messages] })
  if ((await columnsOf(database.client, 'log_heads')).size > 0) await database.client.query(MOVE_HEADS)
  await vacuum(database.client)
}

const QUEUED_OVER_SECONDS = 600

/** Messages that wait to be sent, all of them due. */
export async function fillQueue(database: Filled, messages: number): Promise<void> {
  const text = await statementOf(database.client, QUEUE)
  await inChunks(database, messages, { what: 'messages that wait', text, more: [QUEUED_OVER_SECONDS, messages] })
  await vacuum(database.client)
}

/** A few more, accepted just now. */
export async function enqueue({ client, account }: Pick<Filled, 'client' | 'account'>, messages: number): Promise<void> {
  await client.query({ name: 'enqueue', text: await statementOf(client, QUEUE), values: [1, messages, account.accountId, 0, messages] })
}

/** `text`: its parameters are the numbers of the first and the last message, the account, and `more`. */
type Filling = { what: string; text: string; more: unknown[] }

export async function inChunks(
  { url, account: { accountId }, say }: Omit<Filled, 'client'>,
  messages: number,
  { what, text, more }: Filling,
): Promise<void> {
  const startedAt = performance.now()
  const writers = await Promise.all(Array.from({ length: WRITERS }, () => openClient(url)))
  for (const { client } of writers) await client.query('set synchronous_commit = off')
  let begun = 0
  let done = 0
  await inParallel(Math.ceil(messages / CHUNK), WRITERS, async () => {
    const writer = writers.pop() as (typeof writers)[number]
    const from = begun
    begun = Math.min(begun + CHUNK, messages)
    const last = begun - 1
    await writer.client.query({ name: 'fill', text, values: [from, last, accountId, ...more] })
    writers.push(writer)
    done += last - from + 1
    if (done % SAY_EVERY !== 0) return
    say(`${grouped(done)} of ${grouped(messages)} ${what}, after ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
  })
  for (const { close } of writers) await close()
}

/** As in a database that grew over weeks, so that no vacuum or checkpoint begins during a measurement. */
export async function vacuum(client: pg.Client): Promise<void> {
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

/** `made`: the source of the rows of all tables. `columns`: an expression for each. */
type Statement = { made: string; tables: { table: string; from: string; columns: Record<string, string> }[] }

async function columnsOf(client: pg.Client, table: string): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    'select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped',
    [table],
  )
  return new Set(rows.map(({ name }) => name))
}

async function statementOf(client: pg.Client, { made, tables }: Statement): Promise<string> {
  const inserts: string[] = []
  for (const { table, from, columns } of tables) {
    const present = await columnsOf(client, table)
    const names = Object.keys(columns).filter((name) => present.has(name))
    if (names.length === 0) continue
    const values = names.map((name) => columns[name]).join(', ')
    inserts.push(`, into_${table} as (insert into ${table} (${names.join(', ')}) select ${values} from ${from})`)
  }
  return `with made as materialized (${made})${inserts.join('')} select count(*) from made`
}

const after = (seconds: number | string) => `at + ${seconds} * interval '1 second'`
const EXPIRES_AT = after(48 * 3_600)
/** An id of version 7. */
const idOf = (random: string) =>
  `(lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(${random}), 1, 3) || '8' || substr(md5(${random}), 4, 15))::uuid`

/** The columns of a message as it is accepted. */
const ACCEPTED = {
  id: 'id',
  account_id: 'account_id',
  agent_id: `'${AGENT}'`,
  recipient: 'recipient',
  basic: 'false',
  test: 'false',
  content: `'{"type":"MESSAGE","content":"Your order is on its way."}'`,
  accepted_at: 'at',
  expires_at: EXPIRES_AT,
}
const READ = { ...ACCEPTED, status: `'READ'`, sent_at: after(1), delivered_at: after(3), read_at: after(60) }

// About as many events as one statement of a busy worker writes. A chunk is a multiple of it, so that no two chunks share a page.
const EVENTS_PER_PAGE = 50

/** Pages with positions in the log: of the same messages first the events `sent`, then those of the next steps. */
const PAGES = `(
      select account_id, (array_agg(id order by n))[step.place + 1] as page_id, count(*) as event_count,
        (n / ${EVENTS_PER_PAGE} * 3 + step.place) * ${EVENTS_PER_PAGE}::bigint + count(*) as last_position,
        json_agg(json_build_array('message.' || step.kind, ${after('step.seconds')}, id, null, '${AGENT}', recipient, null, false, null) order by n) as events
      from made, (values ('sent', 1, 0), ('delivered', 3, 1), ('read', 60, 2)) as step (kind, seconds, place)
      group by account_id, n / ${EVENTS_PER_PAGE}, step.kind, step.place
    ) as page`
const PAGE_COLUMNS = ['account_id', 'page_id', 'event_count', 'last_position', 'events']

const MOVE_HEADS = `
  insert into log_heads (account_id, last_position) select account_id, max(last_position) from log_pages where last_position is not null group by account_id
  on conflict (account_id) do update set last_position = excluded.last_position`

const KEY = {
  account_id: 'account_id',
  endpoint: `'messages'`,
  key: `md5(n || 'key')`,
  request_hash: 'sha256(n::text::bytea)',
  resource_id: 'id',
  created_at: 'at',
}

/** Evenly from the first of the month until now. */
const HISTORY: Statement = {
  made: `
    select n, at, $3::int as account_id, '+48' || 500000000 + (n::bigint * 48271 % 99999989) as recipient, ${idOf('n::text')} as id
    from (
      select n, (date_trunc('month', now(), 'UTC') + n::float8 / $4::int * (now() - interval '5 minutes' - date_trunc('month', now(), 'UTC')))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered`,
  tables: [
    { table: 'messages', from: 'made', columns: READ },
    { table: 'log_pages', from: PAGES, columns: Object.fromEntries(PAGE_COLUMNS.map((name) => [name, name])) },
    { table: 'idempotency_keys', from: 'made', columns: KEY },
  ],
}

const ENTRY = {
  message_id: 'id',
  account_id: 'account_id',
  agent_id: `'${AGENT}'`,
  task: `'send'`,
  priority: String(PRIORITIES.transactional),
  due_at: 'at',
  expires_at: EXPIRES_AT,
}

/**
 * What accepting writes, without the key and the counters, which claims do not read. The messages came one after the other over the last $4
 * seconds, at most from the first of the month on, so the order of their ids is that of the queue and of the table.
 */
const QUEUE: Statement = {
  made: `
    select at, $3::int as account_id, '+48' || 500000000 + n::bigint * 48271 % 99999989 as recipient, ${idOf('random()::text')} as id
    from (
      select n, greatest(now() - $4::int * interval '1 second' * (1 - n::float8 / $5::int), date_trunc('month', now(), 'UTC'))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered`,
  tables: [
    { table: 'messages', from: 'made', columns: ACCEPTED },
    { table: 'queue', from: 'made', columns: ENTRY },
  ],
}
