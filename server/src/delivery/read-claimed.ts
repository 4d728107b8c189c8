import type { Logger } from 'pino'
import type { RcsCarrier, Traffic } from '../carriers/carrier.ts'
import type { MessageContent } from '../content/content.ts'
import { createBatcher } from '../db/batcher.ts'
import { byMonth, eventsTable, ifMonthIsMissing } from '../db/partitions.ts'
import { columns, type Executor, isUnavailable, listed } from '../db/pool.ts'
import type { Entry } from './claim.ts'

export type Claimed = {
  messageId: string
  recipient: string
  content: MessageContent
  traffic: Traffic
  expiresAt: Date
  /** The recipient has opted out, and messages of this kind respect that. */
  isOptedOut: boolean
  /** How long ago a worker first found that, after the last try that may have sent the message; 0 if none has. */
  heldBackForMs: number
}

/** The note of a message that is held back. If it was sent again since, the worker waits for another receipt. */
export const TRIES = (attempts: string) => `'tries before: ' || (${attempts})`

/**
 * Returns the message of each entry, or undefined if the partition of its month was dropped. Contents may be large, so the claim does not read
 * them.
 */
export async function readClaimed(db: Executor, entries: Entry[]): Promise<(Claimed | undefined)[]> {
  const found = new Map<string, Claimed>()
  for (const [messages, ofMonth] of byMonth(entries, ({ messageId }) => messageId)) {
    const query = { name: `read-claimed ${messages}`, text: read(messages), values: columns(ofMonth, 'messageId') }
    const { rows } = await db.query<Claimed>(query).catch(ifMonthIsMissing(messages, () => ({ rows: [] })))
    for (const row of rows) found.set(row.messageId, row)
  }
  return entries.map(({ messageId }) => found.get(messageId))
}

/** Reads one message. Concurrent reads share a statement, unless one of them is at fault. A fault is logged once until a read succeeds. */
export function createReader(db: Executor, { name, concurrency }: Pick<RcsCarrier, 'name' | 'concurrency'>, logger: Logger) {
  let hasFailed = false
  async function readAll(entries: Entry[]): Promise<(Claimed | undefined)[]> {
    try {
      const messages = await readClaimed(db, entries)
      hasFailed = false
      return messages
    } catch (error) {
      if (!hasFailed) logger[isUnavailable(error) ? 'warn' : 'error']({ carrier: name, err: error }, 'failed to read messages; will retry')
      hasFailed = true
      throw error
    }
  }
  return createBatcher(readAll, { maxItems: concurrency })
}

const read = (messages: string) => `
  select m.id as "messageId", m.recipient, coalesce(m.content, c.message) as content, m.traffic, m.expires_at as "expiresAt",
    coalesce(o.opted_out, false) as "isOptedOut",
    coalesce(round(extract(epoch from now() - held.since) * 1000)::float8, 0) as "heldBackForMs"
  from ${messages} m left join contents c on c.id = m.content_id
  left join lateral (
    select opted_out from opt_outs o
    where m.traffic = 'PROMOTION' and o.account_id = m.account_id and o.agent_id = m.agent_id and o.phone = m.recipient
  ) as o on true
  left join lateral (
    select min(e.occurred_at) as since from ${eventsTable(messages)} e, queue q
    where o.opted_out and e.message_id = m.id and e.kind = 'held-back' and e.occurred_at <= now()
      and q.message_id = m.id and e.detail = ${TRIES('q.attempts - 1')}
  ) as held on true
  where m.id = any (${listed('$1::uuid[]')}::uuid[])`
