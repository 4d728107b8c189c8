import type pg from 'pg'
import type { Account } from '../setup/accounts.ts'
import { createCampaign } from './report-messages.ts'

// What an account has beside its messages after some years.

export const TEMPLATES = 500
export const GROUPS = 200
export const CAMPAIGNS = 1_000
const MEMBERS_OF_LARGEST = 1_000_000

export async function fillAccount(client: pg.Client, account: Account, { quick, from }: { quick: boolean; from: Date }): Promise<void> {
  const { accountId } = account
  const message = '{"type":"CARD","content":"It comes tomorrow.","data":{"title":"Your order is on its way"}}'
  await client.query(
    `with made as (
       insert into contents (account_id, basic, message)
       select $1::int, false, jsonb_set($2::jsonb, '{content}', to_jsonb('Number ' || n)) from generate_series(1, ${TEMPLATES}) as n returning id
     )
     insert into templates (id, account_id, name, status, type, content_id)
     select id, $1::int, 'Template ' || id, case when id % 3 = 0 then 'DRAFT' else 'APPROVED' end, 'CARD', id from made`,
    [accountId, message],
  )
  const members = quick ? 1_000 : MEMBERS_OF_LARGEST
  await client.query(
    `insert into groups (account_id, number, name, members) select $1, n, 'Group ' || n, case when n = 1 then $2::int else 100 end
     from generate_series(1, ${GROUPS}) as n`,
    [accountId, members],
  )
  await client.query(
    `insert into group_members (account_id, group_number, phone)
     select $1::int, 1, '+48' || 500000000 + n from generate_series(1, $2::int) as n
     union all select $1::int, g, '+48' || 500000000 + n from generate_series(2, ${GROUPS}) as g, generate_series(1, 100) as n`,
    [accountId, members],
  )
  for (let n = 0; n < CAMPAIGNS; n += 1) await createCampaign(client, account, 100, from)
  await client.query('vacuum analyze')
}
