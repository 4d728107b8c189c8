import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { UUID } from '../ids.ts'
import { type SentSms, smsOf } from '../messages/content.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'

/** Reads what the messages of a campaign say, also before it starts. */
export async function readCampaignContent(
  db: Executor,
  accountId: number,
  id: string,
): Promise<{ campaignId: string; content: MessageContent; sms?: SentSms }> {
  const { rows } = UUID.test(id)
    ? await db.query<{ campaignId: string; content: MessageContent; plan: SmsPlan | null }>(
        `select p.id as "campaignId", c.message as content, p.fallback -> 'plan' as plan
         from campaigns p join contents c on c.id = p.content_id where p.account_id = $1 and p.id = $2`,
        [accountId, id],
      )
    : { rows: [] }
  if (rows[0] === undefined) throw notFound('RCS_CAMPAIGN_NOT_FOUND', 'id', 'campaign')
  const { campaignId, content, plan } = rows[0]
  return { campaignId, content, ...(plan !== null && { sms: smsOf(plan) }) }
}
