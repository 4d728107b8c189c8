import { isLive } from '../../accounts/accounts.ts'
import { countUsage, messageBytes, ROW_BYTES } from '../../accounts/usage.ts'
import { RETRIED_MEMBERS } from '../../campaigns/retry.ts'
import { ensurePartitions } from '../../db/partitions.ts'
import { type Executor, isTimedOut, isUnavailable, type Pool, transaction } from '../../db/pool.ts'
import { ANY_ERASED, type ErasedPeople, type IsErased } from '../../erasure/erased.ts'
import { isMissingPartition } from '../../messages/accept.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { storeMessages } from '../../messages/store.ts'

/** Messages per transaction: enough that the commit costs little, and few enough that a request to pause or cancel waits only briefly. */
export const CHUNK = 1_000
const SMALL_CHUNK = 100

type FanOut = {
  created: number
  mayBeMore: boolean
  /** A campaign whose chunk failed. The fault may concern this campaign only, so the loop continues with the others. */
  failed?: { campaignId: string; error: unknown }
}

/**
 * Creates the next messages of the running campaign that has had the fewest so far. The fan-out cursor moves in the same transaction: after a
 * crash the next chunk continues there, and every recipient gets exactly one message. A request to pause or cancel waits for the current
 * chunk, and no chunk follows it. `skipped`: campaigns to skip this time.
 */
export async function fanOut(pool: Pool, erased: ErasedPeople, skipped: readonly string[] = []): Promise<FanOut> {
  // Most polls find no campaign, so one statement checks for one before the transaction begins.
  const { rowCount } = await pool.query({ name: 'find-campaign', text: FIND_CAMPAIGN, values: [skipped] })
  if (rowCount === 0) return { created: 0, mayBeMore: false }
  const first = await createChunk(pool, erased, CHUNK, skipped)
  if (first.failed === undefined) return first
  const { error } = first.failed
  if (isMissingPartition(error)) await ensurePartitions(pool)
  // After a timeout the database is very busy: the smaller chunk takes less time.
  else if (!isTimedOut(error)) return first
  return await createChunk(pool, erased, SMALL_CHUNK, skipped)
}

async function createChunk(pool: Pool, erased: ErasedPeople, chunk: number, skipped: readonly string[]): Promise<FanOut> {
  let campaignId: string | undefined
  try {
    return await transaction(pool, async (tx) => {
      const { rows: running } = await tx.query<Running>({ name: 'lock-campaign', text: LOCK_CAMPAIGN, values: [skipped] })
      const campaign = running[0]
      if (campaign === undefined) return { created: 0, mayBeMore: false }
      campaignId = campaign.id
      await tx.query(IN_ORDER)
      const { rows } = await tx.query<{ created: number }>(await chunkOf(tx, erased, campaign, chunk))
      return { created: rows[0]?.created ?? 0, mayBeMore: true }
    })
  } catch (error) {
    if (campaignId === undefined || (isUnavailable(error) && !isTimedOut(error))) throw error
    return { created: 0, mayBeMore: true, failed: { campaignId, error } }
  }
}

// The index has the members in order, so reading all members to sort or hash them is never faster. PostgreSQL chose to do so after it had
// analyzed three groups of a million, and each chunk of a thousand took 8 s instead of 20 ms.
export const IN_ORDER = `set local enable_sort = off; set local enable_hashagg = off; set local enable_bitmapscan = off;
  set local max_parallel_workers_per_gather = 0`

type Running = {
  id: string
  accountId: number
  groups: number[]
  generations: number[]
  cursor: string
  isRetry: boolean
  hasErased: boolean
}

const NEEDS_FAN_OUT = `status = 'RUNNING' and fan_out_completed_at is null and id <> all ($1::uuid[]) and ${isLive('account_id')}`
export const FIND_CAMPAIGN = `select from campaigns where ${NEEDS_FAN_OUT} limit 1`

/** Locks the next campaign, and skips a campaign that another worker has locked. */
export const LOCK_CAMPAIGN = `
  select id, account_id as "accountId", group_numbers as groups, group_generations as generations, fan_out_cursor as "cursor",
    retry_of is not null as "isRetry", ${ANY_ERASED} as "hasErased"
  from campaigns where ${NEEDS_FAN_OUT}
  order by recipients, id limit 1 for update skip locked`

