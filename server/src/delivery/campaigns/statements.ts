import { isLive } from '../../accounts/accounts.ts'
import { countUsage, messageBytes } from '../../accounts/usage.ts'
import { selectAttributes } from '../../campaigns/member-content.ts'
import { RETRIED_MEMBERS } from '../../campaigns/retry.ts'
import { ANY_ERASED } from '../../erasure/erased.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { storeMessages } from '../../messages/store.ts'
import { NOW_MS, TIME_ZONES } from '../../windows/recipients.ts'

// The statements that create the next messages of a campaign.

// The index has the members in order, so reading all members to sort or hash them is never faster. PostgreSQL chose to do so after it had
// analyzed three groups of a million, and each chunk of a thousand took 8 s instead of 20 ms.
export const IN_ORDER = `set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
  set local max_parallel_workers_per_gather = 0`

export type Running = {
  id: string
  accountId: number
  groups: number[]
  generations: number[]
  cursor: string
  isRetry: boolean
  hasErased: boolean
  /** Its content or its SMS has variables. */
  isPersonal: boolean
  /** The delivery window as it is stored; null without. */
  window: string | null
  nowMs: number
}

const NEEDS_FAN_OUT = `status = 'RUNNING' and fan_out_completed_at is null and id <> all ($1::uuid[]) and ${isLive('account_id')}`
export const FIND_CAMPAIGN = `select from campaigns where ${NEEDS_FAN_OUT} limit 1`

/** Locks the next campaign, and skips a campaign that another worker has locked. */
export const LOCK_CAMPAIGN = `
  select id, account_id as "accountId", group_numbers as groups, group_generations as generations, fan_out_cursor as "cursor",
    retry_of is not null as "isRetry", ${ANY_ERASED} as "hasErased", variables is not null as "isPersonal",
    delivery_window as window, ${NOW_MS} as "nowMs"
  from campaigns where ${NEEDS_FAN_OUT}
  order by recipients, id limit 1 for update skip locked`

/**
 * Reads the next numbers of all groups, in order, each once. The statement has two arms for each group, so PostgreSQL merges the index scans,
 * stops at the end of the chunk, and reads only what the chunk uses. Members that were added after the start of the campaign are left out, and
 * members that were removed after it are included.
 */
const nextMembers = (groups: number[]) => `select distinct phone from (
      ${armsOf(groups, () => 'phone').join('\n      union all ')}
    ) as people
    order by phone limit $2`

/**
 * The same with these attributes, and with the time zones if a delivery window is to be found. A member of several groups has the attributes of
 * the first group in the campaign's list, and the time zones of all.
 */
export function readMembers(groups: number[], names: string[], isZoned: boolean): string {
  const attributes = names.length > 0 ? ', attributes' : ''
  const zone = isZoned ? ', time_zone' : ''
  const arms = armsOf(groups, (index) => `phone${attributes}${zone}, ${index} as place`).join('\n      union all ')
  // To aggregate takes PostgreSQL some 5 µs more for each member.
  const next = isZoned
    ? `select phone${attributes && `, (array_agg(attributes order by place))[1] as attributes`}, ${TIME_ZONES} as "timeZones" from (
      ${arms}
    ) as people
    group by phone order by phone limit $2`
    : `select distinct on (phone) phone${attributes}, null as "timeZones" from (
      ${arms}
    ) as people
    order by phone, place limit $2`
  return `
  -- Gives the statement the same parameters as createFromGroups.
  with campaign as (select $1::uuid), next as (
    ${next}
  )
  select phone, "timeZones", ${selectAttributes(names, '$7')} from next`
}

function armsOf(groups: number[], columnsOf: (index: number) => string): string[] {
  return groups.flatMap((_, index) => {
    const [group, generation] = [`($4::int[])[${index + 1}]`, `($5::int[])[${index + 1}]`]
    const before = `account_id = $3 and group_number = ${group} and phone > $6 and generation <= ${generation}`
    const arm = (table: string, which = '') => `(select ${columnsOf(index)} from ${table} where ${before}${which} order by phone)`
    return [arm('group_members'), arm('removed_members', ` and removed_generation > ${generation}`)]
  })
}

export const createFromGroups = (groups: number[]) =>
  createMessages(`
  member as materialized (
    ${nextMembers(groups)}
  ), progress as materialized (
    select max(phone) as position, count(*) < $2 as is_last, count(*)::int as created from member
  )`)

/** In SQL: the reserved bytes to release for this chunk; for the last chunk, all that are left. */
const released = (campaign: string, bytes: string) =>
  `case when is_last then ${campaign}.reserved_bytes else least(${campaign}.reserved_bytes, ${bytes}) end`

