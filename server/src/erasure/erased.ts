import { createHmac } from 'node:crypto'
import type { Executor } from '../db/pool.ts'

// Herald never writes to a person whose data was erased. Only a keyed hash of the number is stored. The key is a secret of the installation:
// without it, hashing all possible numbers would reveal the number.

/** The name of the secret that keys the hashes. */
export const ERASURE_SECRET = 'erasure'

/** The `account_id` of a person who was erased in all accounts, also in those that are created later. */
export const ALL_ACCOUNTS = 0

/** How the placeholder of an erased number begins. Random hex digits follow, so it is never a phone number. */
export const PLACEHOLDER_PREFIX = 'erased-'

/** In SQL: whether a column has a placeholder instead of a number. */
export const isErasedNumber = (column: string) => `${column} like '${PLACEHOLDER_PREFIX}%'`

/** In SQL: whether any person was erased. It reads one index entry at most, so only installations that have erased a person pay for the look-up. */
export const ANY_ERASED = 'exists (select from erased_people)'

/** Whether a phone was erased in an account. */
export type IsErased = (accountId: number, phone: string) => boolean

export type ErasedPeople = {
  hashOf: (phone: string) => Buffer
  /** Looks up these phones. */
  find: (db: Executor, phones: string[]) => Promise<IsErased>
}

/** For statements that found no erased person. */
export const NOBODY: IsErased = () => false

export function createErasedPeople(key: Buffer): ErasedPeople {
  const hashOf = (phone: string) => createHmac('sha256', key).update(phone).digest()

  async function find(db: Executor, phones: string[]): Promise<IsErased> {
    const { rows } = await db.query<{ hash: Buffer; accountId: number }>({
      name: 'find-erased',
      text: FIND_ERASED,
      values: [[...new Set(phones)].map(hashOf)],
    })
    if (rows.length === 0) return NOBODY
    const erased = new Set(rows.map(({ hash, accountId }) => `${hash.toString('hex')} ${accountId}`))
    return (accountId, phone) => {
      const hash = hashOf(phone).toString('hex')
      return erased.has(`${hash} ${ALL_ACCOUNTS}`) || erased.has(`${hash} ${accountId}`)
    }
  }

  return { hashOf, find }
}

export const FIND_ERASED = 'select hash, account_id as "accountId" from erased_people where hash = any ((select $1::bytea[])::bytea[])'
