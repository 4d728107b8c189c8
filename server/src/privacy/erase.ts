import { createHmac, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { RecordChange } from '../audit/record.ts'
import type { CarrierEvent } from '../carriers/carrier.ts'
import { type Executor, isTimedOut, type Pool, transaction } from '../db/pool.ts'
import { awaitTransactions } from '../db/transactions.ts'
import { failWaiting } from '../delivery/fail.ts'
import { withoutQuote } from '../delivery/failures.ts'
import { skipErased } from '../delivery/sms/schedule.ts'
import { ALL_ACCOUNTS, type ErasedPeople, PLACEHOLDER_PREFIX } from '../erasure/erased.ts'
import { eraseFromLog, findInLog } from '../events/erase.ts'
import { Refusal } from '../refusal.ts'
import { findConcerned } from '../replies/attribution.ts'
import { accountsOf, counter, findMessages, type Progress, placesFor, type Summary, summarize, type Wanted } from './find.ts'
import { CAMPAIGNS, MESSAGE_DETAILS, MESSAGES, type Place, WEBHOOK_ATTEMPTS } from './places.ts'
import { eraseRows, findRows, isDroppedMonth, listMonths, type Person, tablesOf } from './rows.ts'

/** How many rows of each place were erased. */
export type Erased = Record<string, number>

type Options = {
  onProgress?: (progress: Progress) => void
  /** What was found before, if an operator has confirmed it. Counting takes long, and the number gets messages meanwhile. */
  summary?: Summary
  /** How long to wait for calls to networks that are in progress. */
  callsEndWithinMs?: number
  /** Called in the first transaction, which already can't be undone, with the number of rows of each place before. */
  record?: RecordChange | undefined
}
type Erasure = { pool: Pool; wanted: Wanted; person: Person; months: string[]; erased: Erased } & Required<
  Omit<Options, 'record' | 'summary'>
>

/**
 * Erases a person while the service runs. Their rows are counted for the audit log. Then the order makes it final:
 *
 * 1. The hash is stored. From then on no worker sends anything to the number.
 * 2. Waiting messages fail, and calls in progress end.
 * 3. The number of the messages is replaced. Everything that is recorded about them from then on has the placeholder.
 * 4. What was recorded before is erased, table by table, in small transactions.
 *
 * Between the steps it waits for the transactions that began before. After a crash, a second run finishes the rest with the same placeholders.
 */
export async function erasePerson(
  pool: Pool,
  people: ErasedPeople,
  wanted: Wanted,
  { onProgress = () => {}, summary, callsEndWithinMs = CALLS_END_WITHIN_MS, record = async () => {} }: Options = {},
): Promise<Erased> {
  const accounts = await accountsOf(pool, wanted)
  const hash = people.hashOf(wanted.phone)
  const { rows: found, total } = summary ?? (await summarize(pool, wanted, people, onProgress))
  const { own, isRecorded } = await transaction(pool, async (tx) => {
    const { seed, isRepeated } = await storeHash(tx, hash, wanted)
    if (isRepeated && total === 0) return { own: seed, isRecorded: false }
    await record(tx, null, found)
    return { own: seed, isRecorded: true }
  })
  const seeds = [own, ...(await readSeeds(pool, hash))]
  await awaitTransactions(pool)
  const person = { phone: wanted.phone, accounts, placeholders: accounts.map((accountId) => placeholderOf(own, accountId)) }
  const erasure: Erasure = { pool, wanted, person, months: await listMonths(pool), erased: {}, onProgress, callsEndWithinMs }
  await dropReplies(erasure)
  await stopSending(erasure)
  await eraseMessages(erasure)
  // An unfinished run for another scope (one account, or all of them) has left placeholders, too.
  const known = seeds.flatMap((seed) => accounts.map((accountId) => placeholderOf(seed, accountId)))
  await awaitCopies(erasure, known)
  await eraseDetails(erasure, known)
  for (const place of placesFor(wanted)) await erasePlace(erasure, place)
  // While this number was still in a group, a concurrent erasure of the next member may have made it the fan-out cursor of a campaign.
  await awaitTransactions(pool)
  await erasePlace(erasure, CAMPAIGNS)
  await eraseLog(erasure)
  await transaction(pool, async (tx) => {
    await endErasure(tx, hash, wanted)
    // Rows that were added while a repeated erasure began.
    if (!isRecorded && Object.keys(erasure.erased).length > 0) await record(tx, null, erasure.erased)
  })
  return erasure.erased
}

const scopeOf = ({ accountId = ALL_ACCOUNTS }: Wanted) => accountId

/** Stores the hash, and returns the seed of this run's placeholders. `isRepeated`: an earlier run has completed. */
async function storeHash(db: Executor, hash: Buffer, wanted: Wanted): Promise<{ seed: Buffer; isRepeated: boolean }> {
  const drawn = randomBytes(32)
  const { rows } = await db.query<{ seed: Buffer; isNew: boolean }>(
    `insert into erased_people as e (hash, account_id, seed) values ($1, $2, $3)
     on conflict (hash, account_id) do update set seed = coalesce(e.seed, excluded.seed) returning seed, xmax = 0 as "isNew"`,
    [hash, scopeOf(wanted), drawn],
  )
  const { seed, isNew } = rows[0] as { seed: Buffer; isNew: boolean }
  return { seed, isRepeated: !isNew && seed.equals(drawn) }
}

/** The seeds of all unfinished runs for this person. Read after the commit: of two runs that begin at once, the later one finds both. */
async function readSeeds(db: Executor, hash: Buffer): Promise<Buffer[]> {
  const { rows } = await db.query<{ seed: Buffer }>('select seed from erased_people where hash = $1 and seed is not null', [hash])
  return rows.map(({ seed }) => seed)
}

/** The seed is deleted at the end. Without it, the placeholders of a person can't be connected with each other or with the hash. */
function placeholderOf(seed: Buffer, accountId: number): string {
  return PLACEHOLDER_PREFIX + createHmac('sha256', seed).update(String(accountId)).digest('hex').slice(0, 32)
}

/** Deletes the seed. An erasure in all accounts also completes unfinished erasures in single accounts. */
async function endErasure(db: Executor, hash: Buffer, wanted: Wanted): Promise<void> {
  const scope = scopeOf(wanted)
  await db.query(`update erased_people set seed = null where hash = $1 and ($2::int = ${ALL_ACCOUNTS} or account_id = $2)`, [hash, scope])
}

/** Drops replies that wait to be processed. An erasure in one account drops only replies to that account. */
async function dropReplies({ pool, wanted, erased }: Erasure): Promise<void> {
  const { rows } = await pool.query<{ carrier: string; eventId: string; event: CarrierEvent; occurredAt: Date }>(
    `select carrier, event_id as "eventId", event, occurred_at as "occurredAt" from carrier_events
     where process_after is not null and phone = $1`,
    [wanted.phone],
  )
  for (const { carrier, eventId, event, occurredAt } of rows) {
    const concerned = wanted.accountId === undefined ? [] : await findConcerned(pool, { ...event, occurredAt })
    if (concerned.some(({ accountId }) => accountId !== wanted.accountId)) continue
    const text = `update carrier_events set phone = '', event = '{}', process_after = null where carrier = $1 and event_id = $2`
    const { rowCount } = await pool.query(text, [carrier, eventId])
    count(erased, 'networkEvents', rowCount ?? 0)
  }
}

function count(erased: Erased, place: string, rows: number): void {
  if (rows > 0) erased[place] = (erased[place] ?? 0) + rows
}

// Longer than any lease, so that the lease of a crashed worker has ended as well.
const CALLS_END_WITHIN_MS = 120_000
const POLL_MS = 50

/** Fails the messages that wait to be sent, and waits for calls in progress: the network's text in a result may contain the number. */
async function stopSending(erasure: Erasure): Promise<void> {
  const { pool, person, months } = erasure
  await awaitCalls(erasure, async () => {
    const { waiting, isSending } = await findQueued(pool, person, months)
    if (waiting.length > 0) await failWaiting(pool, waiting, 'ERASED', '', skipErased)
    return isSending
  })
}

/** Waits for SMS to test numbers that are being sent with the text of an SMS to the person: their short links are stored while they are sent. */
async function awaitCopies(erasure: Erasure, known: string[]): Promise<void> {
  const { pool, person, months } = erasure
  await awaitCalls(erasure, async () => {
    for await (const { ids } of findMessages(pool, { ...person, placeholders: known }, months)) {
      const { rowCount } = await pool.query(SENDING_COPIES, [ids])
      if (rowCount !== 0) return true
    }
    return false
  })
}

const SENDING_COPIES = `
  select from sms_queue where message_id = any ($1::uuid[]) and copy > 0 and lease is not null and due_at > now() limit 1`

/** Waits until no call is in progress. A later run of the same erasure continues where this one fails. */
async function awaitCalls({ person, callsEndWithinMs }: Erasure, isSending: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + callsEndWithinMs; await isSending(); await sleep(POLL_MS)) {
    if (performance.now() < deadline) continue
    const facts =
      `The erasure of ${person.phone} is not complete: a message to this number is still being sent after ${callsEndWithinMs / 1000} s. ` +
      'No further message goes to it.'
    throw new Refusal(`${facts} Run "herald person erase" again to finish the erasure.`, {
      code: 'RCS_REFUSED',
      reason: `${facts} Erase the number again to finish the erasure.`,
    })
  }
}

