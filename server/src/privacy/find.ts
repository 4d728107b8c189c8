import { listAccounts, requireAccount } from '../accounts/accounts.ts'
import type { Executor } from '../db/pool.ts'
import { ALL_ACCOUNTS, type ErasedPeople } from '../erasure/erased.ts'
import { findInLog } from '../events/erase.ts'
import { CAMPAIGNS, MESSAGE_DETAILS, MESSAGES, PLACES, type Place, WEBHOOK_ATTEMPTS } from './places.ts'
import { findRows, isDroppedMonth, listMonths, type Person, readRows, tablesOf } from './rows.ts'

/** Whose data: a number, in one account or in all. */
export type Wanted = { phone: string; accountId?: number | undefined }

/** `rows`: how many rows of `place` were read so far. */
export type Progress = { place: string; rows: number }
type OnProgress = (progress: Progress) => void

/** The accounts of a request. Rows that name no account are listed under 0, and only for all accounts. */
export async function accountsOf(db: Executor, { accountId }: Wanted): Promise<number[]> {
  if (accountId === undefined) return [...(await listAccounts(db)).map((account) => account.accountId), ALL_ACCOUNTS]
  await requireAccount(db, accountId)
  return [accountId]
}

/** The places to search; for a single account, without the places whose rows name no account. */
export const placesFor = ({ accountId }: Wanted) => PLACES.filter((place) => accountId === undefined || place.account !== '0')

/** Some rows of a place, as an export shows them. */
export type FoundRows = { place: string; rows: object[] }

/** Finds everything that is stored about a number. Yields the rows of a place in one or more batches, one after the other. */
export async function* findPerson(db: Executor, wanted: Wanted, onProgress?: OnProgress): AsyncGenerator<FoundRows> {
  for await (const { place, read } of search(db, wanted, onProgress)) {
    const rows = await read()
    if (rows.length > 0) yield { place, rows }
  }
}

/** How many rows were found. `read` returns what an export shows of them. */
type Batch = { place: string; count: number; read: () => Promise<object[]> }

async function* search(db: Executor, wanted: Wanted, onProgress: OnProgress = () => {}): AsyncGenerator<Batch> {
  const person = { phone: wanted.phone, accounts: await accountsOf(db, wanted), placeholders: [] }
  const months = await listMonths(db)
  yield* findIn(db, MESSAGES, person, { months, onProgress })
  for (const place of MESSAGE_DETAILS)
    for await (const { month, ids } of findMessages(db, person, months))
      yield* findIn(db, place, person, { months: [month], ids, onProgress })
  for (const place of [CAMPAIGNS, ...placesFor(wanted)]) yield* findIn(db, place, person, { months, onProgress })
  const ids: string[] = []
  for (const accountId of person.accounts) {
    const read = counter('events', onProgress)
    for await (const events of findInLog(db, { accountId, phone: wanted.phone }, read)) {
      ids.push(...events.map(({ position }) => `${accountId} ${position}`))
      const shown = events.map((event) => ({ accountId, ...event }))
      yield { place: 'events', count: events.length, read: async () => shown }
    }
  }
  yield* findIn(db, WEBHOOK_ATTEMPTS, person, { months, ids, onProgress })
}

/** Finds the ids of the person's messages, month by month. With `person.placeholders`, also of messages whose number has been replaced. */
export async function* findMessages(db: Executor, person: Person, months: string[]): AsyncGenerator<{ month: string; ids: string[] }> {
  for (const month of months) {
    for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
      const ids = await readIds(db, person, month, after)
      if (ids.length > 0) yield { month, ids }
      if (ids.length < BATCH_SIZE) break
      after = ids.at(-1) as string
    }
  }
}

const BATCH_SIZE = 500

async function readIds(db: Executor, { phone, accounts, placeholders }: Person, month: string, after: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from messages_${month} where recipient = any ($1::text[]) and account_id = any ($2::int[]) and id > $3 order by id limit $4`,
    [[phone, ...placeholders], accounts, after, BATCH_SIZE],
  )
  return rows.map(({ id }) => id)
}

type Search = { months: string[]; ids?: string[]; onProgress: OnProgress }

async function* findIn(db: Executor, place: Place, person: Person, { months, ids = [], onProgress }: Search): AsyncGenerator<Batch> {
  const onRead = counter(place.name, onProgress)
  for (const table of tablesOf(place, months)) {
    try {
      for await (const found of findRows(db, table, person, { ids, onRead }))
        yield { place: place.name, count: found.length, read: () => readRows(db, table, person, found, ids).catch(noneIfDropped) }
    } catch (error) {
      noneIfDropped(error)
    }
  }
}

function noneIfDropped(error: unknown): object[] {
  if (!isDroppedMonth(error)) throw error
  return []
}

export function counter(place: string, onProgress: OnProgress): (rows: number) => void {
  let rows = 0
  return (read) => {
    rows += read
    onProgress({ place, rows })
  }
}

/** `rows`: the number of rows of each place that has any. `erased`: where the person was erased before. */
export type Summary = { phone: string; rows: Record<string, number>; total: number; erased: { accountId: number | null; erasedAt: Date }[] }

export async function summarize(db: Executor, wanted: Wanted, erased: ErasedPeople, onProgress?: OnProgress): Promise<Summary> {
  const counts: Record<string, number> = {}
  for await (const { place, count } of search(db, wanted, onProgress)) counts[place] = (counts[place] ?? 0) + count
  const { rows } = await db.query<{ accountId: number | null; erasedAt: Date }>(
    `select nullif(account_id, ${ALL_ACCOUNTS}) as "accountId", erased_at as "erasedAt" from erased_people
     where hash = $1 and account_id = any ($2::int[]) order by account_id`,
    [erased.hashOf(wanted.phone), [...(await accountsOf(db, wanted)), ALL_ACCOUNTS]],
  )
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return { phone: wanted.phone, rows: counts, total, erased: rows }
}
