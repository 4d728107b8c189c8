import { ensurePartitions } from '../../db/partitions.ts'
import { type Executor, isTimedOut, type Pool, transaction } from '../../db/pool.ts'
import { DEFAULT_LIFE_HOURS, isMissingPartition } from '../../messages/accept.ts'
import { PRIORITIES } from '../../messages/states.ts'

/** Messages made in a transaction: enough that its commit costs little, few enough that whoever pauses or cancels waits for a moment only. */
export const CHUNK = 5_000
const SMALL_CHUNK = 200

/**
 * Makes the next messages of a campaign that runs, of the one that has had the fewest so far. How far it got is written with the messages:
 * whatever dies in between, the next one goes on from there, and nobody is left out or gets two. Who pauses or cancels waits for the
 * chunk under way, and after that no further one is made. Returns how many were made, and whether there is anything left to make.
 */
export async function fanOut(pool: Pool): Promise<{ made: number; mayBeMore: boolean }> {
  return await makeChunk(pool, CHUNK).catch(async (error: unknown) => {
    if (isMissingPartition(error)) await ensurePartitions(pool)
    // A database that is very busy: a little at a time.
    else if (!isTimedOut(error)) throw error
    return await makeChunk(pool, SMALL_CHUNK)
  })
}

async function makeChunk(pool: Pool, chunk: number): Promise<{ made: number; mayBeMore: boolean }> {
  return await transaction(pool, async (tx) => {
    const campaign = await takeCampaign(tx)
    if (campaign === undefined) return { made: 0, mayBeMore: false }
    const { id, accountId, groups, madeUpTo, startedAt, isRetry } = campaign
    const query = isRetry
      ? { name: 'make-retried-messages', text: MAKE_RETRIED, values: [id, chunk] }
      : {
          name: `make-campaign-messages ${groups.length}`,
          text: makeFrom(groups),
          values: [id, chunk, accountId, groups, madeUpTo, startedAt],
        }
    const { rows } = await tx.query<{ made: number }>(query)
    return { made: rows[0]?.made ?? 0, mayBeMore: true }
  })
}

type Running = { id: string; accountId: number; groups: number[]; madeUpTo: string; startedAt: Date; isRetry: boolean }

/** Another worker's is passed by. */
async function takeCampaign(tx: Executor): Promise<Running | undefined> {
  const { rows } = await tx.query<Running>({
    name: 'take-campaign',
    text: `select id, account_id as "accountId", group_numbers as groups, made_up_to as "madeUpTo", started_at as "startedAt", retry_of is not null as "isRetry"
           from campaigns where status = 'RUNNING' and made_at is null
           order by recipients, id limit 1 for update skip locked`,
  })
  return rows[0]
}

/**
 * The next numbers of all groups together, in their order, each once. An arm for each group, so that PostgreSQL walks through their indexes
 * side by side and stops at the end of the chunk: what is read is what is used. Asked as one list of groups, it would sort all members
 * for every chunk. Who was added since the start is for the next campaign.
 */
function makeFrom(groups: number[]): string {
  const arms = groups.map(
    (_, index) => `(
          select phone from group_members
          where account_id = $3 and group_number = ($4::int[])[${index + 1}] and phone > $5 and added_at <= $6
          order by phone
        )`,
  )
  return make(`
  member as materialized (
    select phone, phone as position from (
      select distinct phone from (
        ${arms.join(' union all ')}
      ) as people
      order by phone limit $2
    ) as next
  ), ${REACHED}`)
}

const REACHED = `
  reached as materialized (
    select max(position) as position, count(*) < $2 as is_all, count(*)::int as made from member
  )`

const FAILED = `
  member as materialized (
    select m.recipient as phone, m.id::text as position
    from campaign c, lateral (
      select id, recipient from messages m
      where m.campaign_id = c.retry_of and m.status = 'FAILED'
        and m.id > (case c.made_up_to when '' then '00000000-0000-0000-0000-000000000000' else c.made_up_to end)::uuid
      order by m.id limit $2
    ) as m
  ), ${REACHED}`

const make = (members: string) => `
  with campaign as materialized (
    select *, coalesce(expires_at, started_at + interval '${DEFAULT_LIFE_HOURS} hours')::timestamptz(3) as ends_at from campaigns where id = $1
  ), ${members}, made as materialized (
    select uuid_v7() as id, m.phone from member m
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, content_id, expires_at, traffic, campaign_id)
    select m.id, c.account_id, c.agent_id, m.phone, c.basic, false, c.content_id, c.ends_at, 'PROMOTION', c.id from made m, campaign c
  ), falling_back as (
    insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, not_before,
      after_expiry, after_expiry_delay_seconds, after_expiry_not_before)
    select m.id, c.account_id, c.fallback -> 'plan', (c.fallback ->> 'segments')::smallint, (c.fallback ->> 'delaySeconds')::int,
      (c.fallback ->> 'notBefore')::timestamptz, (c.fallback ->> 'afterExpiry')::bool, (c.fallback ->> 'afterExpiryDelaySeconds')::int,
      (c.fallback ->> 'afterExpiryNotBefore')::timestamptz
    from campaign c, made m where c.fallback is not null
  ), queued as (
    insert into queue (message_id, account_id, agent_id, task, priority, campaign_id, due_at, expires_at)
    select m.id, c.account_id, c.agent_id, 'send', ${PRIORITIES.campaign}, c.id, now(), c.ends_at from made m, campaign c
  ), expiring as (
    insert into expiries (message_id, expires_at) select m.id, c.ends_at from made m, campaign c
  ), counted as (
    insert into campaign_changes (campaign_id, status, change) select $1, 'ACCEPTED', made from reached where made > 0
  ), advanced as (
    update campaigns c set
      made_up_to = coalesce(r.position, c.made_up_to),
      recipients = c.recipients + r.made,
      made_at = case when r.is_all then now() end
    from reached r where c.id = $1
  )
  select made from reached`

const MAKE_RETRIED = make(FAILED)