async function findQueued(db: Executor, person: Person, months: string[]): Promise<{ waiting: string[]; isSending: boolean }> {
  const { rows: sms } = await db.query(
    `select from sms_queue where account_id = any ($1::int[]) and recipient = $2 and lease is not null and due_at > now() limit 1`,
    [person.accounts, person.phone],
  )
  let isSending = sms.length > 0
  const waiting: string[] = []
  for await (const { ids } of findMessages(db, { ...person, placeholders: [] }, months)) {
    const { rows } = await db.query<{ messageId: string; isLeased: boolean }>(
      `select message_id as "messageId", leased_until > now() as "isLeased" from queue where message_id = any ($1::uuid[]) and task = 'send'`,
      [ids],
    )
    isSending ||= rows.some(({ isLeased }) => isLeased)
    waiting.push(...rows.filter(({ isLeased }) => !isLeased).map(({ messageId }) => messageId))
  }
  return { waiting, isSending }
}

/** A transaction that began before the first pass may still add a message, so the second pass runs after all of them have ended. */
async function eraseMessages(erasure: Erasure): Promise<void> {
  for (let pass = 1; pass <= 2; pass += 1) {
    await erasePlace(erasure, MESSAGES)
    await erasePlace(erasure, CAMPAIGNS)
    await awaitTransactions(erasure.pool)
  }
}

