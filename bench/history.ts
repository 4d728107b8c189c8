import { PRIORITIES } from '../server/src/messages/states.ts'
import { type Account, AGENT } from './commands.ts'
import { inTurn, say } from './measure.ts'
import { type Database, openClient } from './postgres.ts'

// Messages in masses, by SQL: such as have come to their end, and such as wait. The database may be that of another checkout: tables and columns
// that it does not have are left out.

/** A database with an account that sends. */
export type Sending = Database & { account: Account }
export type Filled = Pick<Sending, 'url' | 'client' | 'account'>

const CHUNK = 50_000
const SAY_EVERY = 500_000
const WRITERS = 2

/** Messages that were read, with what each leaves behind: its idempotency key, and three events. */
export async function fillHistory(database: Filled, messages: number): Promise<void> {
  const text = await statementOf(database, FILL)
  await inChunks(database, messages, { what: 'messages of history', text, more: [messages] })
  if ((await columnsOf(database.client, 'log_heads')).size > 0) await database.client.query(MOVE_HEADS)
}

const QUEUED_OVER_SECONDS = 600

/** Messages that wait to be sent, all of them due. */
export async function fillQueue(database: Filled, messages: number): Promise<void> {
  const text = await statementOf(database, ENQUEUE)
  await inChunks(database, messages, { what: 'messages that wait', text, more: [QUEUED_OVER_SECONDS, messages] })
}

/** A few that have just come. */
export async function enqueue(database: Sending, messages: number): Promise<void> {
  const text = await statementOf(database, ENQUEUE)
  await database.pool.query({ name: 'enqueue', text, values: [1, messages, database.account.accountId, 0, messages] })
}

/** Nothing waits any more. */
export async function emptyQueue({ client }: Filled): Promise<void> {
  await client.query('truncate queue')
}

type Filling = { what: string; text: string; more: number[] }

async function inChunks(database: Filled, messages: number, { what, text, more }: Filling): Promise<void> {
  const startedAt = performance.now()
  const writers = await Promise.all(Array.from({ length: WRITERS }, () => openClient(database.url)))
  for (const { client } of writers) await client.query('set synchronous_commit = off')
  let begun = 0
  let done = 0
  async function writeChunk(): Promise<void> {
    const writer = writers.pop() as (typeof writers)[number]
    const from = begun
    begun = Math.min(begun + CHUNK, messages)
    const last = begun - 1
    await writer.client.query({ name: 'fill', text, values: [from, last, database.account.accountId, ...more] })
    writers.push(writer)
    done += last - from + 1
    if (done % SAY_EVERY !== 0) return
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
    say(`${done.toLocaleString('en')} of ${messages.toLocaleString('en')} ${what}, after ${seconds} s`)
  }
  await inTurn(Math.ceil(messages / CHUNK), WRITERS, writeChunk)
  for (const { close } of writers) await close()
  await vacuum(database)
}

/** As a database has it that grew over weeks, and so that none of it begins while something is measured. */
export async function vacuum({ client }: Pick<Database, 'client'>): Promise<void> {
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

/** `made`: what the rows of all tables are made of. `rows`: an expression for each column, by table. */
type Statement = { made: string; rows: Rows[] }
/** `unless`: a table that has replaced these rows, where the database has it. */
type Rows = { table: string; from: string; columns: Record<string, string>; unless?: string }

async function columnsOf(client: Filled['client'], table: string): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    'select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped',
    [table],
  )
  return new Set(rows.map(({ name }) => name))
}

async function statementOf({ client }: Filled, { made, rows }: Statement): Promise<string> {
  const inserts: string[] = []
  for (const { table, from, columns, unless } of rows) {
    if (unless !== undefined && (await columnsOf(client, unless)).size > 0) continue
    const present = await columnsOf(client, table)
    const names = Object.keys(columns).filter((name) => present.has(name))
    if (names.length === 0) continue
    const values = names.map((name) => columns[name]).join(', ')
    inserts.push(`, into_${table} as (insert into ${table} (${names.join(', ')}) select ${values} from ${from})`)
  }
  return `with made as materialized (${made})${inserts.join('')} select count(*) from made`
}