type Own = { contentId: string; content: string; fallback: string; isUnfit: string; window: string; bytes: string; result: string }

const PLAN = `(fallback -> 'plan')::text`
const SHARED: Own = {
  contentId: 'c.content_id',
  content: 'null::json',
  fallback: 'c.fallback',
  isUnfit: 'false',
  window: 'null::text as delivery_window, null::timestamptz as opens_at',
  bytes: `created * (${messageBytes('null', 'null', PLAN)})`,
  result: 'created',
}

/** `own`: what a member's message has, in SQL. By default all messages have the content and the SMS of the campaign. */
const createMessages = (members: string, own = SHARED) => `
  with campaign as materialized (
    select * from campaigns where id = $1
  ), ${members}, created as materialized (
    -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
    select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id,
      ${own.contentId} as content_id, ${own.content} as content, greatest(now(), c.started_at) as accepted_at,
      null::timestamptz as scheduled_at, ${own.window}, c.expires_at as own_expiry, 'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.routing, ${own.fallback} as fallback,
      ${own.isUnfit} as is_unfit
    from member m, campaign c
  ), ${storeMessages('created', PRIORITIES.campaign)}, used as (${countUsage({
    account: 'account_id',
    from: 'campaign, progress where created > 0 or reserved_bytes > 0',
    contentBytes: `-sum(${released('campaign', own.bytes)})`,
    messageBytes: `sum(${own.bytes})`,
  })}
  ), advanced as (
    update campaigns c set
      fan_out_cursor = coalesce(r.position, c.fan_out_cursor),
      recipients = c.recipients + r.created,
      fan_out_completed_at = case when r.is_last then now() end,
      reserved_bytes = c.reserved_bytes - ${released('c', own.bytes)}
    from progress r where c.id = $1
  )
  select ${own.result} from progress`

export const CREATE_RETRIED = createMessages(RETRIED_MEMBERS)

/**
 * Creates the messages of listed members. The lists are parallel. Without a content of its own, a message has the content of the campaign, which
 * also shows what an unfit member would have got; unfit members have no SMS.
 */
export const CREATE_LISTED = createMessages(
  `
  member as materialized (
    select * from unnest($2::text[], $5::json[], $6::json[], $7::bool[], $8::text[], $9::timestamptz[])
      as m (phone, content, fallback, is_unfit, delivery_window, opens_at)
  ), progress as materialized (
    select $3::text as position, $4::boolean as is_last, cardinality($2::text[]) as created
  )`,
  {
    contentId: 'case when m.content is null then c.content_id end',
    content: 'm.content',
    fallback: 'case when c.variables is null then c.fallback else m.fallback end',
    isUnfit: 'm.is_unfit',
    window: 'm.delivery_window, m.opens_at',
    bytes: `(select coalesce(sum(${messageBytes('content::text', 'null', PLAN)}), 0) from created)`,
    result: `created, (select json_object_agg(recipient, id) from created where is_unfit) as unfit`,
  },
)

/**
 * Reads the recipients of a retry, with the attributes that they have now in the groups of the first campaign. If the earlier message had a
 * content, the retry repeats it; if its recipient was unfit, the retry renders the content.
 */
export const readRetriedMembers = (names: string[]) => `
  with recursive campaign as materialized (
    select * from campaigns where id = $1
  ), chain as (
    select retry_of, group_numbers from campaign
    union all
    select c.retry_of, c.group_numbers from chain join campaigns c on c.id = chain.retry_of
  ), ${RETRIED_MEMBERS}
  select p.position, p.is_last as "isLast", r.* from progress p left join (
    select m.id, m.phone, m.reason in ('MISSING_VARIABLE', 'INVALID_CONTENT') as "wasUnfit", m.delivery_window as window,
      s.content::text as content, f.plan, f.segments, now.values
    from member m, lateral (
      select account_id, content from messages where id = m.id limit 1
    ) as s left join lateral (
      select plan, segments from sms_fallbacks where message_id = m.id limit 1
    ) as f on true left join lateral (
      select ${selectAttributes(names, '$3')}
      from chain, unnest(chain.group_numbers) with ordinality as one (number, place), group_members g
      where g.account_id = s.account_id and g.group_number = one.number and g.phone = m.phone
      order by place limit 1
    ) as now on true
    order by m.id
  ) as r on true`

export const READ_PERSONAL = `
  select p.basic, c.message as content, p.fallback, p.variables, octet_length(c.message::text) + coalesce(octet_length(p.fallback::text), 0) as bytes
  from campaigns p join contents c on c.id = p.content_id where p.id = $1`
