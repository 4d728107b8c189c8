import type { MessageContent } from '../content/content.ts'
import type { Variables } from '../content/variables.ts'
import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { UUID } from '../ids.ts'
import { type SentSms, smsOf } from '../messages/content.ts'
import type { SmsPlan } from '../messages/sms-fallback.ts'

/** `variables`: the values for members who have none of their own, if the content or the SMS has variables. */
type CampaignContent = { campaignId: string; content: MessageContent; variables?: Variables; sms?: SentSms }

/** Reads what the messages of a campaign say, also before it starts. Variables are as they were written. */
export async function readCampaignContent(db: Executor, accountId: number, id: string): Promise<CampaignContent> {
  const { rows } = UUID.test(id)
    ? await db.query<{ campaignId: string; content: MessageContent; variables: Variables | null; plan: SmsPlan | null }>(
        `select p.id as "campaignId", c.message as content, p.variables, p.fallback -> 'plan' as plan
         from campaigns p join contents c on c.id = p.content_id where p.account_id = $1 and p.id = $2`,
        [accountId, id],
      )
    : { rows: [] }
  if (rows[0] === undefined) throw notFound('RCS_CAMPAIGN_NOT_FOUND', 'id', 'campaign')
  const { plan, variables, ...campaign } = rows[0]
  return { ...campaign, ...(variables !== null && { variables }), ...(plan !== null && { sms: smsOf(plan) }) }
}
