import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { say } from '../support/progress.ts'
import type { Ask } from './ledger.ts'

// The work that remains. When there is none, every message has its final status, and the history can be read.

/** Connections without a statement timeout; that of the service is 3.5 s. */
export function openForChecks(databaseUrl: string): pg.Pool {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, Number)
  const pool = new pg.Pool({ connectionString: databaseUrl, types, max: 2 })
  pool.on('error', () => {})
  return pool
}

const REMAINING = `
  select
    (select count(*) from queue) as queue,
    (select count(*) from sms_queue) as "SMS queue",
    -- A message that was to be sent later keeps its entry for 48 hours.
    (select count(*) from expiries where expires_at < now() + interval '1 hour') as expiries,
    (select count(*) from log_pages where last_position is null) as "pages without a position",
    (select count(*) from webhook_deliveries) as "events to post",
    (select count(*) from carrier_events where process_after is not null) as "replies to process",
    (select count(*) from report_deltas) as "counts to fold",
    (select count(*) from campaigns where status in ('SCHEDULED', 'RUNNING', 'PAUSED') or status = 'CANCELLED' and withdrawn_at is null) as campaigns,
    -- Phones that end in 01 and 09 never read a message.
    (select count(*) from messages where status in ('ACCEPTED', 'SENT') or status = 'DELIVERED' and right(recipient, 2) not in ('01', '09')) as messages,
    (select count(*) from sms_fallbacks f join messages m on m.id = f.message_id
      where f.status in ('SCHEDULED', 'SENT') or f.status = 'WAITING' and m.delivered_at is null) as "SMS fallbacks"`

export type Remaining = Record<string, number>

export async function readRemaining(pool: Pick<pg.ClientBase, 'query'>, ask: Ask): Promise<Remaining> {
  const { rows } = await pool.query<Remaining>(REMAINING)
  const { owed } = await ask('counts')
  return { ...rows[0], 'owed by the network': owed.steps + owed.webhooks + owed.deliverSm }
}

const SAY_EVERY_MS = 10_000
const LOOK_EVERY_MS = 250
// The longest wait: the outcome of an SMS counts as unknown 73 s after the claim of a worker that died; of three segments, after 93 s.
const TIMEOUT_MS = 240_000

/** Returns if nothing got less for four minutes, too, so that a check can report what remains. */
export async function untilSettled(pool: pg.Pool, ask: Ask): Promise<void> {
  say('no more faults; all work is waited for')
  let [saidAt, lessAt, least] = [performance.now(), performance.now(), Number.POSITIVE_INFINITY]
  while (performance.now() - lessAt < TIMEOUT_MS) {
    const remaining = Object.entries(await readRemaining(pool, ask)).filter(([, count]) => count > 0)
    const sum = remaining.reduce((total, [, count]) => total + count, 0)
    if (sum === 0) return
    if (sum < least) [least, lessAt] = [sum, performance.now()]
    if (performance.now() - saidAt > SAY_EVERY_MS) {
      say(`remaining: ${remaining.map(([what, count]) => `${what} ${count}`).join(', ')}`)
      saidAt = performance.now()
    }
    await sleep(LOOK_EVERY_MS)
  }
}
