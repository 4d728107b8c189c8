import { noSuch, type OperatorError } from '../errors.ts'

export function notAssigned(accountId: number, agentId: string): OperatorError {
  return noSuch(
    `The agent ${agentId} is not assigned to account ${accountId}, or one of the two does not exist; see "herald agent list" and "herald account list".`,
  )
}
