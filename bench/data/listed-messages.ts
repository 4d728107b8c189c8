import type pg from 'pg'
import { type Account, AGENT } from '../setup/accounts.ts'
import { type Filled, inChunks, vacuum } from './messages.ts'
import { createCampaign } from './report-messages.ts'

// Messages of one account, written by SQL, over this month and the next two. All depends on the number of a message alone, so that every run
// has the same rows.

/** `n`: of a message, from 0 on. */
export const SHAPES = {
  recipient: (n: number) => `+48${500_000_000 + (n % 2_000_003)}`,
  clientReferenceId: (n: number) => `order-${Math.floor(n / 2)}`,
}
const RARE_AGENT = 'bench-rare'

export type Listed = { account: Account; messages: number; campaignIds: string[]; from: Date; to: Date; agents: string[] }

/** One campaign has half of the messages, three others a tenth each; of the rest, three in four are single messages and one is a test. */
export async function fillList(database: Filled, messages: number): Promise<Listed> {
  const { client, account } = database
  const { from, to } = await monthsOf(client)
  const campaigns = []
  for (let n = 0; n < 4; n += 1) campaigns.push((await createCampaign(client, account, messages, from)).campaignId)
  await inChunks(database, messages, { what: 'messages', text: FILL, more: [messages, from, to, campaigns] })
  await vacuum(client)
  return { account, messages, campaignIds: campaigns, from, to, agents: [AGENT, RARE_AGENT] }
}

async function monthsOf(client: pg.Client): Promise<{ from: Date; to: Date }> {
  const { rows } = await client.query<{ from: Date; to: Date }>(
    `select date_trunc('month', now(), 'UTC') as from, date_trunc('month', now(), 'UTC') + interval '85 days' as to`,
  )
  return rows[0] as { from: Date; to: Date }
}

// READ is common, SENT and FAILED are not, and EXPIRED is one in two million.
const STATUS = `case when n % 2000003 = 5 then 'EXPIRED' when n % 100 = 1 then 'FAILED' when n % 50 = 2 then 'SENT'
  when n % 3 = 0 then 'DELIVERED' else 'READ' end`

const FILL = `
  insert into messages (id, account_id, agent_id, recipient, status, basic, test, client_reference_id, campaign_id, content, accepted_at, expires_at,
    sent_at, delivered_at, read_at, failed_at, failure_reason, failure_description)
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    $3::int, case when n % 5000 = 7 then '${RARE_AGENT}' else '${AGENT}' end, '+48' || 500000000 + n % 2000003, status, false, n % 20 = 19,
    case when n % 20 in (16, 17, 18) then 'order-' || n / 2 end,
    case when n % 20 < 10 then ($7::uuid[])[1] when n % 20 < 16 then ($7::uuid[])[2 + (n % 20 - 10) / 2] end,
    '{"type":"MESSAGE","content":"Your order is on its way."}', at, at + interval '2 days',
    case when status in ('SENT', 'DELIVERED', 'READ') then at end, case when status in ('DELIVERED', 'READ') then at end,
    case when status = 'READ' then at end, case when status = 'FAILED' then at end, case when status = 'FAILED' then 'REJECTED' end,
    case when status = 'FAILED' then 'No.' end
  from generate_series($1::int, $2::int) as n,
    lateral (select ($5::timestamptz + n::float8 / $4::int * ($6::timestamptz - $5::timestamptz))::timestamptz(3)) as t (at),
    lateral (select ${STATUS}) as s (status)`