const CONTENT = `'{"type":"MESSAGE","content":"Your order is on its way."}'`
const after = (seconds: number | string) => `at + ${seconds} * interval '1 second'`
const EXPIRES_AT = after(48 * 3_600)

const STEPS = `(values ('sent', 1, 0), ('delivered', 3, 1), ('read', 60, 2)) as step (kind, seconds, place)`
// About as many as one statement of a busy worker changes. A chunk is a multiple of it, so that no two chunks share a page.
const EVENTS_A_PAGE = 50

/** Pages that have their place in the log: of the same messages first those of `sent`, then those of the next steps. */
const PAGES = `(
      select account_id, (array_agg(id order by n))[step.place + 1] as page_id, count(*) as event_count,
        (n / ${EVENTS_A_PAGE} * 3 + step.place) * ${EVENTS_A_PAGE}::bigint + count(*) as last_position,
        json_agg(json_build_array('message.' || step.kind, ${after('step.seconds')}, id, null, '${AGENT}', recipient, null, false, null) order by n) as events
      from made, ${STEPS} group by account_id, n / ${EVENTS_A_PAGE}, step.kind, step.place
    ) as page`

const MOVE_HEADS = `
  insert into log_heads (account_id, last_position) select account_id, max(last_position) from log_pages where last_position is not null group by account_id
  on conflict (account_id) do update set last_position = excluded.last_position`

/** The columns of a message as it is accepted. */
const ACCEPTED = {
  id: 'id',
  account_id: 'account_id',
  agent_id: `'${AGENT}'`,
  recipient: 'recipient',
  basic: 'false',
  test: 'false',
  content: CONTENT,
  accepted_at: 'at',
  expires_at: EXPIRES_AT,
}

/** Evenly from the first of the month until now. */
const FILL: Statement = {
  made: `
    select n, at, $3::int as account_id, '+48' || 500000000 + (n::bigint * 48271 % 99999989) as recipient,
      (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid as id
    from (
      select n, (date_trunc('month', now(), 'UTC') + n::float8 / $4::int * (now() - interval '5 minutes' - date_trunc('month', now(), 'UTC')))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered`,
  rows: [
    {
      table: 'messages',
      from: 'made',
      columns: {
        ...ACCEPTED,
        status: `'READ'`,
        sent_at: after(1),
        delivered_at: after(3),
        read_at: after(60),
      },
    },
    {
      table: 'message_events',
      unless: 'log_pages',
      from: `made, ${STEPS}`,
      columns: { message_id: 'id', account_id: 'account_id', kind: 'step.kind', occurred_at: after('step.seconds') },
    },
    {
      table: 'log_pages',
      from: PAGES,
      columns: {
        account_id: 'account_id',
        page_id: 'page_id',
        event_count: 'event_count',
        last_position: 'last_position',
        events: 'events',
      },
    },
    {
      table: 'idempotency_keys',
      from: 'made',
      columns: {
        account_id: 'account_id',
        endpoint: `'messages'`,
        key: `md5(n || 'key')`,
        request_hash: 'sha256(n::text::bytea)',
        resource_id: 'id',
        created_at: 'at',
      },
    },
  ],
}

/**
 * With what accepting writes for each, but for the key and the counters, which are no part of what follows. They came one after the other over the
 * last $4 seconds, at most from the first of the month on: their ids and their turns are in the order in which they lie.
 */
const ENQUEUE: Statement = {
  made: `
    select at, $3::int as account_id, '+48' || 500000000 + n::bigint * 48271 % 99999989 as recipient,
      (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 4, 15))::uuid as id
    from (
      select n, greatest(now() - $4::int * interval '1 second' * (1 - n::float8 / $5::int), date_trunc('month', now(), 'UTC'))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered`,
  rows: [
    {
      table: 'messages',
      from: 'made',
      columns: ACCEPTED,
    },
    {
      table: 'queue',
      from: 'made',
      columns: {
        message_id: 'id',
        account_id: 'account_id',
        agent_id: `'${AGENT}'`,
        task: `'send'`,
        priority: String(PRIORITIES.transactional),
        due_at: 'at',
        expires_at: EXPIRES_AT,
      },
    },
  ],
}
