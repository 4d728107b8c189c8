import type { Executor } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'

export const MODULES = ['rcs', 'sms'] as const
export type Module = (typeof MODULES)[number]

export type Account = { accountId: number; name: string; modules: Module[] }

const ACCOUNT = 'id as "accountId", name, modules'

export async function createAccount(db: Executor, name: string, modules: readonly Module[]): Promise<Account> {
  const { rows } = await db.query<Account>(`insert into accounts (name, modules) values ($1, $2) returning ${ACCOUNT}`, [name, modules])
  return rows[0] as Account
}

export async function listAccounts(db: Executor): Promise<Account[]> {
  const { rows } = await db.query<Account>(`select ${ACCOUNT} from accounts order by id`)
  return rows
}

export async function setModules(db: Executor, accountId: number, modules: readonly Module[]): Promise<Account> {
  const { rows } = await db.query<Account>(`update accounts set modules = $2 where id = $1 returning ${ACCOUNT}`, [accountId, modules])
  return rows[0] ?? noSuchAccount(accountId)
}

export function noSuchAccount(accountId: number): never {
  throw new OperatorError(`There is no account ${accountId}; "herald account list" shows those there are.`)
}
