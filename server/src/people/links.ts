import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { ApiError, type Violation } from '../errors.ts'
import { refused } from '../refusal.ts'
import { hashPassword, passwordViolations } from './passwords.ts'
import { HAS_OPERATOR, hasRightsBeyond, isTaken, normalizedEmail, type Person } from './people.ts'
import { hashOf, newSecret } from './secrets.ts'
import { endSessions } from './sessions.ts'

const VALID_FOR = `interval '24 hours'`

/** A disabled person can't use a link, and must not get one that works once they are enabled. */
export function requireEnabled({ email, disabledAt }: Person): void {
  if (disabledAt === undefined) return
  throw refused(`${email} is disabled`, { command: `; "herald user enable ${email}" ends that`, caller: '; an operator can enable them' })
}

export type Link = { token: string; expiresAt: Date }

/**
 * Makes a one-time link for a person to set a password; earlier links of the person end. `accountIds`: for the link of an admin, the accounts of
 * the person; see `endKnownPassword`.
 */
export async function createLink(db: Executor, personId: number, accountIds?: number[]): Promise<Link> {
  const token = newSecret()
  const { rows } = await db.query<{ expiresAt: Date }>(
    `with replaced as (delete from people_links where person_id = $2 or expires_at <= now())
     insert into people_links (secret_hash, person_id, account_ids, expires_at) values ($1, $2, $3, now() + ${VALID_FOR})
     returning expires_at as "expiresAt"`,
    [hashOf(token), personId, accountIds],
  )
  return { token, ...(rows[0] as { expiresAt: Date }) }
}

/** The links of the first start begin so: the console asks only their owner for an address and a name. */
const FIRST = 'first-'

/** Makes a link for the first operator; undefined if there is one already. Each start of a node makes one, and all are valid. */
export async function createFirstLink(db: Executor): Promise<string | undefined> {
  const secret = FIRST + newSecret()
  const { rowCount } = await db.query(
    `with expired as (delete from people_links where expires_at <= now())
     insert into people_links (secret_hash, expires_at) select $1, now() + ${VALID_FOR} where not ${HAS_OPERATOR}`,
    [hashOf(secret)],
  )
  return rowCount === 1 ? secret : undefined
}

type Redeemed = { personId: number; email: string; isFirst: boolean; passwordHash: string }

/** What the owner of a link gives: a password, and for the first operator also who they are. */
type Redemption = { secret: string; password: string; email?: string; name?: string }

/**
 * Sets the password of the person of a link, and ends the link and all sessions of the person. The link of the first start creates an operator.
 * Only an existing link costs a password hash, or gets an error about what was given. The time shows whether a link exists, but nobody can guess
 * 256 random bits. `record`: called in the transaction.
 */
export async function redeemLink(
  pool: Pool,
  { secret, password, email, name }: Redemption,
  record: (tx: Executor, redeemed: Redeemed) => Promise<void> = async () => {},
): Promise<Redeemed> {
  const { rows: links } = await pool.query<{ isFirst: boolean }>(FIND_LINK, [hashOf(secret)])
  if (links[0] === undefined) throw new ApiError('RCS_LINK_GONE')
  const details = [...passwordViolations(password), ...ownerViolations({ email, name }, links[0].isFirst)]
  if (details.length > 0) throw new ApiError('RCS_INVALID_REQUEST', { details })
  const passwordHash = await hashPassword(password)
  const values = [hashOf(secret), passwordHash, email === undefined ? null : normalizedEmail(email), name]
  return await transaction(pool, async (tx) => {
    // Two links of the first start, used at the same moment, must not make two operators.
    await tx.query('lock table people in share row exclusive mode')
    const { rows } = await tx.query<Omit<Redeemed, 'passwordHash'>>(REDEEM, values).catch((error) => {
      throw isTaken(error) ? new ApiError('RCS_INVALID_REQUEST', { details: [TAKEN] }) : error
    })
    if (rows[0] === undefined) throw new ApiError('RCS_LINK_GONE')
    const redeemed = { ...rows[0], passwordHash }
    await endSessions(tx, redeemed.personId)
    await record(tx, redeemed)
    return redeemed
  })
}

const TAKEN = { path: '/email', reason: 'belongs to a person who is not an operator; give another address' }

/** Only the first operator gives an address and a name. With the link of a person, both are known. */
function ownerViolations(given: { email: string | undefined; name: string | undefined }, isFirst: boolean): Violation[] {
  return Object.entries(given)
    .filter(([, value]) => (value === undefined) === isFirst)
    .map(([field]) => ({ path: `/${field}`, reason: isFirst ? 'is required' : 'must be absent: the person of this link has one' }))
}

// Without expired links, and links of the first start once there is an operator.
const IS_VALID = `expires_at > now() and (person_id is not null or not ${HAS_OPERATOR})`

const FIND_LINK = `select person_id is null as "isFirst" from people_links where secret_hash = $1 and ${IS_VALID}`

const REDEEM = `
  with link as (
    delete from people_links where secret_hash = $1 and ${IS_VALID} returning person_id, account_ids
  ), first as (
    insert into people (email, name, password_hash, is_operator) select $3, $4, $2, true from link where person_id is null
    returning id, email
  ), changed as (
    update people p set password_hash = $2, password_account_ids = link.account_ids from link
    where p.id = link.person_id and p.disabled_at is null and not ${hasRightsBeyond('link.account_ids')} returning p.id, p.email
  ), unneeded as (
    delete from people_links where person_id is null and secret_hash <> $1 and exists (select from first)
  )
  select id as "personId", email, true as "isFirst" from first union all select id, email, false from changed`
