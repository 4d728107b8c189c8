import pg from 'pg'
import { until } from '../../test/support/until.ts'
import { say, seconds } from '../progress.ts'

// What is still to be done. When nothing is, everything is where it ends: then the verdict can be given.

/** A connection that takes the time it needs: the service's own give up after 3.5 s. */
export function openForJudging(databaseUrl: string): pg.Pool {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({ connectionString: databaseUrl, types, max: 2 })
  pool.on('error', () => {})
  return pool
}

const LEFT = `
  select
    (select count(*) from queue) as queue,
    (select count(*) from sms_queue) as "SMS queue",
    (select count(*) from expiries) as expiries,
    (select count(*) from log_pages where last_position is null) as "pages without a place",
    (select count(*) from webhook_deliveries) as "events to post",
    (select count(*) from carrier_events where process_after is not null) as "replies to process",
    (select count(*) from report_deltas) as "counts to fold",
    (select count(*) from campaigns where status in ('SCHEDULED', 'RUNNING', 'PAUSED') or status = 'CANCELLED' and withdrawn_at is null) as campaigns,
    -- 01 and 09 are phones that never tell that it was read.
    (select count(*) from messages where status in ('ACCEPTED', 'SENT') or status = 'DELIVERED' and right(recipient, 2) not in ('01', '09')) as messages,
    (select count(*) from sms_fallbacks f join messages m on m.id = f.message_id
      where f.status in ('SCHEDULED', 'SENT') or f.status = 'WAITING' and m.delivered_at is null) as "SMS fallbacks"`

export type Left = Record<string, number>

/** `ask`: of the network, which may still owe something. */
export async function readLeft(pool: Pick<pg.ClientBase, 'query'>, ask: (path: string) => Promise<any>): Promise<Left> {
  const { rows } = await pool.query<Left>(LEFT)
  const { owed } = await ask('counts')
  return { ...rows[0], 'owed by the network': owed.steps + owed.webhooks + owed.deliverSm }
}

const SAY_EVERY_MS = 10_000
const LOOK_EVERY_MS = 250

/** Says what is left, and returns how long it took; or gives up, so that the verdict can say what never came to its end. */
export async function untilNothingIsLeft(pool: pg.Pool, ask: (path: string) => Promise<any>, timeoutMs: number): Promise<number> {
  const begunAt = performance.now()
  let saidAt = begunAt
  let lookedAt = 0
  say(`everything is left alone until all is settled, for ${seconds(timeoutMs)} at the most`)
  await until(
    'nothing is left',
    async () => {
      const now = performance.now()
      if (now - lookedAt < LOOK_EVERY_MS) return false
      lookedAt = now
      const left = Object.entries(await readLeft(pool, ask)).filter(([, count]) => count > 0)
      if (now - saidAt > SAY_EVERY_MS) {
        say(`left: ${left.map(([what, count]) => `${what} ${count}`).join(', ')}`)
        saidAt = now
      }
      return left.length === 0
    },
    timeoutMs,
  ).catch((error: Error) => say(error.message))
  return performance.now() - begunAt
}
