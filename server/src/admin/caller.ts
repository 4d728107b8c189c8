import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from '../http/guard.ts'

/** The account of a path, as the handlers of /v1 expect their caller. It has no key, so nothing restricts it to scopes or addresses. */
export async function findAdminCaller(pool: Pool, accountId: number, isOperator: boolean): Promise<Caller> {
  const { rows } = await pool.query<Pick<Caller, 'accountId' | 'accountVersion' | 'modules' | 'isSuspended'>>(
    `select id as "accountId", xmin::text as "accountVersion", modules, suspended_at is not null as "isSuspended" from accounts where id = $1`,
    [accountId],
  )
  if (rows[0] === undefined) throw new ApiError('RCS_ACCOUNT_NOT_FOUND')
  return { ...rows[0], integrationKey: '', keyVersion: '', secretHash: Buffer.alloc(32), scopes: null, addresses: null, isOperator }
}
