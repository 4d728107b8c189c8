import { isLive } from '../../accounts/accounts.ts'
import { countUsage, messageBytes, ROW_BYTES } from '../../accounts/usage.ts'
import { RETRIED_MEMBERS } from '../../campaigns/retry.ts'
import { ensurePartitions } from '../../db/partitions.ts'
import { type Executor, isTimedOut, isUnavailable, type Pool, transaction } from '../../db/pool.ts'
import { ANY_ERASED, type ErasedPeople, NOBODY } from '../../erasure/erased.ts'
import { isMissingPartition } from '../../messages/accept.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { storeMessages } from '../../messages/store.ts'
import { opensAt } from '../../windows/gate.ts'
import { type Member, type MessageWindow, NOW_MS, TIME_ZONES, windowFor } from '../../windows/recipients.ts'

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
  nowMs: number
  accountId: number
  groups: number[]
  generations: number[]
  cursor: string
  isRetry: boolean
  hasErased: boolean
  /** As stored; null: none. */
  window: string | null
}

const NEEDS_FAN_OUT = `status = 'RUNNING' and fan_out_completed_at is null and id <> all ($1::uuid[]) and ${isLive('account_id')}`
export const FIND_CAMPAIGN = `select from campaigns where ${NEEDS_FAN_OUT} limit 1`

/** Locks the next campaign, and skips a campaign that another worker has locked. */
export const LOCK_CAMPAIGN = `
  select id, account_id as "accountId", group_numbers as groups, group_generations as generations, fan_out_cursor as "cursor",
    retry_of is not null as "isRetry", ${ANY_ERASED} as "hasErased", delivery_window as window, ${NOW_MS} as "nowMs"
  from campaigns where ${NEEDS_FAN_OUT}
  order by recipients, id limit 1 for update skip locked`

async function chunkOf(tx: Executor, erased: ErasedPeople, campaign: Running, chunk: number) {
  const { id, accountId, groups, generations, cursor, isRetry, hasErased, window } = campaign
  // Erased numbers are left out of a retry anyway.
  if (window !== null || (hasErased && !isRetry)) return await listedChunk(tx, erased, campaign, chunk)
  if (isRetry) return { name: 'create-retried-messages', text: CREATE_RETRIED, values: [id, chunk] }
  const values = [id, chunk, accountId, groups, generations, cursor]
  return { name: `create-campaign-messages ${groups.length}`, text: createFromGroups(groups), values }
}

/** Reads the members first, to leave out erased people, and to compute when the window of each member opens. */
async function listedChunk(tx: Executor, erased: ErasedPeople, campaign: Running, chunk: number) {
  const { id, accountId, isRetry, hasErased, window, nowMs } = campaign
  const { members, position, isLast } = await (isRetry ? readRetried(tx, id, chunk) : readNextMembers(tx, campaign, chunk))
  const phones = members.map(({ phone }) => phone)
  const isErased = hasErased && !isRetry ? await erased.find(tx, phones) : NOBODY
  const kept = members.filter(({ phone }) => !isErased(accountId, phone))
  const windows = kept.map((member) => (window === null ? undefined : windowOfMember(window, member, nowMs)))
  return {
    name: 'create-listed-messages',
    text: CREATE_LISTED,
    values: [
      id,
      kept.map(({ phone }) => phone),
      // An erased number becomes the fan-out cursor, which the campaign keeps, only if the chunk has no other number.
      isRetry ? position : (kept.at(-1)?.phone ?? position),
      isLast,
      windows.map((one) => one?.text ?? null),
      windows.map((one) => one?.opensAt ?? null),
    ],
  }
}

/** A retried message has the window of the message before. */
function windowOfMember(window: string, { ownWindow, ...member }: Listed, nowMs: number): MessageWindow {
  return ownWindow == null ? windowFor(window, member, nowMs) : { text: ownWindow, opensAt: new Date(opensAt(ownWindow, nowMs)) }
}

type Listed = Member & { ownWindow?: string | null }
type Chunk = { members: Listed[]; position: string | undefined; isLast: boolean }

