import { countUsage, messageBytes, ROW_BYTES } from '../../accounts/usage.ts'
import { RETRIED_MEMBERS } from '../../campaigns/retry.ts'
import { ensurePartitions } from '../../db/partitions.ts'
import { isTimedOut, isUnavailable, type Pool, transaction } from '../../db/pool.ts'
import { isMissingPartition } from '../../messages/accept.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { storeMessages } from '../../messages/store.ts'

/** Messages for each transaction: enough that the commit costs little, few enough that a request to pause or cancel waits only briefly. */
export const CHUNK = 1_000
const SMALL_CHUNK = 100

export type FanOut = {
  made: number
  mayBeMore: boolean
  /** A campaign whose chunk failed. The fault may be its own, so the other campaigns go on. */
  failed?: { campaignId: string; error: unknown }
}

/**
 * Makes the next messages of the running campaign that has had the fewest so far. The fan-out cursor moves in the same transaction: after a
 * crash the next chunk continues there, and every recipient gets exactly one message. A request to pause or cancel waits for the current
 * chunk, and no further chunk is made after it. `passedBy`: campaigns to skip this time.
 */
export async function fanOut(pool: Pool, passedBy: readonly string[] = []): Promise<FanOut> {
  // Most polls find no campaign, so check before starting a transaction.
  const { rowCount } = await pool.query({ name: 'find-campaign', text: FIND_CAMPAIGN, values: [passedBy] })
  if (rowCount === 0) return { made: 0, mayBeMore: false }
  const first = await makeChunk(pool, CHUNK, passedBy)
  if (first.failed === undefined) return first
  const { error } = first.failed
  if (isMissingPartition(error)) await ensurePartitions(pool)
  // The database is very busy: make fewer messages at a time.
  else if (!isTimedOut(error)) return first
  return await makeChunk(pool, SMALL_CHUNK, passedBy)
}

async function makeChunk(pool: Pool, chunk: number, passedBy: readonly string[]): Promise<FanOut> {
  let campaignId: string | undefined
  try {
    return await transaction(pool, async (tx) => {
      const { rows: running } = await tx.query<Running>({ name: 'take-campaign', text: TAKE_CAMPAIGN, values: [passedBy] })
      const campaign = running[0]
      if (campaign === undefined) return { made: 0, mayBeMore: false }
      campaignId = campaign.id
      await tx.query(IN_ORDER)
      const { rows } = await tx.query<{ made: number }>(chunkOf(campaign, chunk))
      return { made: rows[0]?.made ?? 0, mayBeMore: true }
    })
  } catch (error) {
    if (campaignId === undefined || (isUnavailable(error) && !isTimedOut(error))) throw error
    return { made: 0, mayBeMore: true, failed: { campaignId, error } }
  }
}

// The index has the members in order, so reading, sorting or hashing all of them for the next thousand is never quicker. PostgreSQL chose
// that after it had analyzed three groups of a million, and each chunk took 8 s instead of 20 ms.
const IN_ORDER = `set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
  set local max_parallel_workers_per_gather = 0`

type Running = { id: string; accountId: number; groups: number[]; generations: number[]; madeUpTo: string; isRetry: boolean }

const NEEDS_FAN_OUT = `status = 'RUNNING' and made_at is null and id <> all ($1::uuid[])`
const FIND_CAMPAIGN = `select from campaigns where ${NEEDS_FAN_OUT} limit 1`

/** Skips a campaign that another worker has locked. */
const TAKE_CAMPAIGN = `
  select id, account_id as "accountId", group_numbers as groups, group_generations as generations, made_up_to as "madeUpTo",
    retry_of is not null as "isRetry"
  from campaigns where ${NEEDS_FAN_OUT}
  order by recipients, id limit 1 for update skip locked`

function chunkOf({ id, accountId, groups, generations, madeUpTo, isRetry }: Running, chunk: number) {
  if (isRetry) return { name: 'make-retried-messages', text: MAKE_RETRIED, values: [id, chunk] }
  const values = [id, chunk, accountId, groups, generations, madeUpTo]
  return { name: `make-campaign-messages ${groups.length}`, text: makeFrom(groups), values }
}

/**
 * The next numbers of all groups, in order, each once. The statement has one arm for each group, so that PostgreSQL walks the indexes side
 * by side and stops at the end of the chunk. It reads only what the chunk uses. Members of an import after the start of the campaign
 * are left to the next campaign.
 */
function makeFrom(groups: number[]): string {
  const arms = groups.map(
    (_, index) => `(
        select phone from group_members
        where account_id = $3 and group_number = ($4::int[])[${index + 1}] and phone > $6 and generation <= ($5::int[])[${index + 1}]
        order by phone
      )`,
  )
  return make(`
  member as materialized (
    select distinct phone from (
      ${arms.join(' union all ')}
    ) as people
    order by phone limit $2
  ), reached as materialized (
    select max(phone) as position, count(*) < $2 as is_all, count(*)::int as made from member
  )`)
}

/** The bytes that were reserved for the messages of this chunk; with the last chunk, all that is left of them. */
const released = (campaign: string) =>
  `case when is_all then ${campaign}.reserved_bytes else least(${campaign}.reserved_bytes, made * ${ROW_BYTES}) end`

const make = (members: string) => `
  with campaign as materialized (
    select * from campaigns where id = $1
  ), ${members}, made as materialized (
    -- Not before its campaign has started: that may be committed after this transaction began.
    select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id, c.content_id,
      null::json as content, greatest(now(), c.started_at) as accepted_at, c.expires_at as own_expiry, 'PROMOTION' as traffic,
      null::uuid as triggered_by, c.id as campaign_id, c.fallback
    from member m, campaign c
  ), ${storeMessages('made', PRIORITIES.campaign)}, used as (${countUsage({
    account: 'account_id',
    from: 'campaign, reached where made > 0 or reserved_bytes > 0',
    contentBytes: `-sum(${released('campaign')})`,
    messageBytes: `sum(made * (${messageBytes('null', 'null', `(fallback -> 'plan')::text`)}))`,
  })}
  ), advanced as (
    update campaigns c set
      made_up_to = coalesce(r.position, c.made_up_to),
      recipients = c.recipients + r.made,
      made_at = case when r.is_all then now() end,
      reserved_bytes = c.reserved_bytes - ${released('c')}
    from reached r where c.id = $1
  )
  select made from reached`

const MAKE_RETRIED = make(RETRIED_MEMBERS)
