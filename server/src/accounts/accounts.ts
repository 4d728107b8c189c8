import type { Executor } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'

export const MODULES = ['rcs', 'sms'] as const
export type Module = (typeof MODULES)[number]

/** `quarantineHours`: minimum hours between two SMS to the same recipient, if the message asks for it. */
export type Account = { accountId: number; name: string; modules: Module[]; quarantineHours: number }

// A year, the limit of the column.
export const MAX_QUARANTINE_HOURS = 8_760

const ACCOUNT = 'id as "accountId", name, modules, quarantine_hours as "quarantineHours"'

export async function createAccount(db: Executor, name: string, modules: readonly Module[]): Promise<Account> {
  const { rows } = await db.query<Account>(`insert into accounts (name, modules) values ($1, $2) returning ${ACCOUNT}`, [name, modules])
  return rows[0] as Account
}

export async function listAccounts(db: Executor): Promise<Account[]> {
  const { rows } = await db.query<Account>(`select ${ACCOUNT} from accounts order by id`)
  return rows
}

export async function findAccount(db: Executor, accountId: number): Promise<Account> {
  const { rows } = await db.query<Account>(`select ${ACCOUNT} from accounts where id = $1`, [accountId])
  return rows[0] ?? noSuchAccount(accountId)
}

export async function setModules(db: Executor, accountId: number, modules: readonly Module[]): Promise<Account> {
  const { rows } = await db.query<Account>(`update accounts set modules = $2 where id = $1 returning ${ACCOUNT}`, [accountId, modules])
  return rows[0] ?? noSuchAccount(accountId)
}

export async function setQuarantine(db: Executor, accountId: number, hours: number): Promise<Account> {
  const { rows } = await db.query<Account>(`update accounts set quarantine_hours = $2 where id = $1 returning ${ACCOUNT}`, [
    accountId,
    hours,
  ])
  return rows[0] ?? noSuchAccount(accountId)
}

/** Throws an OperatorError if there is no such account. */
export async function requireAccount(db: Executor, accountId: number): Promise<void> {
  const { rowCount } = await db.query('select from accounts where id = $1', [accountId])
  if (rowCount === 0) noSuchAccount(accountId)
}

export function noSuchAccount(accountId: number): never {
  throw new OperatorError(`There is no account ${accountId}; see "herald account list".`)
}