/** `known`: the placeholders that messages of this person may have. */
async function eraseDetails(erasure: Erasure, known: string[]): Promise<void> {
  const { pool, person, months } = erasure
  for await (const { month, ids } of findMessages(pool, { ...person, placeholders: known }, months))
    for (const place of MESSAGE_DETAILS) await erasePlace({ ...erasure, months: [month] }, place, ids)
}

async function erasePlace({ pool, person, months, erased, onProgress }: Erasure, place: Place, ids: string[] = []): Promise<void> {
  const onRead = counter(place.name, onProgress)
  for (const table of tablesOf(place, months)) {
    try {
      for await (const found of findRows(pool, table, person, { ids, onRead }))
        count(erased, place.name, await retryWhileLocked(() => eraseRows(pool, table, person, found, ids)))
    } catch (error) {
      if (!isDroppedMonth(error)) throw error
    }
  }
}

// An import of a large group holds its lock for minutes.
const LOCKED_FOR_MS = 600_000

/** Repeats a statement that timed out while it waited for a lock, or that PostgreSQL cancelled to end a deadlock. */
async function retryWhileLocked<T>(run: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + LOCKED_FOR_MS; ; await sleep(POLL_MS)) {
    try {
      return await run()
    } catch (error) {
      const isLocked = isTimedOut(error) || (error instanceof pg.DatabaseError && error.code === '40P01')
      if (!isLocked || performance.now() > deadline) throw error
    }
  }
}

/**
 * Erases the person's events, and the responses of webhook endpoints to them. The responses are erased first, since a second run finds them by
 * the events. An endpoint that is being called still gets the old event, so its response is erased after the call.
 */
async function eraseLog(erasure: Erasure): Promise<void> {
  const { pool, person, onProgress, erased } = erasure
  const { phone } = person
  const events: PlacedEvent[] = []
  const eraseResponses = () =>
    erasePlace(
      erasure,
      WEBHOOK_ATTEMPTS,
      events.map(({ accountId, position }) => `${accountId} ${position}`),
    )
  for (const accountId of person.accounts) {
    for await (const found of findInLog(pool, { accountId, phone }, counter('events', onProgress)))
      events.push(...found.flatMap(({ position }) => (position === null ? [] : [{ accountId, position }])))
  }
  await eraseResponses()
  for (const [index, accountId] of person.accounts.entries()) {
    const placeholder = person.placeholders[index] as string
    for await (const { erased: rows, positions } of eraseFromLog(pool, { accountId, phone }, { placeholder, withoutQuote })) {
      count(erased, 'events', rows)
      events.push(...positions.map((position) => ({ accountId, position })))
    }
  }
  await awaitPosts(pool, events)
  await eraseResponses()
}

type PlacedEvent = { accountId: number; position: number }

// The timeout of a call, and some seconds to record its result.
const POSTS_END_WITHIN_MS = 20_000

/** Waits until no worker can still be posting these events with the number. */
async function awaitPosts(db: Executor, events: PlacedEvent[]): Promise<void> {
  const { rows } = await db.query<{ now: Date }>('select clock_timestamp() as now')
  const values = [events.map(({ accountId }) => accountId), events.map(({ position }) => position), rows[0]?.now]
  for (const deadline = performance.now() + POSTS_END_WITHIN_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    const { rowCount } = await db.query(POSTING, values)
    if (rowCount === 0) return
  }
}

const POSTING = `
  select from unnest($1::int[], $2::bigint[]) as e (account_id, position)
  join webhook_endpoints w on w.account_id = e.account_id and w.leased_until > now()
  join webhook_deliveries d on d.endpoint_id = w.id and d.position = e.position and d.due_at <= $3
  limit 1`
