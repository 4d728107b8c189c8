import type { Pool } from '../../src/db/pool.ts'

export type Known = { group?: number; consents?: number[]; controlGroup?: boolean; active?: boolean; attributes?: object }

/** Adds a recipient to a group of the account. */
export async function joinGroup(pool: Pool, accountId: number, phone: string, known: Known = {}): Promise<void> {
  const { group = 1, consents = [], controlGroup = false, active = true, attributes = null } = known
  await pool.query('insert into groups (account_id, number) values ($1, $2) on conflict do nothing', [accountId, group])
  await pool.query(
    `insert into group_members (account_id, group_number, phone, consents, control_group, active, attributes)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [accountId, group, phone, consents, controlGroup, active, attributes],
  )
}
