import pg from 'pg'
import { noSuchAccount, requireAccount } from '../accounts/accounts.ts'
import { countUsage } from '../accounts/usage.ts'
import type { RecordChange } from '../audit/record.ts'
import { accountTransaction, type Executor, type Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { Refusal } from '../refusal.ts'
import { memberBytes } from './member-bytes.ts'

/** `group` is the number that callers use in `segmentIds`. */
export type Group = { group: number; name: string | null; members: number; createdAt: Date; updatedAt: Date }
export type GroupKey = { accountId: number; number: number }

export const MAX_GROUP_NUMBER = 2 ** 31 - 1
export const MAX_GROUP_NAME_CHARACTERS = 200

// The statement timeout for a whole group or file. A million members take seconds, but a file may have many millions, the disk may be slow, and
// another change of the same group may have to finish first. The client's timeout is longer, as for all statements.
const LONG_STATEMENT_MS = 60 * 60 * 1000
export const LONG_STATEMENTS = `set local statement_timeout = ${LONG_STATEMENT_MS}`
export const LONG_QUERY = { query_timeout: LONG_STATEMENT_MS + 1_000 }

export const GROUP = 'number as "group", name, members, created_at as "createdAt", updated_at as "updatedAt"'

export type Member = {
  phone: string
  consents: number[]
  controlGroup: boolean
  status: 'active' | 'inactive'
  timeZone?: string
  attributes?: Record<string, string>
}
export type MemberRow = Omit<Member, 'timeZone' | 'attributes'> & { timeZone: string | null; attributes: Record<string, string> | null }

export const MEMBER = `phone, consents, control_group as "controlGroup", case when active then 'active' else 'inactive' end as status,
  time_zone as "timeZone", attributes`

const FOREIGN_KEY_VIOLATION = '23503'

/**
 * Locks a group until the transaction ends, so that changes of one group run one after the other. Every change takes this lock before it draws
 * a generation, so the generations of a group are in the order of their commits.
 */
async function lockGroup(tx: Executor, { accountId, number }: GroupKey, timeout = {}): Promise<void> {
  const values = [`change group ${number} of account ${accountId}`]
  const isLong = 'query_timeout' in timeout
  if (!isLong) await tx.query(`set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`)
  try {
    await tx.query({ text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))', values, ...timeout })
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE) throw groupBusy(number)
    throw error
  }
}

// The write phase of an import of a million members takes ten seconds. A caller gets a response within five.
const LOCK_TIMEOUT_MS = 3_000
const LOCK_NOT_AVAILABLE = '55P03'
const BUSY_RETRY_SECONDS = 5

/** A large import or removal of the same group is running. */
function groupBusy(number: number): Refusal {
  return new Refusal(`Group ${number} is being changed by an import or a removal; try again when it has ended.`, {
    code: 'RCS_UNAVAILABLE',
    reason: 'An import or a removal is changing the segment; try again when it has ended.',
    retryAfterSeconds: BUSY_RETRY_SECONDS,
  })
}

/** Creates the group, or marks an existing one as changed and renames it if a name is given. Returns its generation, for new members. */
export async function createGroup(tx: Executor, group: GroupKey & { name?: string | undefined }, timeout = {}): Promise<number> {
  await lockGroup(tx, group, timeout)
  try {
    const { rows } = await tx.query<{ generation: number }>(
      `insert into groups (account_id, number, name, generation) values ($1, $2, $3, nextval('group_generations'))
       on conflict (account_id, number) do update
       set name = coalesce(excluded.name, groups.name), generation = excluded.generation, updated_at = now()
       returning generation`,
      [group.accountId, group.number, group.name],
    )
    return (rows[0] as { generation: number }).generation
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === FOREIGN_KEY_VIOLATION) noSuchAccount(group.accountId)
    throw error
  }
}

/** Creates a group with this name, or renames it. A group that already has the name stays as it is. `isNew`: refuses one that exists. */
export async function nameGroup(pool: Pool, group: GroupKey & { name: string }, { isNew = false } = {}): Promise<Group> {
  return await accountTransaction(pool, group.accountId, async (tx) => {
    await lockGroup(tx, group)
    const found = await findGroup(tx, group)
    if (isNew && found !== undefined) throw new ApiError('RCS_SEGMENT_EXISTS')
    if (found?.name === group.name) return found
    await createGroup(tx, group)
    return (await findGroup(tx, group)) as Group
  })
}