async function readNextMembers(
  tx: Executor,
  { id, accountId, groups, generations, cursor, window }: Running,
  chunk: number,
): Promise<Chunk> {
  const text = window === null ? readMembers(groups) : readZonedMembers(groups)
  const name = `read-${window === null ? '' : 'zoned-'}members ${groups.length}`
  const { rows } = await tx.query<Member>({ name, text, values: [id, chunk, accountId, groups, generations, cursor] })
  return { members: rows, position: rows.at(-1)?.phone, isLast: rows.length < chunk }
}

async function readRetried(tx: Executor, id: string, chunk: number): Promise<Chunk> {
  const { rows } = await tx.query<{ phones: string[]; windows: (string | null)[]; position: string; isLast: boolean }>({
    name: 'read-retried-members',
    text: READ_RETRIED,
    values: [id, chunk],
  })
  const [{ phones, windows, position, isLast }] = rows as [(typeof rows)[number]]
  const members = phones.map((phone, index) => ({ phone, timeZones: null, ownWindow: windows[index] ?? null }))
  return { members, position, isLast }
}

/**
 * Reads the next numbers of all groups, in order, each once. The statement has two arms for each group, so PostgreSQL merges the index scans,
 * stops at the end of the chunk, and reads only what the chunk uses. Members that were added after the start of the campaign are left out, and
 * members that were removed after it are included.
 */
function nextMembers(groups: number[], isZoned = false): string {
  const zone = isZoned ? ', time_zone' : ''
  const arms = groups.flatMap((_, index) => {
    const [group, generation] = [`($4::int[])[${index + 1}]`, `($5::int[])[${index + 1}]`]
    const before = `account_id = $3 and group_number = ${group} and phone > $6 and generation <= ${generation}`
    return [
      `(select phone${zone} from group_members where ${before} order by phone)`,
      `(select phone${zone && ', null'} from removed_members where ${before} and removed_generation > ${generation} order by phone)`,
    ]
  })
  return `select ${isZoned ? `phone, ${TIME_ZONES} as "timeZones"` : 'distinct phone'} from (
      ${arms.join('\n      union all ')}
    ) as people
    ${isZoned ? 'group by phone ' : ''}order by phone limit $2`
}

// The unused step gives the statements the same parameters as createFromGroups.
const readMembers = (groups: number[]) => `with campaign as (select $1::uuid) ${nextMembers(groups)}`
export const readZonedMembers = (groups: number[]) => `with campaign as (select $1::uuid) ${nextMembers(groups, true)}`

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

const NO_WINDOW = 'null::text as delivery_window, null::timestamptz as opens_at'

const createMessages = (members: string, window = NO_WINDOW) => `
  with campaign as materialized (
    select * from campaigns where id = $1
  ), ${members}, created as materialized (
    -- A message is not accepted before its campaign started: the start may have been committed after this transaction began.
    select uuid_v7() as id, c.account_id, c.agent_id, m.phone as recipient, c.basic, false as test, null as client_reference_id, c.content_id,
      null::json as content, greatest(now(), c.started_at) as accepted_at, null::timestamptz as scheduled_at, ${window},
      c.expires_at as own_expiry, 'PROMOTION' as traffic, null::uuid as triggered_by, c.id as campaign_id, c.fallback
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

export const READ_RETRIED = `
  with campaign as materialized (
    select * from campaigns where id = $1
  ), ${RETRIED_MEMBERS}
  select position, is_last as "isLast", array(select phone from member) as phones, array(select delivery_window from member) as windows
  from progress`

/** `$2` lists the members, `$5` and `$6` their windows. */
export const CREATE_LISTED = createMessages(
  `
  member as materialized (
    select * from unnest($2::text[], $5::text[], $6::timestamptz[]) as listed (phone, delivery_window, opens_at)
  ), progress as materialized (
    select $3::text as position, $4::boolean as is_last, cardinality($2::text[]) as created
  )`,
  'm.delivery_window, m.opens_at',
)
