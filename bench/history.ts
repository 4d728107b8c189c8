import { PRIORITIES } from '../server/src/messages/states.ts'
import { inTurn, say } from './measure.ts'
import { type Database, openClient } from './postgres.ts'
import { type Account, AGENT } from './service.ts'

// Messages in masses, by SQL: such as have come to their end, and such as wait.

/** A database with an account that sends. */
export type Sending = Database & { account: Account }

const CHUNK = 50_000
const SAY_EVERY = 500_000
const WRITERS = 2

/** Messages that were read, with what each leaves behind: three steps of its timeline, and its idempotency key. */
export async function fillHistory(database: Sending, messages: number): Promise<void> {
  await inChunks(database, messages, { what: 'messages of history', text: FILL, more: [messages] })
}

const QUEUED_OVER_SECONDS = 600

/** Messages that wait to be sent, all of them due. */
export async function fillQueue(database: Sending, messages: number): Promise<void> {
  await inChunks(database, messages, { what: 'messages that wait', text: ENQUEUE, more: [QUEUED_OVER_SECONDS, messages] })
}

/** A few that have just come. */
export async function enqueue({ pool, account: { accountId } }: Sending, messages: number): Promise<void> {
  await pool.query({ name: 'enqueue', text: ENQUEUE, values: [1, messages, accountId, 0, messages] })
}

type Filling = { what: string; text: string; more: number[] }

async function inChunks(database: Sending, messages: number, { what, text, more }: Filling): Promise<void> {
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
    say(`growth: ${done.toLocaleString('en')} of ${messages.toLocaleString('en')} ${what}, after ${seconds} s`)
  }
  await inTurn(Math.ceil(messages / CHUNK), WRITERS, writeChunk)
  for (const { close } of writers) await close()
  await vacuum(database)
}

/** As a database has it that grew over weeks, and so that none of it begins while something is measured. */
export async function vacuum({ client }: Database): Promise<void> {
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

const CONTENT = `'{"type":"MESSAGE","content":"Your order is on its way."}'`

/** Evenly from the first of the month until now. */
const FILL = `
  with made as materialized (
    select n, at, '+48' || 500000000 + (n::bigint * 48271 % 99999989) as recipient,
      (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid as id
    from (
      select n, (date_trunc('month', now(), 'UTC') + n::float8 / $4::int * (now() - interval '5 minutes' - date_trunc('month', now(), 'UTC')))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, status, basic, test, content, accepted_at, expires_at, sent_at, delivered_at, read_at)
    select id, $3::int, '${AGENT}', recipient, 'READ', false, false, ${CONTENT}, at, at + interval '48 hours',
      at + interval '1 second', at + interval '3 seconds', at + interval '60 seconds'
    from made
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at)
    select id, $3, step.kind, at + step.seconds * interval '1 second' from made, (values ('sent', 1), ('delivered', 3), ('read', 60)) as step (kind, seconds)
  )
  insert into idempotency_keys (account_id, endpoint, key, request_hash, message_id, created_at)
  select $3, 'messages', md5(n || 'key'), sha256(n::text::bytea), id, at from made`

/**
 * With what accepting writes for each, but for the key and the counters, which are no part of what follows. They came one after the other over the
 * last $4 seconds, at most from the first of the month on: their ids and their turns are in the order in which they lie.
 */
const ENQUEUE = `
  with made as materialized (
    select at, '+48' || 500000000 + n::bigint * 48271 % 99999989 as recipient,
      (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 4, 15))::uuid as id
    from (
      select n, greatest(now() - $4::int * interval '1 second' * (1 - n::float8 / $5::int), date_trunc('month', now(), 'UTC'))::timestamptz(3) as at
      from generate_series($1::int, $2::int) as n
    ) as numbered
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, content, accepted_at, expires_at)
    select id, $3::int, '${AGENT}', recipient, false, false, ${CONTENT}, at, at + interval '48 hours' from made
  ), queued as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, $3, '${AGENT}', 'send', ${PRIORITIES.transactional}, at, at + interval '48 hours' from made
  )
  insert into expiries (message_id, expires_at) select id, at + interval '48 hours' from made`
