import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { hashPassword, passwordViolations } from './passwords.ts'
import { endSessions } from './sessions.ts'
import { checkPassword } from './sign-in.ts'

/** `sessionId`: the session of the request, which stays. */
type PasswordChange = {
  personId: number
  email: string
  sessionId: string
  currentPassword: string
  newPassword: string
  address: string
}

/**
 * Changes the password of a person who gives the current one, and ends their other sessions. Wrong attempts count like those to sign in. Of two
 * concurrent changes, the second fails. `record`: called in the transaction.
 *
 * The admin who made the link for the earlier password may know it, and send this request. So `password_account_ids` stays (see
 * `endKnownPassword`).
 */
export async function changePassword(
  pool: Pool,
  { personId, email, sessionId, currentPassword, newPassword, address }: PasswordChange,
  record: (tx: Executor) => Promise<void>,
): Promise<void> {
  const details = passwordViolations(newPassword).map(({ reason }) => ({ path: '/newPassword', reason }))
  if (details.length > 0) throw new ApiError('RCS_INVALID_REQUEST', { details })
  const { passwordHash } = await checkPassword(pool, email, currentPassword, address)
  const newHash = await hashPassword(newPassword)
  await transaction(pool, async (tx) => {
    const { rowCount } = await tx.query(
      'update people set password_hash = $3 where id = $1 and password_hash = $2 and disabled_at is null',
      [personId, passwordHash, newHash],
    )
    if (rowCount === 0) throw new ApiError('RCS_UNAUTHORIZED')
    await endSessions(tx, personId, sessionId)
    await record(tx)
  })
}
