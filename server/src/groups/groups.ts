import pg from 'pg'
import { noSuchAccount, requireAccount } from '../accounts/accounts.ts'
import type { Executor } from '../db/pool.ts'

/** `group` is the number that callers use in `segmentIds`. */
type Group = { group: number; name: string | null; members: number; createdAt: Date; updatedAt: Date }

export const MAX_GROUP_NUMBER = 2 ** 31 - 1
export const MAX_GROUP_NAME_CHARACTERS = 200

const GROUP = 'number as "group", name, members, created_at as "createdAt", updated_at as "updatedAt"'
const FOREIGN_KEY_VIOLATION = '23503'

/** Creates the group, or marks an existing one as changed and renames it if a name is given. Returns its generation, for new members. */
export async function createGroup(db: Executor, group: { accountId: number; number: number; name?: string | undefined }): Promise<number> {
  try {
    const { rows } = await db.query<{ generation: number }>(
      `insert into groups (account_id, number, name, generation) values ($1, $2, $3, 1)
       on conflict (account_id, number) do update
       set name = coalesce(excluded.name, groups.name), generation = groups.generation + 1, updated_at = now()
       returning generation`,
      [group.accountId, group.number, group.name],
    )
    return (rows[0] as { generation: number }).generation
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === FOREIGN_KEY_VIOLATION) noSuchAccount(group.accountId)
    throw error
  }
}

export async function findGroup(db: Executor, accountId: number, number: number): Promise<Group | undefined> {
  return (await db.query<Group>(`select ${GROUP} from groups where account_id = $1 and number = $2`, [accountId, number])).rows[0]
}

export async function listGroups(db: Executor, accountId: number): Promise<Group[]> {
  await requireAccount(db, accountId)
  return (await db.query<Group>(`select ${GROUP} from groups where account_id = $1 order by number`, [accountId])).rows
}
