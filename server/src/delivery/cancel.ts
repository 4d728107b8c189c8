import { messagesTableOf } from '../db/partitions.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import { failMonth } from './fail.ts'
import { FAILURES } from './failures.ts'
import { skipCancelled } from './sms/schedule.ts'

/**
 * Cancels a message that waits to be sent, and returns it. Its SMS is skipped. If an attempt failed in a way that may have sent it, the network is
 * asked to revoke it. A message that was cancelled before is no error: the caller may not have got the first response.
 */
export async function cancelMessage(pool: Pool, accountId: number, messageId: string): Promise<Message> {
  const before = await readMessage(pool, accountId, messageId)
  const table = messagesTableOf(before.messageId)
  await pool.query({ name: `cancel-message ${table}`, text: cancelOfMonth(table), values: [[before.messageId], FAILURES.CANCELLED] })
  const message = await readMessage(pool, accountId, messageId)
  if (isCancelled(message)) return message
  throw tooLate(message)
}

export const isCancelled = ({ failure }: Message) => failure?.reason === 'CANCELLED'

/** Throws if the message can no longer be cancelled, whatever happens next. */
export function refuseLateCancel(message: Message): void {
  if (!['ACCEPTED', 'SENDING'].includes(message.status) && !isCancelled(message)) throw tooLate(message)
}

function tooLate({ status }: Message): ApiError {
  const reason = `is ${status}: a message can be cancelled while it waits to be handed to the network`
  return new ApiError('RCS_MESSAGE_STATE', { details: [{ path: '/status', reason }] })
}

/** Waits for a worker that is claiming the entry, to see whether it did. */
export const cancelOfMonth = (messagesTable: string) => failMonth(messagesTable, 'CANCELLED', skipCancelled, { lock: 'for update' })
