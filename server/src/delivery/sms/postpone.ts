import { fallbacksTable, forEachMonth, queryInSavepoint } from '../../db/partitions.ts'
import { columns, type Executor, lists } from '../../db/pool.ts'
import { opensAt } from '../../windows/gate.ts'
import { LIFE_HOURS } from './schedule.ts'

const HOUR_MS = 3_600_000

/** `attempts`: with this one. */
type Closed = { messageId: string; copy: number; window: string | null; attempts: number; dueMs: number; nowMs: number }

/**
 * Postpones SMS until their windows open. The claim has locked their entries. An SMS that was never tried lives from the first opening on, so that
 * a window that opens once a week does not make it late; a failed attempt gains it no further time.
 */
export async function postponeSms(tx: Executor, closed: readonly Closed[]): Promise<void> {
  const postponed = closed.map(({ messageId, copy, window, attempts, dueMs, nowMs }) => ({
    messageId,
    copy,
    opensAt: new Date(opensAt(window as string, nowMs)),
    expiresAt: attempts === 1 ? new Date(opensAt(window as string, dueMs) + LIFE_HOURS * HOUR_MS) : null,
  }))
  const values = columns(postponed, 'messageId', 'copy', 'opensAt', 'expiresAt')
  await tx.query({ name: 'postpone-sms', text: POSTPONE_SMS, values })
  await forEachMonth(
    postponed.filter(({ copy }) => copy === 0),
    ({ messageId }) => messageId,
    async (messagesTable, ofMonth) => {
      const table = fallbacksTable(messagesTable)
      const values = columns(ofMonth, 'messageId', 'opensAt')
      await queryInSavepoint(tx, { name: `show-postponed-sms ${table}`, text: showPostponed(table), values })
      return []
    },
    () => [],
  )
}

export const POSTPONE_SMS = `
  update sms_queue q set due_at = p.opens_at, expires_at = greatest(q.expires_at, p.expires_at)
  from unnest(${lists('uuid', 'smallint', 'timestamptz', 'timestamptz')}) as p (message_id, copy, opens_at, expires_at)
  where q.message_id = p.message_id and q.copy = p.copy`

/** Callers see when the SMS is due. */
export const showPostponed = (table: string) => `
  update ${table} f set due_at = p.opens_at
  from unnest(${lists('uuid', 'timestamptz')}) as p (message_id, opens_at)
  where f.message_id = p.message_id and f.status = 'SCHEDULED'`