async function chunkOf(tx: Executor, erased: ErasedPeople, campaign: Running, chunk: number) {
  const { id, accountId, groups, generations, cursor, isRetry, hasErased } = campaign
  if (isRetry) return { name: 'create-retried-messages', text: CREATE_RETRIED, values: [id, chunk] }
  const values = [id, chunk, accountId, groups, generations, cursor]
  if (hasErased) {
    const members = { name: `read-members ${groups.length}`, text: readMembers(groups), values }
    const phones = (await tx.query<{ phone: string }>(members)).rows.map(({ phone }) => phone)
    return chunkWithoutErased(campaign, phones, await erased.find(tx, phones), chunk)
  }
  return { name: `create-campaign-messages ${groups.length}`, text: createFromGroups(groups), values }
}

/** Leaves out erased people. An erased number becomes the fan-out cursor, which the campaign keeps, only if the chunk has no other number. */
function chunkWithoutErased({ id, accountId }: Running, phones: string[], isErased: IsErased, chunk: number) {
  const kept = phones.filter((phone) => !isErased(accountId, phone))
  const values = [id, kept, kept.at(-1) ?? phones.at(-1), phones.length < chunk]
  return { name: 'create-listed-messages', text: CREATE_LISTED, values }
}

/**
 * Reads the next numbers of all groups, in order, each once. The statement has two arms for each group, so PostgreSQL merges the index scans,
 * stops at the end of the chunk, and reads only what the chunk uses. Members that were added after the start of the campaign are left out, and
 * members that were removed after it are included.
 */
function nextMembers(groups: number[]): string {
  const arms = groups.flatMap((_, index) => {
    const [group, generation] = [`($4::int[])[${index + 1}]`, `($5::int[])[${index + 1}]`]
    const before = `account_id = $3 and group_number = ${group} and phone > $6 and generation <= ${generation}`
    return [
      `(select phone from group_members where ${before} order by phone)`,
      `(select phone from removed_members where ${before} and removed_generation > ${generation} order by phone)`,
    ]
  })
  return `select distinct phone from (
      ${arms.join('\n      union all ')}
    ) as people
    order by phone limit $2`
}

// The unused step gives the statement the same parameters as createFromGroups.
const readMembers = (groups: number[]) => `with campaign as (select $1::uuid) ${nextMembers(groups)}`

export const createFromGroups = (groups: number[]) =>
  createMessages(`
  member as materialized (
    ${nextMembers(groups)}
  ), progress as materialized (
    select max(phone) as position, count(*) < $2 as is_last, count(*)::int as created from member
  )`)

/** In SQL: the reserved bytes to release for this chunk; for the last chunk, all that are left. */
const released = (campaign: string) =>
  `case when is_last then ${campaign}.reserved_bytes else least(${campaign}.reserved_bytes, created * ${ROW_BYTES}) end`

const createMessages = (members: string) => `
  with campaign as materialized (
    select * from campaigns where id = $1
  ), ${members}, created as materialized (
    -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
    select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id, c.content_id,
      null::json as content, greatest(now(), c.started_at) as accepted_at, null::timestamptz as scheduled_at, c.expires_at as own_expiry,
      'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.fallback
    from member m, campaign c
  ), ${storeMessages('created', PRIORITIES.campaign)}, used as (${countUsage({
    account: 'account_id',
    from: 'campaign, progress where created > 0 or reserved_bytes > 0',
    contentBytes: `-sum(${released('campaign')})`,
    messageBytes: `sum(created * (${messageBytes('null', 'null', `(fallback -> 'plan')::text`)}))`,
  })}
  ), advanced as (
    update campaigns c set
      fan_out_cursor = coalesce(r.position, c.fan_out_cursor),
      recipients = c.recipients + r.created,
      fan_out_completed_at = case when r.is_last then now() end,
      reserved_bytes = c.reserved_bytes - ${released('c')}
    from progress r where c.id = $1
  )
  select created from progress`

export const CREATE_RETRIED = createMessages(RETRIED_MEMBERS)

/** `$2` lists the members. */
const CREATE_LISTED = createMessages(`
  member as materialized (
    select unnest($2::text[]) as phone
  ), progress as materialized (
    select $3::text as position, $4::boolean as is_last, cardinality($2::text[]) as created
  )`)
