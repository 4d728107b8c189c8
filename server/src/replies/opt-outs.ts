import { requireAccount } from '../accounts/accounts.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { recordEvent } from '../events/changes.ts'
import { withAssignedAgent } from './agents.ts'

export type OptOutSource = 'word' | 'unsubscribe' | 'operator'
export type OptOutKey = { accountId: number; agentId: string; phone: string }
export type OptOut = OptOutKey & { optedOut: boolean; source: OptOutSource; changedAt: Date }

/** `at`: when the recipient opted out or in; now, by the database's clock, if it is left out. */
export type OptOutChange = OptOutKey & { optedOut: boolean; source: OptOutSource; at?: Date }

const OPT_OUT = `account_id as "accountId", agent_id as "agentId", phone, opted_out as "optedOut", source, changed_at as "changedAt"`

/**
 * Records an opt-out or opt-in. Returns whether it changed anything: START from a recipient who is opted in changes nothing, and neither
 * does the second of an unsubscribe event and a STOP for the same tap.
 *
 * The latest change by its own time counts, in whichever order changes arrive, so a change without effect is stored too, with its time. A
 * time in the future is stored as now: otherwise a network whose clock is ahead would block every later STOP.
 *
 * The row is locked before it is compared, so the second of two concurrent calls sees the first. If another transaction inserted the row
 * after this statement began, nothing is written, and the statement runs again.
 */
export async function recordOptOut(db: Executor, change: OptOutChange): Promise<boolean> {
  const { accountId, agentId, phone, optedOut, source, at = null } = change
  const { rows } = await db.query<{ before: boolean | null; after: boolean | null }>({
    name: 'record-opt-out',
    text: RECORD_OPT_OUT,
    values: [accountId, agentId, phone, optedOut, source, at],
  })
  const { before, after } = rows[0] as { before: boolean | null; after: boolean | null }
  if (before === null && after === null) return await recordOptOut(db, change)
  return after !== null && after !== (before ?? false)
}

export const RECORD_OPT_OUT = `
  with before as materialized (
    select opted_out from opt_outs where account_id = $1 and agent_id = $2 and phone = $3 for no key update
  ), written as (
    insert into opt_outs as o (account_id, agent_id, phone, opted_out, source, changed_at)
    select $1, $2, $3, $4::boolean, $5, least($6, clock_timestamp()) from (select count(*) from before) as after_the_lock
    on conflict (account_id, agent_id, phone) do update
    set opted_out = excluded.opted_out, source = excluded.source, changed_at = excluded.changed_at
    where o.changed_at <= excluded.changed_at and exists (select from before)
    returning opted_out
  )
  select (select opted_out from before) as before, (select opted_out from written) as after`

/**
 * Changes an opt-out for an operator. Opting out a recipient who is already opted out is not an error. Opting in a recipient who is not opted out
 * is an error and is rolled back.
 */
export async function changeOptOut(pool: Pool, key: OptOutKey, optedOut: boolean): Promise<OptOut> {
  const { accountId, agentId, phone } = key
  return await transaction(pool, async (tx) => {
    const changed = await withAssignedAgent(accountId, agentId, () => recordOptOut(tx, { ...key, optedOut, source: 'operator' }))
    if (!optedOut && !changed) {
      throw new OperatorError(`${phone} is not opted out of messages from agent ${agentId} of account ${accountId}.`)
    }
    const optOut = (await findOptOut(tx, key)) as OptOut
    const data = { agentId, recipient: phone, source: optOut.source }
    if (optedOut && changed) await recordEvent(tx, { accountId, kind: 'recipient.opted_out', at: optOut.changedAt, data })
    return optOut
  })
}

/** The last opt-out or opt-in of this phone for the agent; undefined if there is none. */
export async function findOptOut(db: Executor, { accountId, agentId, phone }: OptOutKey): Promise<OptOut | undefined> {
  const text = `select ${OPT_OUT} from opt_outs where account_id = $1 and agent_id = $2 and phone = $3`
  return (await db.query<OptOut>(text, [accountId, agentId, phone])).rows[0]
}

const PAGE_ROWS = 1_000

/** Lists opted-out recipients by agent and phone, a page at a time: an account can have millions of them. */
export async function* listOptOuts(db: Executor, accountId: number, pageRows = PAGE_ROWS): AsyncGenerator<OptOut[], void, undefined> {
  await requireAccount(db, accountId)
  let last: OptOutKey | undefined
  for (;;) {
    const page = await readPage(db, accountId, last, pageRows)
    if (page.length > 0) yield page
    if (page.length < pageRows) return
    last = page.at(-1)
  }
}

async function readPage(db: Executor, accountId: number, after: OptOutKey | undefined, limit: number): Promise<OptOut[]> {
  const { rows } = await db.query<OptOut>({
    name: 'list-opt-outs',
    text: `select ${OPT_OUT} from opt_outs
           where account_id = $1 and (agent_id, phone) > ($2, $3) and opted_out
           order by agent_id, phone limit $4`,
    values: [accountId, after?.agentId ?? '', after?.phone ?? '', limit],
  })
  return rows
}
