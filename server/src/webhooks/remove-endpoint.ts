import { setTimeout as sleep } from 'node:timers/promises'
import type { RecordChange } from '../audit/record.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { ENDPOINT, type Endpoint, EXISTS, noSuchEndpoint } from './endpoints.ts'

const CHUNK_ROWS = 5_000
const RETRY_MS = 20

type Removal = {
  chunkRows?: number
  /** Stop deleting rows after this time, and leave the rest to retention. */
  withinMs?: number
  /** Called in the transaction from which on the endpoint does not exist. */
  record?: RecordChange | undefined
}
type Removed = Pick<Endpoint, 'endpointId' | 'accountId'>

/**
 * Removes an endpoint. From the first commit on it does not exist for anyone, and gets no events. Then its deliveries, attempts and secrets
 * are deleted; `purgeRemoved` deletes what a killed or long removal leaves. The account's events stay in the log.
 */
export async function removeEndpoint(
  pool: Pool,
  endpointId: number,
  { record = async () => {}, ...removal }: Removal = {},
): Promise<Endpoint> {
  const endpoint = await transaction(pool, async (tx) => {
    const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 and ${EXISTS} for update`, [
      endpointId,
    ])
    const found = rows[0] ?? noSuchEndpoint(endpointId)
    const { rows: removed } = await tx.query<Endpoint>(REMOVE, [endpointId])
    await record(tx, null, found)
    return removed[0] as Endpoint
  })
  await purge(pool, endpoint, removal)
  return endpoint
}

const REMOVE = `
  update webhook_endpoints set removed_at = now(), status = 'DISABLED', disabled_at = coalesce(disabled_at, now()),
    disabled_because = coalesce(disabled_because, 'OPERATOR')
  where id = $1 returning ${ENDPOINT}`

/** Deletes what is left of removed endpoints. */
export async function purgeRemoved(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Removed>(
    `select id as "endpointId", account_id as "accountId" from webhook_endpoints where not (${EXISTS})`,
  )
  for (const removed of rows) await purge(pool, removed, {})
}

async function purge(
  pool: Pool,
  removed: Removed,
  { chunkRows = CHUNK_ROWS, withinMs = Number.POSITIVE_INFINITY }: Omit<Removal, 'record'>,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    // In chunks, each in its own transaction: a statement that needs the same rows waits for at most one chunk.
    const deleted = await transaction(pool, (tx) => removeRows(tx, removed, chunkRows))
    if (deleted >= chunkRows) continue
    if (await transaction(pool, (tx) => removeIfEmpty(tx, removed, chunkRows))) return
    await sleep(RETRY_MS)
  }
}

/**
 * Removes up to `chunkRows` deliveries and as many attempts. Returns the larger of the two counts. Skips locked rows: waiting for rows
 * while holding others could deadlock.
 */
async function removeRows(tx: Executor, { endpointId, accountId }: Removed, chunkRows: number): Promise<number> {
  const remove = async (table: string, order: string) => {
    const { rowCount } = await tx.query(
      `delete from ${table} where ctid = any (array(
         select ctid from ${table} where endpoint_id = $1 and account_id = $2 order by ${order} limit $3 for update skip locked))`,
      [endpointId, accountId, chunkRows],
    )
    return rowCount ?? 0
  }
  return Math.max(await remove('webhook_deliveries', 'position'), await remove('webhook_attempts', 'attempted_at'))
}

/**
 * Once the endpoint is locked, neither the router nor a replay writes for it. Returns false if a delivery was being written just then: try
 * again.
 */
async function removeIfEmpty(tx: Executor, removed: Removed, chunkRows: number): Promise<boolean> {
  const { endpointId } = removed
  await tx.query('select from webhook_endpoints where id = $1 for update', [endpointId])
  await removeRows(tx, removed, chunkRows)
  const { rowCount } = await tx.query('select from webhook_deliveries where endpoint_id = $1 limit 1', [endpointId])
  if ((rowCount ?? 0) > 0) return false
  await tx.query('delete from webhook_endpoints where id = $1', [endpointId])
  return true
}
