import { requireAccount } from '../accounts/accounts.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { recordEvent } from '../events/changes.ts'
import { withAssignedAgent } from './agents.ts'

export type OptOutSource = 'word' | 'unsubscribe' | 'operator'
export type OptOutKey = { accountId: number; agentId: string; phone: string }
export type OptOut = OptOutKey & { optedOut: boolean; source: OptOutSource; changedAt: Date }

/** `at`: when it was said; by the database's clock, now, where it is left out. */
export type OptOutChange = OptOutKey & { optedOut: boolean; source: OptOutSource; at?: Date }

const OPT_OUT = `account_id as "accountId", agent_id as "agentId", phone, opted_out as "optedOut", source, changed_at as "changedAt"`

/**
 * Writes down that somebody wants no more messages, or wants them again. True where that changed anything: who was in stays in when they
 * write START, and who is out stays out when the unsubscribe event and the word STOP come for the same tap.
 *
 * What was said last counts, in whichever order it arrives: so what changes nothing is written down as well, with its time. A time in
 * the future counts as now; otherwise a network whose clock is off could make us deaf to every later STOP.
 *
 * The row is locked before it is compared: of two at once, the second sees what the first has written. Where the row was made by another
 * after this statement had begun, nothing is written, and a second run sees it.
 */
export async function recordOptOut(db: Executor, change: OptOutChange): Promise<boolean> {
  const { accountId, agentId, phone, optedOut, source, at = null } = change
  const { rows } = await db.query<{ before: boolean | null; after: boolean | null }>({
    name: 'record-opt-out',
    text: `
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
      select (select opted_out from before) as before, (select opted_out from written) as after`,
    values: [accountId, agentId, phone, optedOut, source, at],
  })
  const { before, after } = rows[0] as { before: boolean | null; after: boolean | null }
  if (before === null && after === null) return await recordOptOut(db, change)
  return after !== null && after !== (before ?? false)
}

/** An operator's change. Opting out who is out already is fine; opting in who is not out is a mistake, and leaves nothing behind. */
export async function changeOptOut(pool: Pool, key: OptOutKey, optedOut: boolean): Promise<OptOut> {
  const { accountId, agentId, phone } = key
  return await transaction(pool, async (tx) => {
    const changed = await withAssignedAgent(accountId, agentId, () => recordOptOut(tx, { ...key, optedOut, source: 'operator' }))
    if (!optedOut && !changed) {
      throw new OperatorError(`${phone} is not opted out of what the agent ${agentId} sends for account ${accountId}.`)
    }
    const optOut = (await findOptOut(tx, key)) as OptOut
    const data = { agentId, recipient: phone, source: optOut.source }
    if (optedOut && changed) await recordEvent(tx, { accountId, kind: 'recipient.opted_out', at: optOut.changedAt, data })
    return optOut
  })
}

/** The last opt-out or opt-in of this number for the agent; undefined where there was none. */
export async function findOptOut(db: Executor, { accountId, agentId, phone }: OptOutKey): Promise<OptOut | undefined> {
  const text = `select ${OPT_OUT} from opt_outs where account_id = $1 and agent_id = $2 and phone = $3`
  return (await db.query<OptOut>(text, [accountId, agentId, phone])).rows[0]
}

const PAGE_ROWS = 1_000

/** Who is out, by agent and number, a page at a time: an account can have millions of them. */
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
