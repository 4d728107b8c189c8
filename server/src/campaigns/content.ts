import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'
import { type SentSms, smsOf } from '../messages/content.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'
import { readCampaign } from './campaigns.ts'

/** Reads what the messages of a campaign say, also before it starts. */
export async function readCampaignContent(
  db: Executor,
  accountId: number,
  id: string,
): Promise<{ campaignId: string; content: MessageContent; sms?: SentSms }> {
  const { campaignId } = await readCampaign(db, accountId, id)
  const { rows } = await db.query<{ content: MessageContent; plan: SmsPlan | null }>(
    `select c.message as content, p.fallback -> 'plan' as plan
     from campaigns p join contents c on c.id = p.content_id where p.account_id = $1 and p.id = $2`,
    [accountId, campaignId],
  )
  const { content, plan } = rows[0] as { content: MessageContent; plan: SmsPlan | null }
  return { campaignId, content, ...(plan !== null && { sms: smsOf(plan) }) }
}
