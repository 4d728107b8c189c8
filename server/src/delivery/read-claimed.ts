import type { Logger } from 'pino'
import type { RcsCarrier, Traffic } from '../carriers/carrier.ts'
import type { MessageContent } from '../content/content.ts'
import { createBatcher } from '../db/batcher.ts'
import { forEachMonth } from '../db/partitions.ts'
import { columns, type Executor, isUnavailable, listed } from '../db/pool.ts'
import { ANY_ERASED, type ErasedPeople, NOBODY, PLACEHOLDER_PREFIX } from '../erasure/erased.ts'
import { optOutOf } from '../replies/opt-outs.ts'
import { CAPABILITY, type Capability } from './capabilities.ts'
import type { Entry } from './claim.ts'

export type Claimed = {
  messageId: string
  recipient: string
  content: MessageContent
  traffic: Traffic
  expiresAt: Date
  /** Null: the message is sent without a look-up. */
  capability: Capability | null
  /** Why the message must not be sent: the recipient is blocked, or opted out and the message is of a campaign. */
  stoppedBy: 'BLOCKED' | 'OPTED_OUT' | null
  /** The data of the recipient was erased, before the message was accepted or since. */
  isErased: boolean
  /** Milliseconds since the message was first held back after its last call; 0 if it is not held back. */
  heldBackForMs: number
}

/** Returns the message of each entry; undefined if the partition of its month was dropped. Contents may be large, so the claim omits them. */
export async function readClaimed(db: Executor, entries: Entry[], erased: ErasedPeople): Promise<(Claimed | undefined)[]> {
  const messages = await forEachMonth(
    entries,
    ({ messageId }) => messageId,
    async (messagesTable, ofMonth) => {
      const query = { name: `read-claimed ${messagesTable}`, text: readMonth(messagesTable), values: columns(ofMonth, 'messageId') }
      return (await db.query<Read>(query)).rows
    },
    () => [],
  )
  const isErased = messages[0]?.hasErased
    ? await erased.find(
        db,
        messages.map(({ recipient }) => recipient),
      )
    : NOBODY
  const found = new Map(messages.map(({ hasErased, ...message }) => [message.messageId, message]))
  return entries.map(({ messageId, accountId }) => {
    const message = found.get(messageId)
    if (message === undefined) return undefined
    return { ...message, isErased: message.recipient.startsWith(PLACEHOLDER_PREFIX) || isErased(accountId, message.recipient) }
  })
}

type Read = Omit<Claimed, 'isErased'> & { hasErased: boolean }

/**
 * Makes a function that reads one message. Concurrent reads share a statement; if it fails, each runs alone. Of several errors in a row, it logs
 * the first.
 */
export function createReader(
  db: Executor,
  { name, concurrency }: Pick<RcsCarrier, 'name' | 'concurrency'>,
  erased: ErasedPeople,
  logger: Logger,
) {
  let hasFailed = false
  async function readAll(entries: Entry[]): Promise<(Claimed | undefined)[]> {
    try {
      const messages = await readClaimed(db, entries, erased)
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

export const readMonth = (messagesTable: string) => `
  select m.id as "messageId", m.recipient, coalesce(m.content, c.message) as content, m.traffic, m.expires_at as "expiresAt",
    ${CAPABILITY} as capability, o.reason as "stoppedBy", ${ANY_ERASED} as "hasErased",
    case when q.held_back_attempts = q.attempts - 1
      then round(greatest(0, extract(epoch from now() - q.held_back_at)) * 1000)::float8 else 0 end as "heldBackForMs"
  from ${messagesTable} m left join contents c on c.id = m.content_id
  left join lateral (
    select case when blocked then 'BLOCKED' when opted_out and m.traffic = 'PROMOTION' then 'OPTED_OUT' end as reason
    from (${optOutOf('m.account_id', 'm.agent_id', 'm.recipient')}) as latest
  ) as o on true
  left join queue q on o.reason is not null and q.message_id = m.id
  where m.id = any (${listed('$1::uuid[]')}::uuid[])`
