import pg from 'pg'
import { OperatorError } from '../errors.ts'

/** Runs what writes a row for an agent of an account. Where the account has no such agent, the database refuses; here it says so in a sentence. */
export async function withAssignedAgent<T>(accountId: number, agentId: string, write: () => Promise<T>): Promise<T> {
  return await write().catch((error) => {
    if (isMissingAssignment(error)) throw notAssigned(accountId, agentId)
    throw error
  })
}

export function notAssigned(accountId: number, agentId: string): OperatorError {
  return new OperatorError(
    `The agent ${agentId} is not assigned to account ${accountId}, or one of the two does not exist; see "herald agent list" and "herald account list".`,
  )
}

const CONSTRAINTS: (string | undefined)[] = ['opt_outs_account_id_agent_id_fkey', 'auto_replies_account_id_agent_id_fkey']

function isMissingAssignment(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23503' && CONSTRAINTS.includes(error.constraint)
}
