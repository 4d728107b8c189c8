import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'
import { composeText, linksIn } from '../sms/compose.ts'
import { readMessage } from './messages.ts'
import type { SmsPlan } from './sms-fallback.ts'

export type SentSms = { sender: string; text: string; hasShortLinks: boolean }

/** What a message says: by RCS, and by the SMS that it falls back to. */
type SentContent = { messageId: string; content: MessageContent; sms?: SentSms }

/**
 * Reads what a message says. The SMS has the links of the request, even if the recipient gets short ones: their codes need the key of the
 * links, which only processes that send SMS have.
 */
export async function readContent(db: Executor, accountId: number, messageId: string): Promise<SentContent> {
  const message = await readMessage(db, accountId, messageId)
  const { rows } = await db.query<{ content: MessageContent; plan: SmsPlan | null }>(
    `select coalesce(m.content, c.message) as content, f.plan from messages m
     left join contents c on c.id = m.content_id left join sms_fallbacks f on f.message_id = m.id where m.id = $1`,
    [message.messageId],
  )
  const { content, plan } = rows[0] as { content: MessageContent; plan: SmsPlan | null }
  return { messageId: message.messageId, content, ...(plan !== null && { sms: smsOf(plan) }) }
}

export function smsOf(plan: SmsPlan): SentSms {
  const links = linksIn(plan.content)
  const text = composeText(plan, (index) => links[index] as string)
  return { sender: plan.sender, text, hasShortLinks: plan.urlShortening && links.length > 0 }
}
