import { requireAccount } from '../accounts/accounts.ts'
import { onlyAccount } from '../audit/record.ts'
import type { Executor } from '../db/pool.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'
import type { Rights, Role } from './roles.ts'
import { hashOf, newSecret } from './secrets.ts'

export type Token = {
  tokenId: number
  name: string
  role: Role
  /** The accounts of an admin or a viewer. An operator has all. */
  accountIds: number[]
  expiresAt: Date
  createdAt: Date
  /** Accurate to a minute. */
  lastUsedAt: Date | null
  revokedAt: Date | null
}

/** What the entry of a new or revoked token names. */
export const tokenEntry = ({ tokenId, accountIds }: Token) => ({ subject: String(tokenId), ...onlyAccount(accountIds) })

type NewToken = Pick<Token, 'name' | 'role' | 'accountIds' | 'expiresAt'>

const TOKEN = `id as "tokenId", name, role, account_ids as "accountIds", expires_at as "expiresAt", created_at as "createdAt",
  last_used_at as "lastUsedAt", revoked_at as "revokedAt"`

const IS_VALID = 'revoked_at is null and expires_at > now()'

/** The prefix shows in logs and secret scanners what the text is. */
const PREFIX = 'ho_'

/** Returns the token with its secret, which is shown only this once. */
export async function createToken(db: Executor, { name, role, accountIds, expiresAt }: NewToken): Promise<Token & { secret: string }> {
  for (const accountId of accountIds) await requireAccount(db, accountId)
  const secret = PREFIX + newSecret()
  const { rows } = await db.query<Token>(
    `insert into admin_tokens (name, secret_hash, role, account_ids, expires_at) values ($1, $2, $3, $4, $5) returning ${TOKEN}`,
    [name, hashOf(secret), role, accountIds, expiresAt],
  )
  return { ...(rows[0] as Token), secret }
}

export const TOKEN_LIST: ListDefinition<'tokenId'> = {
  fields: { tokenId: { column: 'id', type: 'bigint' } },
  id: 'tokenId',
  defaultSort: 'tokenId',
}

export async function listTokens(db: Executor, read: PageRead = wholeList(TOKEN_LIST)): Promise<Token[]> {
  const text = `select ${TOKEN} from admin_tokens where ${read.condition} order by ${read.orderBy} limit $1`
  return (await db.query<Token>(text, [read.fetch, ...read.values])).rows
}

export async function readTokensPage(db: Executor, query: PageQuery): Promise<PageOf<Token>> {
  const page = readPage(TOKEN_LIST, query, 2, 'tokens')
  return page.toBody(await listTokens(db, page))
}

/** Revokes a token, for every request that begins after the commit, on every node. Revoking it again changes nothing. */
export async function revokeToken(db: Executor, tokenId: number): Promise<Token> {
  const { rows } = await db.query<Token>(
    `update admin_tokens set revoked_at = coalesce(revoked_at, now()) where id = $1 returning ${TOKEN}`,
    [tokenId],
  )
  if (rows[0] === undefined) throw missing(`There is no token ${tokenId}`, 'see "herald token list"')
  return rows[0]
}

export type TokenRights = Rights & { tokenId: number; name: string; expiresAt: Date }

/** Finds a valid token in the database, for every request. */
export async function findToken(db: Executor, secret: string): Promise<TokenRights | undefined> {
  if (!secret.startsWith(PREFIX)) return undefined
  const { rows } = await db.query<Token & { isDue: boolean }>(
    `select ${TOKEN}, coalesce(last_used_at < now() - interval '1 minute', true) as "isDue" from admin_tokens
     where secret_hash = $1 and ${IS_VALID}`,
    [hashOf(secret)],
  )
  if (rows[0] === undefined) return undefined
  const { tokenId, name, expiresAt, isDue } = rows[0]
  if (isDue) await db.query('update admin_tokens set last_used_at = now() where id = $1', [tokenId])
  return { tokenId, name, expiresAt, ...rightsOf(rows[0]) }
}

function rightsOf({ role, accountIds }: Pick<Token, 'role' | 'accountIds'>): Rights {
  return { isOperator: role === 'operator', roles: role === 'operator' ? [] : accountIds.map((accountId) => ({ accountId, role })) }
}

/** What these tokens may do now, by their ids. A revoked or expired token is not there. This does not count as a use of the tokens. */
export async function findTokenRights(db: Executor, tokenIds: number[]): Promise<Map<number, Rights>> {
  const { rows } = await db.query<Token>({ name: 'find-token-rights', text: FIND_TOKEN_RIGHTS, values: [tokenIds] })
  return new Map(rows.map((token) => [token.tokenId, rightsOf(token)]))
}

export const FIND_TOKEN_RIGHTS = `select ${TOKEN} from admin_tokens where id = any ($1::int[]) and ${IS_VALID}`
