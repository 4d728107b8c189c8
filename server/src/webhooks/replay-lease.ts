import type { Pool } from '../db/pool.ts'
import { Refusal } from '../refusal.ts'
import { EXISTS, findEndpoint } from './endpoints.ts'

const LEASE_SECONDS = 30
const RENEW_MS = 10_000

/**
 * Runs a replay unless another one of the same endpoint is running: two at once would post each event that is accepted between them twice.
 * If the process is killed, the lease ends by itself.
 */
export async function withReplayLease<T>(pool: Pool, endpointId: number, replay: () => Promise<T>): Promise<T> {
  const lease = `update webhook_endpoints set replaying_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds' where id = $1 and ${EXISTS}`
  const { rowCount } = await pool.query(`${lease} and replaying_until <= clock_timestamp()`, [endpointId])
  if (rowCount === 0) {
    await findEndpoint(pool, endpointId)
    throw new Refusal(`A replay of endpoint ${endpointId} is running; try again when it is done.`, {
      code: 'RCS_WEBHOOK_ENDPOINT_STATE',
      reason: 'A replay of the endpoint is running: try again when it is done.',
    })
  }
  // A renewal after the end of the lease changes nothing. If a renewal fails, the next one comes in time.
  const renew = () => void pool.query(`${lease} and replaying_until > clock_timestamp()`, [endpointId]).catch(() => {})
  const timer = setInterval(renew, RENEW_MS)
  try {
    return await replay()
  } finally {
    clearInterval(timer)
    await pool.query(`update webhook_endpoints set replaying_until = '-infinity' where id = $1`, [endpointId]).catch(() => {})
  }
}
