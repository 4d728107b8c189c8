import pg from 'pg'
import { noSuch, type OperatorError } from '../errors.ts'

/**
 * Runs a statement that writes a row for an agent of an account. Turns the foreign key violation of an unassigned agent into an error for
 * the operator.
 */
export async function withAssignedAgent<T>(accountId: number, agentId: string, write: () => Promise<T>): Promise<T> {
  return await write().catch((error) => {
    if (isMissingAssignment(error)) throw notAssigned(accountId, agentId)
    throw error
  })
}

export function notAssigned(accountId: number, agentId: string): OperatorError {
  return noSuch(
    `The agent ${agentId} is not assigned to account ${accountId}, or one of the two does not exist; see "herald agent list" and "herald account list".`,
  )
}

function isMissingAssignment(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23503' && error.constraint === 'opt_outs_account_id_agent_id_fkey'
}
