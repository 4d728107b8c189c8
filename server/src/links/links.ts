import { columns, type Executor } from '../db/pool.ts'
import { recordActions } from '../events/changes.ts'

/** `copy`: 0 for the recipient's SMS, otherwise the number of the test number's copy. */
export type ShortLink = {
  code: string
  accountId: number
  messageId: string
  copy: number
  agentId: string
  recipient: string
  url: string
}

/**
 * Stores links before the SMS that contains them is sent. A retry makes the same codes and changes nothing. Inserts in the order of the
 * codes, so that two transactions never deadlock.
 */
export async function createLinks(db: Executor, links: ShortLink[]): Promise<void> {
  await db.query({
    name: 'create-short-links',
    text: CREATE_LINKS,
    values: columns(links, 'code', 'accountId', 'messageId', 'copy', 'agentId', 'recipient', 'url'),
  })
}

export const CREATE_LINKS = `
  insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url)
  select * from unnest($1::text[], $2::int[], $3::uuid[], $4::smallint[], $5::text[], $6::text[], $7::text[])
    as l (code, account_id, message_id, copy, agent_id, recipient, url)
  order by code collate "C"
  on conflict do nothing`

/**
 * Returns the link's target, or undefined if there is no such link. A person's first visit counts as the click; the second of two
 * concurrent visits waits for the first and sees its click. A click in an SMS to a test number is stored, but is not a recipient's action.
 * A robot only increments a counter: it loads a preview before the person acts, which says nothing about the person.
 */
export async function visitLink(db: Executor, code: string, isRobot: boolean): Promise<string | undefined> {
  const { rows } = await db.query<{ url: string }>({
    name: 'visit-short-link',
    text: `
      with previewed as (
        update short_links set previews = previews + 1 where code = $1 and $2::boolean
      ), clicked as (
        update short_links set clicked_at = now() where code = $1 and not $2::boolean and clicked_at is null
        returning account_id, agent_id, recipient, message_id, copy, url, clicked_at
      ), acted as (
        insert into recipient_actions (account_id, agent_id, recipient, message_id, kind, channel, url, occurred_at, campaign_id)
        select c.account_id, c.agent_id, c.recipient, c.message_id, 'clicked', 'sms', c.url, c.clicked_at, m.campaign_id
        from clicked c left join messages m on m.id = c.message_id where c.copy = 0
        returning *
      ), ${recordActions('acted')}
      select url from short_links where code = $1`,
    values: [code, isRobot],
  })
  return rows[0]?.url
}
