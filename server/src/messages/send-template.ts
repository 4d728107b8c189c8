import { countUsage, ROW_BYTES } from '../accounts/usage.ts'
import { renderAndCheck } from '../content/check.ts'
import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'
import { PRIORITIES } from './states.ts'
import { storeMessages } from './store.ts'
import { isToRender, readTemplateContent } from './template-variables.ts'

/** A template that a recipient asked for, by tapping or writing. */
type RequestedTemplate = {
  accountId: number
  agentId: string
  recipient: string
  templateId: number
  /** The message that the recipient replied to, if it is known. */
  triggeredBy: string | undefined
  /** Whether that message was a test message. */
  test: boolean
}

/** Limits loops, such as a phone that taps by itself, or a template whose button sends the same template. */
const MAX_PER_MINUTE = 10
// The first key of a two-key advisory lock, unique in this database: "hrlt" in ASCII.
const TEMPLATES_LOCK = 0x68726c74

type NotSent = 'suspended' | 'no-agent' | 'no-template' | 'not-approved' | 'too-many' | `the template ${string}` | 'invalid-content'
type Sent = { messageId: string } | { why: NotSent }
type Row = { messageId: string | null; why: NotSent | 'to-render' | null; contentId: number }

/**
 * Accepts the template as a message of its own, in the transaction of the reply. Its variables have their defaults, since nobody sends values.
 * Returns the message's id, or why there is none.
 */
export async function sendTemplate(db: Executor, wanted: RequestedTemplate): Promise<Sent> {
  // One transaction at a time for each number: concurrent transactions would not count each other's messages.
  await db.query('select pg_advisory_xact_lock($1, hashtext($2))', [TEMPLATES_LOCK, `${wanted.accountId} ${wanted.recipient}`])
  return await sendRendered(db, wanted)
}

/** `rendered`: the rendered content of the template, and the id of its source. */
async function sendRendered(db: Executor, wanted: RequestedTemplate, rendered?: { from: number; content: MessageContent }): Promise<Sent> {
  const { accountId, agentId, recipient, templateId, triggeredBy, test } = wanted
  const content = rendered === undefined ? null : JSON.stringify(rendered.content)
  const values = [accountId, agentId, recipient, templateId, triggeredBy ?? null, test, rendered?.from ?? null, content]
  const { rows } = await db.query<Row>({ name: 'send-template', text: SEND_TEMPLATE, values })
  const [{ messageId, why, contentId }] = rows as [Row]
  if (messageId !== null) return { messageId }
  if (why !== 'to-render') return { why: why as NotSent }
  const { message, basic } = await readTemplateContent(db, accountId, contentId)
  const made = renderAndCheck(message, basic, {})
  const [missing] = made.missing
  if (missing !== undefined) return { why: `the template ${templateId} ${missing.reason}` }
  if (made.violations.length > 0) return { why: 'invalid-content' }
  return await sendRendered(db, wanted, { from: contentId, content: made.content })
}

/** If the template was deleted, this sends the version that was current when the message with the button was accepted. */
export const SEND_TEMPLATE = `
  with checked as materialized (
    select t.content_id, c.basic,
      case
        when o.suspended_at is not null then 'suspended'
        when a.agent_id is null then 'no-agent'
        when t.status is null then 'no-template'
        when t.status <> 'APPROVED' then 'not-approved'
        when lately.count >= ${MAX_PER_MINUTE} then 'too-many'
        when ${isToRender('$7::bigint')} then 'to-render'
      end as why
    from accounts o
    left join agent_assignments a on a.account_id = $1 and a.agent_id = $2 and a.active
    left join lateral (
      select status, content_id from templates where account_id = $1 and id = $4
      union all
      (select status, content_id from template_versions
       where account_id = $1 and template_id = $4 and not exists (select from templates where account_id = $1 and id = $4)
       order by since <= (select accepted_at from messages where id = $5) desc, id desc limit 1)
    ) as t on true
    left join contents c on c.id = t.content_id
    cross join lateral (
      select count(*) as count from messages m
      where m.recipient = $3 and m.id >= uuid_v7_from(now() - interval '1 minute') and m.account_id = $1 and m.traffic = 'SERVICEREQUEST'
    ) as lately
    where o.id = $1
  ), created as materialized (
    select uuid_v7() as id, $1::int as account_id, $2 as agent_id, $3 as recipient, basic, $6::bool as test, null as client_reference_id,
      case when $7 is null then content_id end as content_id, $8::text::json as content, now() as accepted_at,
      null::timestamptz as scheduled_at, null::text as delivery_window, null::timestamptz as opens_at, null::timestamptz as own_expiry,
      'SERVICEREQUEST' as traffic, $5::uuid as triggered_by, null::uuid as campaign_id, null as routing, null::json as fallback
    from checked where why is null
  ), ${storeMessages('created', PRIORITIES.transactional)}, used as (
    ${countUsage({ account: 'account_id', from: 'written', messageBytes: `count(*) * (${ROW_BYTES} + coalesce(octet_length($8::text), 0))` })}
  )
  select created.id as "messageId", checked.why, checked.content_id as "contentId"
  from checked left join created on true`
