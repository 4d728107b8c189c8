import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import type { Rights } from './roles.ts'
import { hashOf, newSecret } from './secrets.ts'

const IDLE = `interval '12 hours'`
const AT_MOST = `interval '7 days'`
/** How long dangerous steps are allowed after the person gave the password. */
const CONFIRMED_FOR = `interval '10 minutes'`

const IS_LIVE = `s.last_used_at > now() - ${IDLE} and s.created_at > now() - ${AT_MOST}`

export type Session = Rights & {
  sessionId: string
  personId: number
  email: string
  name: string
  /** Without one, the person confirms dangerous steps at the OpenID provider. */
  hasPassword: boolean
  isConfirmed: boolean
  expiresAt: Date
}

type Client = { address: string; userAgent: string }
type Proof = {
  /** When the person gave the password, if not just now. */
  confirmedAt?: Date
  /** The hash that the password was checked with. */
  passwordHash?: string
}

/**
 * Opens a session, and returns the secret for its cookie. Only the hash of the secret is stored. Fails if the person was
 * disabled or the password was changed since the check. The lock makes a concurrent change wait until the session exists, so that the change ends it.
 */
export async function openSession(
  db: Executor,
  personId: number,
  { address, userAgent }: Client,
  { confirmedAt, passwordHash }: Proof = {},
): Promise<string> {
  const secret = newSecret()
  const { rowCount } = await db.query(
    `with ended as (delete from sessions s where not (${IS_LIVE}))
     insert into sessions (secret_hash, person_id, address, user_agent, confirmed_at)
     select $1, id, $3, left($4, 200), least(now(), $5::timestamptz) from people
     where id = $2 and disabled_at is null and ($6::text is null or password_hash = $6) for share`,
    [hashOf(secret), personId, address, userAgent, confirmedAt, passwordHash],
  )
  if (rowCount === 0) throw new ApiError('RCS_UNAUTHORIZED')
  return secret
}

/**
 * Ends all sessions of a person except `except`. Call it after the change, in the same transaction: a statement does not see sessions that were
 * committed while it waited for a lock.
 */
export async function endSessions(db: Executor, personId: number, except?: string): Promise<number> {
  const { rowCount } = await db.query('delete from sessions where person_id = $1 and id is distinct from $2::uuid', [personId, except])
  return rowCount ?? 0
}

const ROLES = `(
         select coalesce(json_agg(json_build_object('accountId', r.account_id, 'role', r.role) order by r.account_id), '[]')
         from people_roles r where r.person_id = p.id
       ) as roles`

const LIVE_SESSIONS = `sessions s join people p on p.id = s.person_id where ${IS_LIVE} and p.disabled_at is null`

/**
 * Finds the session of a cookie in the database, for every request: a session that was ended is refused on every node. `isUse`: whether its person
 * caused the request. Other requests leave the session to end after its idle time.
 */
export async function findSession(db: Executor, secret: string, { isUse = true } = {}): Promise<Session | undefined> {
  const { rows } = await db.query<Session & { isDue: boolean }>(
    `select s.id as "sessionId", p.id as "personId", p.email, p.name, p.is_operator as "isOperator",
       p.password_hash is not null as "hasPassword", s.confirmed_at > now() - ${CONFIRMED_FOR} as "isConfirmed",
       least(s.last_used_at + ${IDLE}, s.created_at + ${AT_MOST}) as "expiresAt", s.last_used_at < now() - interval '1 minute' as "isDue", ${ROLES}
     from ${LIVE_SESSIONS} and s.secret_hash = $1`,
    [hashOf(secret)],
  )
  if (rows[0] === undefined) return undefined
  const { isDue, ...session } = rows[0]
  // Once a minute is enough, and a write for every request would be a waste.
  if (isUse && isDue) await db.query('update sessions set last_used_at = now() where id = $1', [session.sessionId])
  return session
}

/** What these sessions may do now, by their ids. A session that has ended is not there. This does not count as a use of the sessions. */
export async function findSessionRights(db: Executor, sessionIds: string[]): Promise<Map<string, Rights>> {
  const { rows } = await db.query<Rights & { id: string }>({
    name: 'find-session-rights',
    text: FIND_SESSION_RIGHTS,
    values: [sessionIds],
  })
  return new Map(rows.map(({ id, ...rights }) => [id, rights]))
}

export const FIND_SESSION_RIGHTS = `
  select s.id, p.is_operator as "isOperator", ${ROLES} from ${LIVE_SESSIONS} and s.id = any ($1::uuid[])`

type ListedSession = { sessionId: string; createdAt: Date; lastUsedAt: Date; address: string; userAgent: string }

/** Sorts by creation, not by last use: a session that is used between two pages would move, and a page would skip it. */
export const SESSION_LIST: ListDefinition<'createdAt' | 'sessionId'> = {
  fields: { createdAt: { column: 's.created_at', type: 'timestamptz' }, sessionId: { column: 's.id', type: 'uuid', hidden: true } },
  id: 'sessionId',
  defaultSort: '-createdAt',
}

export async function listSessions(db: Executor, personId: number, read: PageRead = wholeList(SESSION_LIST)): Promise<ListedSession[]> {
  const { rows } = await db.query<ListedSession>(
    `select s.id as "sessionId", s.created_at as "createdAt", s.last_used_at as "lastUsedAt", s.address, s.user_agent as "userAgent"
     from sessions s where s.person_id = $1 and ${IS_LIVE} and ${read.condition} order by ${read.orderBy} limit $2`,
    [personId, read.fetch, ...read.values],
  )
  return rows
}

export async function readSessionsPage(db: Executor, personId: number, query: PageQuery): Promise<PageOf<ListedSession>> {
  const page = readPage(SESSION_LIST, query, 3, `sessions ${personId}`)
  return page.toBody(await listSessions(db, personId, page))
}

/** Ends a session of a person. */
export async function endSession(db: Executor, personId: number, sessionId: string): Promise<void> {
  const { rowCount } = await db.query('delete from sessions where person_id = $1 and id::text = $2', [personId, sessionId])
  if (rowCount === 0) throw new ApiError('RCS_SESSION_NOT_FOUND')
}

/** Notes that the person has given the password again. */
export async function confirmSession(db: Executor, sessionId: string): Promise<void> {
  await db.query('update sessions set confirmed_at = now() where id = $1', [sessionId])
}

/** Notes when the OpenID provider last asked the person for the password. Returns whether that is recent; undefined if it is not their session. */
export async function confirmByProvider(db: Executor, sessionId: string, personId: number, at: Date): Promise<boolean | undefined> {
  const { rows } = await db.query<{ isConfirmed: boolean }>(
    `update sessions s set confirmed_at = greatest(s.confirmed_at, least(now(), $3::timestamptz))
     where s.id::text = $1 and s.person_id = $2 and ${IS_LIVE}
     returning least(now(), $3::timestamptz) > now() - ${CONFIRMED_FOR} as "isConfirmed"`,
    [sessionId, personId, at],
  )
  return rows[0]?.isConfirmed
}
