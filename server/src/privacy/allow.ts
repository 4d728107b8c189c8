import type { Executor } from '../db/pool.ts'
import { ALL_ACCOUNTS, type ErasedPeople } from '../erasure/erased.ts'
import { noSuch, OperatorError } from '../errors.ts'
import type { Wanted } from './find.ts'

/** Lets accounts write to an erased person again. Without an account, this includes erasures in single accounts. Erased data stays erased. */
export async function allowPerson(db: Executor, people: ErasedPeople, { phone, accountId = ALL_ACCOUNTS }: Wanted): Promise<void> {
  const { rows } = await db.query<{ accountId: number; isUnfinished: boolean }>(
    `select account_id as "accountId", seed is not null as "isUnfinished" from erased_people
     where hash = $1 and ($2::int = ${ALL_ACCOUNTS} or account_id in ($2, ${ALL_ACCOUNTS}))`,
    [people.hashOf(phone), accountId],
  )
  if (rows.length === 0) throw noSuch(`${phone} was not erased${accountId === ALL_ACCOUNTS ? '' : ` in account ${accountId}`}.`)
  if (rows.some(({ isUnfinished }) => isUnfinished))
    throw new OperatorError(`The erasure of ${phone} is not complete; run "herald person erase" again to finish it.`)
  if (accountId !== ALL_ACCOUNTS && rows.some((row) => row.accountId === ALL_ACCOUNTS))
    throw new OperatorError(`${phone} was erased in all accounts, so it can only be allowed in all of them: leave out --account.`)
  await db.query('delete from erased_people where hash = $1 and account_id = any ($2::int[])', [
    people.hashOf(phone),
    rows.map((row) => row.accountId),
  ])
}
