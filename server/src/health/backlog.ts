import { isLive } from '../accounts/accounts.ts'
import type { Executor } from '../db/pool.ts'
import { entriesOf, LANES, SMS_LANES, smsEntriesOf } from '../delivery/lanes.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { FIRST_DUE } from '../webhooks/claim.ts'

// What is due and waits. Each statement reads the first entries of each lane or endpoint by an index, and stops counting at 1,000. Neither
// the history nor a queue of a million messages makes it slower.

/** `due`: counted up to MAX_COUNTED. */
export type Backlog = { due: number; oldestDueAt: Date | null; oldestMs: number | null }

export const MAX_COUNTED = 1_000

/** `open`: a step with the lanes or endpoints that may have due entries. `entries`: the entries of one of them, up to a limit. */
const backlog = (open: string, entries: (limit: number) => string) => `
  select due, oldest as "oldestDueAt", (extract(epoch from now() - oldest) * 1000)::bigint as "oldestMs"
  from (
    select (select count(*)::int from (
        select from ${open} l, lateral (${entries(MAX_COUNTED)}) as entry limit ${MAX_COUNTED}
      ) as counted) as due,
      (select min(entry.due_at) from ${open} l, lateral (${entries(1)}) as entry) as oldest
  ) as found`

/** Not the messages of suspended accounts, inactive agents and campaigns that do not run: they wait on purpose. */
export const READ_QUEUE = `
  with recursive ${LANES}, open as materialized (
    select l.* from lane l
    join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
    left join campaigns c on c.id = l.campaign_id and l.campaign_id <> '${NO_CAMPAIGN}'
    where l.due_at <= now() and s.active and ${isLive('l.account_id')} and (l.campaign_id = '${NO_CAMPAIGN}' or c.status = 'RUNNING')
  )${backlog('open', (limit) => entriesOf('l', `${limit}`))}`

export const READ_SMS_QUEUE = `
  with recursive ${SMS_LANES}, open as materialized (
    select l.* from lane l left join campaigns c on c.id = l.campaign_id and c.status = 'PAUSED'
    where l.due_at <= now() and c.id is null and ${isLive('l.account_id')}
  )${backlog('open', (limit) => smsEntriesOf('l', `${limit}`))}`

const dueDeliveries = (limit: number) =>
  `select due_at from webhook_deliveries d where d.endpoint_id = l.id and d.due_at <= now() order by d.due_at limit ${limit}`

/** `failing`: endpoints whose last attempt failed, and that will be tried again. */
export const READ_WEBHOOK_BACKLOG = `
  with recursive ${FIRST_DUE}, open as materialized (
    select e.id, e.failing_since from first_due f, lateral (
      select id, failing_since from webhook_endpoints e where e.id = f.endpoint_id and e.status = 'ACTIVE'
    ) as e
  )
  select backlog.*, (select count(*)::int from open where failing_since is not null) as failing
  from (${backlog('open', dueDeliveries)}) as backlog`

/** Messages that could be sent now, and wait for a process that delivers. */
export async function readQueue(db: Executor): Promise<Backlog> {
  const { rows } = await db.query<Backlog>({ name: 'read-queue', text: READ_QUEUE })
  return rows[0] as Backlog
}

export async function readSmsQueue(db: Executor): Promise<Backlog> {
  const { rows } = await db.query<Backlog>({ name: 'read-sms-queue', text: READ_SMS_QUEUE })
  return rows[0] as Backlog
}

export async function readWebhookBacklog(db: Executor): Promise<Backlog & { failing: number }> {
  const { rows } = await db.query<Backlog & { failing: number }>({ name: 'read-webhook-backlog', text: READ_WEBHOOK_BACKLOG })
  return rows[0] as Backlog & { failing: number }
}
