import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'
import { type DeliveryWindow, textOf, windowOf } from '../windows/window.ts'

export const MODULES = ['rcs', 'sms'] as const
export type Module = (typeof MODULES)[number]

export type Account = {
  accountId: number
  name: string
  modules: Module[]
  /** Minimum hours between two SMS to the same recipient, if the message asks for it. */
  quarantineHours: number
  /** The delivery window of campaigns that have none of their own; absent if there is none. */
  campaignWindow?: Required<DeliveryWindow>
  /** Absent unless the account is suspended. */
  suspendedAt?: Date
}

type Row = Omit<Account, 'suspendedAt' | 'campaignWindow'> & { suspendedAt: Date | null; campaignWindow: string | null }

// A year, the limit of the column.
export const MAX_QUARANTINE_HOURS = 8_760

const ACCOUNT = `id as "accountId", name, modules, quarantine_hours as "quarantineHours", campaign_window as "campaignWindow",
  suspended_at as "suspendedAt"`

function toAccount({ suspendedAt, campaignWindow, ...row }: Row): Account {
  return {
    ...row,
    ...(campaignWindow !== null && { campaignWindow: windowOf(campaignWindow) }),
    ...(suspendedAt !== null && { suspendedAt }),
  }
}

export async function createAccount(db: Executor, name: string, modules: readonly Module[]): Promise<Account> {
  const { rows } = await db.query<Row>(`insert into accounts (name, modules) values ($1, $2) returning ${ACCOUNT}`, [name, modules])
  return toAccount(rows[0] as Row)
}

export const ACCOUNT_LIST: ListDefinition<'accountId'> = {
  fields: { accountId: { column: 'id', type: 'bigint' } },
  id: 'accountId',
  defaultSort: 'accountId',
}

/** `accountIds`: only these accounts. */
export async function listAccounts(
  db: Executor,
  accountIds?: readonly number[],
  read: PageRead = wholeList(ACCOUNT_LIST),
): Promise<Account[]> {
  const { rows } = await db.query<Row>(
    `select ${ACCOUNT} from accounts where ($1::int[] is null or id = any ($1)) and ${read.condition} order by ${read.orderBy} limit $2`,
    [accountIds, read.fetch, ...read.values],
  )
  return rows.map(toAccount)
}

export async function readAccountsPage(db: Executor, query: PageQuery, accountIds?: readonly number[]): Promise<PageOf<Account>> {
  const page = readPage(ACCOUNT_LIST, query, 3, 'accounts')
  return page.toBody(await listAccounts(db, accountIds, page))
}

export async function findAccount(db: Executor, accountId: number): Promise<Account> {
  const { rows } = await db.query<Row>(`select ${ACCOUNT} from accounts where id = $1`, [accountId])
  return toAccount(rows[0] ?? noSuchAccount(accountId))
}

/** `change` assigns columns. Nodes notice every change of the row, and look up the callers of the account again. */
async function changeAccount(db: Executor, accountId: number, change: string, ...values: unknown[]): Promise<Account> {
  const { rows } = await db.query<Row>(`update accounts set ${change} where id = $1 returning ${ACCOUNT}`, [accountId, ...values])
  return toAccount(rows[0] ?? noSuchAccount(accountId))
}

export const setModules = (db: Executor, accountId: number, modules: readonly Module[]) =>
  changeAccount(db, accountId, 'modules = $2', modules)

export const setQuarantine = (db: Executor, accountId: number, hours: number) =>
  changeAccount(db, accountId, 'quarantine_hours = $2', hours)

/** Campaigns that are accepted from now on have this window, unless they have one of their own. Undefined: none. */
export const setCampaignWindow = (db: Executor, accountId: number, window: DeliveryWindow | undefined) =>
  changeAccount(db, accountId, 'campaign_window = $2', window === undefined ? null : textOf(window))

export const renameAccount = (db: Executor, accountId: number, name: string) => changeAccount(db, accountId, 'name = $2', name)

/**
 * From the commit on, requests of the account get 403, and nothing of it is claimed, fanned out or started. Calls in progress end. Suspending
 * a suspended account keeps the time of the first suspension.
 */
export const suspendAccount = (db: Executor, accountId: number) =>
  changeAccount(db, accountId, 'suspended_at = coalesce(suspended_at, now())')

/**
 * In SQL: the account is not suspended. PostgreSQL reads the suspended accounts once for each statement, from an index that is nearly always
 * empty. A join took 2 µs more for each lane of a claim.
 */
export const isLive = (accountId: string) => `${accountId} <> all (array(select id from accounts where suspended_at is not null))`

/** Workers poll once a second, and go on with what has not expired. */
export const resumeAccount = (db: Executor, accountId: number) => changeAccount(db, accountId, 'suspended_at = null')

type Waiting = { messages: number; sms: number; campaigns: number }

/** Counts what a suspension holds up now. Changes nothing. */
export async function countWaiting(db: Executor, accountId: number): Promise<Waiting> {
  const { rows } = await db.query<Waiting>(
    `select (select count(*) from queue where account_id = $1 and task = 'send') as messages,
       (select count(*) from sms_queue where account_id = $1) as sms,
       (select count(*) from campaigns where account_id = $1 and status = 'RUNNING') as campaigns`,
    [accountId],
  )
  return rows[0] as Waiting
}

/** Throws an OperatorError if there is no such account. */
export async function requireAccount(db: Executor, accountId: number): Promise<void> {
  const { rowCount } = await db.query('select from accounts where id = $1', [accountId])
  if (rowCount === 0) noSuchAccount(accountId)
}

export function noSuchAccount(accountId: number): never {
  throw missing(`There is no account ${accountId}`, 'see "herald account list"')
}

export async function hasAccounts(db: Executor): Promise<boolean> {
  const { rows } = await db.query<{ any: boolean }>('select exists (select from accounts) as any')
  return rows[0]?.any === true
}
