import type { Executor } from '../db/pool.ts'
import { ALL_ACCOUNTS, type ErasedPeople } from '../erasure/erased.ts'
import { Refusal, refused } from '../refusal.ts'
import type { Wanted } from './find.ts'

/** Where a person was erased. Null: in all accounts. */
type Erasure = { accountId: number | null; erasedAt: Date }

/**
 * Lets accounts write to an erased person again. Without an account, this includes erasures in single accounts. Erased data stays erased.
 * Returns the erasures that no longer count.
 */
export async function allowPerson(db: Executor, people: ErasedPeople, wanted: Wanted): Promise<Erasure[]> {
  const rows = await findErasures(db, people, wanted)
  await db.query('delete from erased_people where hash = $1 and account_id = any ($2::int[])', [
    people.hashOf(wanted.phone),
    rows.map((row) => row.accountId),
  ])
  return rows.map((row) => ({ accountId: row.accountId === ALL_ACCOUNTS ? null : row.accountId, erasedAt: row.erasedAt }))
}

type StoredErasure = { accountId: number; erasedAt: Date; isUnfinished: boolean }

/** Finds the erasures that `allowPerson` would end. Throws if it would refuse to. */
export async function findErasures(
  db: Executor,
  people: ErasedPeople,
  { phone, accountId = ALL_ACCOUNTS }: Wanted,
): Promise<StoredErasure[]> {
  const { rows } = await db.query<StoredErasure>(
    `select account_id as "accountId", erased_at as "erasedAt", seed is not null as "isUnfinished" from erased_people
     where hash = $1 and ($2::int = ${ALL_ACCOUNTS} or account_id in ($2, ${ALL_ACCOUNTS}))`,
    [people.hashOf(phone), accountId],
  )
  if (rows.length === 0) {
    const reason = `${phone} was not erased${accountId === ALL_ACCOUNTS ? '' : ` in account ${accountId}`}.`
    throw new Refusal(reason, { code: 'RCS_NOT_FOUND', reason })
  }
  if (rows.some(({ isUnfinished }) => isUnfinished)) {
    throw refused(`The erasure of ${phone} is not complete`, {
      command: '; run "herald person erase" again to finish it',
      caller: '; erase the number again to finish it',
    })
  }
  if (accountId !== ALL_ACCOUNTS && rows.some((row) => row.accountId === ALL_ACCOUNTS)) {
    throw refused(`${phone} was erased in all accounts, so it can only be allowed in all of them`, {
      command: ': leave out --account',
      caller: ', by an operator',
    })
  }
  return rows
}