export async function findGroup(db: Executor, { accountId, number }: GroupKey): Promise<Group | undefined> {
  return (await db.query<Group>(`select ${GROUP} from groups where account_id = $1 and number = $2`, [accountId, number])).rows[0]
}

export async function listGroups(db: Executor, accountId: number): Promise<Group[]> {
  await requireAccount(db, accountId)
  return (await db.query<Group>(`select ${GROUP} from groups where account_id = $1 order by number`, [accountId])).rows
}

/** Locks a group and marks it as changed. Returns the generation of the change; undefined if there is no such group. */
export async function changeGroup(tx: Executor, group: GroupKey): Promise<number | undefined> {
  await lockGroup(tx, group)
  const { rows } = await tx.query<{ generation: number }>(
    `update groups set generation = nextval('group_generations'), updated_at = now() where account_id = $1 and number = $2 returning generation`,
    [group.accountId, group.number],
  )
  return rows[0]?.generation
}

const keepRemoved = (gone: string, generation: string) => `
  insert into removed_members (account_id, group_number, phone, generation, removed_generation, attributes, time_zone)
  select account_id, group_number, phone, generation, ${generation}, attributes, time_zone from ${gone}`

/** For the audit log, and so only with the names of its attributes: nothing can be erased from the log. */
type RemovedMember = Omit<MemberRow, 'attributes'> & { attributes: string[] }

/** Removes a member, and returns it; null if there was none, undefined if there is no such group. Campaigns that have started still send to it. */
export async function removeMember(pool: Pool, group: GroupKey, phone: string): Promise<RemovedMember | null | undefined> {
  return await accountTransaction(pool, group.accountId, async (tx) => {
    await lockGroup(tx, group)
    const { rows } = await tx.query<{ removed: MemberRow | null }>(REMOVE_MEMBER, [group.accountId, group.number, phone])
    const removed = rows[0]?.removed
    return removed && { ...removed, attributes: Object.keys(removed.attributes ?? {}) }
  })
}

const REMOVE_MEMBER = `
  with gone as (
    delete from group_members where account_id = $1 and group_number = $2 and phone = $3 returning *
  ), changed as (
    update groups set members = members - 1, bytes = bytes - (select sum(${memberBytes('gone')}) from gone), generation = nextval('group_generations'), updated_at = now()
    where account_id = $1 and number = $2 and exists (select from gone)
    returning generation
  ), kept as (${keepRemoved('gone', '(select generation from changed)')}
  ), freed as (${countUsage({ account: 'account_id', from: 'gone', contentBytes: `-sum(${memberBytes('gone')})` })}
  )
  select (select row_to_json(member) from (select ${MEMBER} from gone) as member) as removed
  from groups where account_id = $1 and number = $2`

/** Removes a group and its members; undefined if there is no such group. Campaigns that have started still send to all of them. */
export async function removeGroup(pool: Pool, group: GroupKey, record: RecordChange = async () => {}): Promise<Group | undefined> {
  return await accountTransaction(pool, group.accountId, async (tx) => {
    await tx.query(LONG_STATEMENTS)
    await lockGroup(tx, group, LONG_QUERY)
    const found = await findGroup(tx, group)
    if (found === undefined) return undefined
    await tx.query({ text: REMOVE_GROUP, values: [group.accountId, group.number], ...LONG_QUERY })
    await record(tx, null, found)
    return found
  })
}

const REMOVE_GROUP = `
  with drawn as materialized (
    select nextval('group_generations')::int as generation
  ), gone as (
    delete from group_members where account_id = $1 and group_number = $2 returning *
  ), kept as (${keepRemoved('gone', '(select generation from drawn)')}
  ), removed as (
    delete from groups where account_id = $1 and number = $2 returning account_id, bytes
  )
  ${countUsage({ account: 'account_id', from: 'removed', contentBytes: '-sum(bytes)' })}`
