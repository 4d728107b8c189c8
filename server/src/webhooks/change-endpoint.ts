import { timeOf } from '../db/partitions.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import type { EventKind } from '../events/kinds.ts'
import { Refusal } from '../refusal.ts'
import { type Endpoint, EXISTS, findEndpoint, lockEndpoint, lockEndpoints } from './endpoints.ts'

/**
 * `types`: the types of events from the next routed event on; null means all. Deliveries that are already waiting are still posted, to the
 * new URL. `disable`: the reason to store with the disabled endpoint. `enable`: by whom; callers can't enable what the operator disabled.
 */
type EndpointChange = {
  url?: string | undefined
  types?: readonly EventKind[] | null | undefined
  enable?: 'OPERATOR' | 'CALLER' | undefined
  disable?: 'OPERATOR' | 'CALLER' | undefined
}

/** `missedSince`: a replay of all events since then includes every missed event. Null if the endpoint was not disabled. */
export type Enabled = Endpoint & { missedSince: Date | null }

/** Changes an endpoint: everything or nothing. Of two concurrent changes of the same field, the last one counts. */
export async function changeEndpoint(pool: Pool, endpointId: number, change: EndpointChange): Promise<Endpoint | Enabled> {
  const { url, types, enable, disable } = change
  return await transaction(pool, async (tx) => {
    // The account first, as when an endpoint is added.
    if (url !== undefined) await lockEndpoints(tx, (await findEndpoint(tx, endpointId)).accountId, url, endpointId)
    await lockEndpoint(tx, endpointId)
    if (url !== undefined) await tx.query('update webhook_endpoints set url = $2 where id = $1', [endpointId, url])
    if (types !== undefined) await tx.query('update webhook_endpoints set kinds = $2 where id = $1', [endpointId, types])
    if (enable === 'CALLER') await refuseIfOperators(tx, endpointId)
    const missed = enable ? { missedSince: await enableLocked(tx, endpointId) } : {}
    if (disable !== undefined) await disableLocked(tx, endpointId, disable)
    return { ...(await findEndpoint(tx, endpointId)), ...missed }
  })
}

async function refuseIfOperators(tx: Executor, endpointId: number): Promise<void> {
  const { disabledBecause } = await findEndpoint(tx, endpointId)
  if (disabledBecause !== 'OPERATOR') return
  throw new Refusal(`The operator has disabled endpoint ${endpointId}.`, {
    code: 'RCS_WEBHOOK_ENDPOINT_STATE',
    path: '/status',
    reason: 'The operator has disabled the endpoint, and only the operator can enable it.',
  })
}

// Clears all failures: its events are tried at once, and a new period of five days begins with the next failure.
const CLEAR_FAILURES = 'failing_since = null, last_failed_at = null, failures = 0, paused_until = null'

type Disabling = { accountId: number; disabledAt: Date | null; disabledPosition: number | null }

/**
 * Enables an endpoint: its due deliveries continue, and its failures are cleared. On an active endpoint, it only ends a pause and clears
 * the failures.
 *
 * The router moves the head of the log before it reads which endpoints are active. This statement locks the head, so it waits for a router
 * that has found the endpoint disabled, and the next statement sees the pages which that router placed. A later router finds the endpoint
 * active. A missing head is inserted here, because the first router of an account inserts it unseen by this transaction.
 */
async function enableLocked(tx: Executor, endpointId: number): Promise<Date | null> {
  const { rows } = await tx.query<Disabling>(
    `with before as materialized (
       select id, account_id, status, disabled_at, disabled_position from webhook_endpoints where id = $1
     ), head as (
       insert into log_heads as h (account_id, last_position) select account_id, 0 from before where status = 'DISABLED'
       on conflict (account_id) do update set last_position = h.last_position
     )
     update webhook_endpoints e set status = 'ACTIVE', disabled_at = null, disabled_because = null, disabled_position = null, ${CLEAR_FAILURES}
     from before where e.id = before.id
     returning e.account_id as "accountId", before.disabled_at as "disabledAt", before.disabled_position as "disabledPosition"`,
    [endpointId],
  )
  return await findMissed(tx, rows[0] as Disabling)
}

// A page's time is the start of its transaction, so pages of overlapping transactions may be in another order than their times. A
// transaction has a few statements, of at most 3.5 s each.
const LONGEST_OVERLAP_MS = 60_000

/** The time of the earliest page behind the position. If there is none, or the position is unknown, the time of disabling. */
async function findMissed(tx: Executor, { accountId, disabledAt, disabledPosition }: Disabling): Promise<Date | null> {
  if (disabledPosition === null) return disabledAt
  const { rows: next } = await tx.query<{ pageId: string }>(
    'select page_id as "pageId" from log_pages where account_id = $1 and last_position > $2 order by last_position limit 1',
    [accountId, disabledPosition],
  )
  if (next[0] === undefined) return disabledAt
  const { pageId } = next[0]
  const { rows: earlier } = await tx.query<{ pageId: string }>(
    `select page_id as "pageId" from log_pages
     where account_id = $1 and page_id >= uuid_v7_from($3) and page_id < $4 and last_position > $2 order by page_id limit 1`,
    [accountId, disabledPosition, new Date(timeOf(pageId).getTime() - LONGEST_OVERLAP_MS), pageId],
  )
  return timeOf(earlier[0]?.pageId ?? pageId)
}

/**
 * SQL for a statement that disables an endpoint `e`: the head of its account's log. The statement need not wait for the router: a router
 * that finds the endpoint disabled commits after this statement, so its pages lie behind the head that this statement sees. Pages of a
 * router that found it active may lie behind it too; a replay then posts them twice.
 */
export const DISABLED_POSITION = 'coalesce((select h.last_position from log_heads h where h.account_id = e.account_id), 0)'

/** Its due deliveries stay. An endpoint that is already disabled keeps its reason, time and position. */
async function disableLocked(tx: Executor, endpointId: number, because: 'OPERATOR' | 'CALLER'): Promise<void> {
  await tx.query(
    `update webhook_endpoints e
     set status = 'DISABLED', disabled_at = now(), disabled_because = $2, disabled_position = ${DISABLED_POSITION}
     where e.id = $1 and e.status = 'ACTIVE' and ${EXISTS}`,
    [endpointId, because],
  )
}

export async function enableEndpoint(pool: Pool, endpointId: number): Promise<Enabled> {
  return (await changeEndpoint(pool, endpointId, { enable: 'OPERATOR' })) as Enabled
}

export async function disableEndpoint(pool: Pool, endpointId: number): Promise<Endpoint> {
  return await changeEndpoint(pool, endpointId, { disable: 'OPERATOR' })
}
