import { isDeepStrictEqual } from 'node:util'
import { requireAccount } from '../accounts/accounts.ts'
import { readAssignment } from '../agents/agents.ts'
import { accountTransaction, type Executor, type Pool, transaction } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { recordEvent } from '../events/changes.ts'

/** `word` and `unsubscribe`: the recipient; `operator`: the command line; `api`: the account, through the API. */
export const OPT_OUT_SOURCES = ['word', 'unsubscribe', 'operator', 'api'] as const
export type OptOutSource = (typeof OPT_OUT_SOURCES)[number]
export type OptOutKey = { accountId: number; agentId: string; phone: string }
export type OptOut = OptOutKey & { optedOut: boolean; block: boolean; source: OptOutSource; changedAt: Date }

/**
 * `block`: if it is left out, an opt-out keeps an existing block, and an opt-in does not end it. `at`: when the recipient opted out or in; by
 * default now, by the database's clock.
 */
export type OptOutChange = OptOutKey & { optedOut: boolean; source: OptOutSource; block?: boolean; at?: Date }

/** In `agent_id`: the row is about all agents of the account, also about agents that are assigned later. No agent has this id. */
const ALL_AGENTS = ''

/**
 * In SQL: the row that counts for an agent and a phone, if there is one. The latest change counts, whether it was for the agent or for all agents
 * of the account.
 */
export const optOutOf = (accountId: string, agentId: string, phone: string, columns = 'opted_out, blocked') => `
    select ${columns} from opt_outs
    where account_id = ${accountId} and agent_id in (${agentId}, '${ALL_AGENTS}') and phone = ${phone}
    order by changed_at desc, agent_id desc limit 1`

// The first key of a two-key advisory lock, unique in this database: "hrlo" in ASCII.
const OPT_OUTS_LOCK = 0x68726c6f

/** One transaction at a time for each number of an account: concurrent changes would not see each other's rows. */
async function lockPhone(tx: Executor, accountId: number, phone: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [OPT_OUTS_LOCK, `${accountId} ${phone}`])
}

/**
 * Records an opt-out or opt-in. Returns whether it changed anything: START from a recipient who is opted in changes nothing, and neither
 * does the second of an unsubscribe event and a STOP for the same tap.
 *
 * The latest change by its own time counts, in whichever order changes arrive, so a change without effect is stored too, with its time. A
 * time in the future is stored as now: otherwise a network whose clock is ahead would block every later STOP. START does not end a block:
 * the account ends it.
 */
export async function recordOptOut(tx: Executor, change: OptOutChange): Promise<boolean> {
  const { accountId, agentId, phone, optedOut, source, block = null, at = null } = change
  await lockPhone(tx, accountId, phone)
  const { rows } = await tx.query<{ before: boolean | null; after: boolean | null }>({
    name: 'record-opt-out',
    text: RECORD_OPT_OUT,
    values: [accountId, agentId, phone, optedOut, source, at, block],
  })
  const { before, after } = rows[0] as { before: boolean | null; after: boolean | null }
  return after !== null && after !== (before ?? false)
}

export const RECORD_OPT_OUT = `
  with latest as materialized (${optOutOf('$1', '$2', '$3', 'opted_out, blocked, changed_at')}
  ), written as (
    insert into opt_outs (account_id, agent_id, phone, opted_out, blocked, source, changed_at)
    select $1, $2, $3, $4::boolean, coalesce($7, latest.blocked, false), $5, change.at
    from (select least($6, clock_timestamp()) as at) as change left join latest on true
    where latest.changed_at is null or latest.changed_at <= change.at and not ($7 is null and latest.blocked and not $4)
    on conflict (account_id, agent_id, phone) do update
    set opted_out = excluded.opted_out, blocked = excluded.blocked, source = excluded.source, changed_at = excluded.changed_at
    returning opted_out
  )
  select (select opted_out from latest) as before, (select opted_out from written) as after`

/** One agent, or all agents of the account if `agentId` is left out. */
type Concerned = { accountId: number; agentId?: string | undefined; phone: string }
type ManualChange = Concerned & { optedOut: boolean; block: boolean; source: 'operator' | 'api' }

/** `isChanged`: false if the change only repeats an earlier one, and so changes nothing but the time. */
export type ChangedOptOuts = { before: OptOut[]; after: OptOut[]; isChanged: boolean }

/**
 * Changes an opt-out by hand, and emits an event for each agent that the recipient newly opts out of. Returns the states before and after. Opting
 * in a recipient who is not opted out writes nothing: otherwise a STOP that was sent before, and arrives later, would not count.
 */
export async function setOptOut(pool: Pool, change: ManualChange): Promise<ChangedOptOuts> {
  const { accountId, agentId = ALL_AGENTS, phone, optedOut, block, source } = change
  return await accountTransaction(pool, accountId, async (tx) => {
    await lockPhone(tx, accountId, phone)
    const before = await findOptOuts(tx, change)
    const wasOut = new Set(before.filter((each) => each.optedOut).map((each) => each.agentId))
    if (!optedOut && wasOut.size === 0 && !(await isOptedOut(tx, change))) return { before, after: before, isChanged: false }
    const stored = await findStored(tx, accountId, agentId, phone)
    await recordOptOut(tx, { accountId, agentId, phone, optedOut, block, source })
    const after = await findOptOuts(tx, change)
    for (const { agentId: agent, changedAt } of after.filter((each) => each.optedOut && !wasOut.has(each.agentId))) {
      const data = { agentId: agent, recipient: phone, source }
      await recordEvent(tx, { accountId, kind: 'recipient.opted_out', at: changedAt, data })
    }
    const isRepeated = isDeepStrictEqual(stored, await findStored(tx, accountId, agentId, phone))
    return { before, after, isChanged: !isRepeated || !isDeepStrictEqual(before.map(withoutTime), after.map(withoutTime)) }
  })
}

/** Whether a recipient is opted out. An opt-out of all agents also counts for agents that are assigned later. */
export async function isOptedOut(db: Executor, { accountId, agentId = ALL_AGENTS, phone }: Concerned): Promise<boolean> {
  const { rows } = await db.query<{ optedOut: boolean }>(optOutOf('$1', '$2', '$3', 'opted_out as "optedOut"'), [accountId, agentId, phone])
  return rows[0]?.optedOut ?? false
}

const withoutTime = ({ changedAt, ...state }: OptOut) => state

/** A row for all agents also counts for agents that are assigned later, so it can change although no agent's state does. */
async function findStored(tx: Executor, accountId: number, agentId: string, phone: string): Promise<unknown> {
  const text = 'select opted_out, blocked, source from opt_outs where account_id = $1 and agent_id = $2 and phone = $3'
  return (await tx.query(text, [accountId, agentId, phone])).rows[0]
}

/**
 * Changes an opt-out for an operator. Opting out a recipient who is already opted out is not an error. Opting in a recipient who is not opted out
 * is an error.
 */
export async function changeOptOut(pool: Pool, concerned: Concerned, optedOut: boolean, block = false): Promise<ChangedOptOuts> {
  const { accountId, agentId, phone } = concerned
  if (agentId === undefined) await requireAccount(pool, accountId)
  else await readAssignment(pool, agentId, accountId)
  const changed = await setOptOut(pool, { ...concerned, optedOut, block, source: 'operator' })
  if (!optedOut && !changed.isChanged) {
    const agents = agentId === undefined ? 'any agent' : `agent ${agentId}`
    throw new OperatorError(`${phone} is not opted out of messages from ${agents} of account ${accountId}.`)
  }
  return changed
}

const OPT_OUT = `s.account_id as "accountId", s.agent_id as "agentId", o.phone, o.opted_out as "optedOut", o.blocked as block, o.source,
  o.changed_at as "changedAt"`
const ROW = 'phone, opted_out, blocked, source, changed_at'

/** The last opt-out or opt-in of this phone for each agent of the account, by agent. An agent without any is left out. */
export async function findOptOuts(db: Executor, { accountId, agentId, phone }: Concerned): Promise<OptOut[]> {
  const { rows } = await db.query<OptOut>({
    name: 'find-opt-outs',
    text: `select ${OPT_OUT} from agent_assignments s, lateral (${optOutOf('s.account_id', 's.agent_id', '$3', ROW)}) as o
           where s.account_id = $1 and s.assigned and s.agent_id = coalesce($2, s.agent_id) order by s.agent_id`,
    values: [accountId, agentId ?? null, phone],
  })
  return rows
}

// Before and after every phone, in any collation.
const NO_PHONE = { asc: '', desc: '+9999999999999999' }

/** `after`: the last agent and phone of the page before. All values are SQL expressions, such as parameters. */
type OptOutPage = {
  direction: 'asc' | 'desc'
  limit: string | number
  after?: [agentId: string, phone: string]
  agentId?: string
  phone?: string
}

/**
 * In SQL: a page of the recipients who are opted out of agents of account $1, by agent and phone. Of the two rows that can count for an agent and
 * a phone, it shows the latest. It reads both kinds of rows in the order of the index, since an account can have millions of them.
 */
function optedOut({ direction, limit, after, agentId, phone }: OptOutPage): string {
  const then = direction === 'asc' ? '>' : '<'
  const within = [
    'r.account_id = s.account_id and r.opted_out',
    ...(after === undefined ? [] : [`r.phone ${then} case s.agent_id when ${after[0]} then ${after[1]} else '${NO_PHONE[direction]}' end`]),
    ...(phone === undefined ? [] : [`r.phone = ${phone}`]),
  ].join(' and ')
  const latest = (of: string, other: string, isLatest: string) => `(
        select r.phone, r.opted_out, r.blocked, r.source, r.changed_at from opt_outs r left join lateral (
          select changed_at from opt_outs where account_id = r.account_id and agent_id = ${other} and phone = r.phone limit 1
        ) as other on true
        where ${within} and r.agent_id = ${of} and (other.changed_at is null or ${isLatest})
        order by r.phone ${direction} limit ${limit}
      )`
  const agents = [
    's.account_id = $1 and s.assigned',
    ...(agentId === undefined ? [] : [`s.agent_id = ${agentId}`]),
    ...(after === undefined ? [] : [`s.agent_id ${then}= ${after[0]}`]),
  ]
  return `
    select ${OPT_OUT}
    from agent_assignments s, lateral (
      select * from (
      ${latest('s.agent_id', `'${ALL_AGENTS}'`, 'r.changed_at >= other.changed_at')} union all
      ${latest(`'${ALL_AGENTS}'`, 's.agent_id', 'r.changed_at > other.changed_at')}
      ) as either order by phone ${direction} limit ${limit}
    ) as o
    where ${agents.join(' and ')}
    order by s.agent_id ${direction}, o.phone ${direction} limit ${limit}`
}

// Before the table is analyzed, PostgreSQL expects few rows, and sorts the million that there are.
const IN_ORDER = 'set local enable_bitmapscan = off; set local enable_sort = off'

/** `values`: the account's id, and the further parameters of the page. */
export async function readOptedOut(pool: Pool, page: OptOutPage, values: unknown[]): Promise<OptOut[]> {
  return await transaction(pool, async (tx) => {
    await tx.query(IN_ORDER)
    return (await tx.query<OptOut>(optedOut(page), values)).rows
  })
}

const PAGE_ROWS = 1_000

/** Lists opted-out recipients by agent and phone, a page at a time. */
export async function* listOptOuts(pool: Pool, accountId: number, pageRows = PAGE_ROWS): AsyncGenerator<OptOut[], void, undefined> {
  await requireAccount(pool, accountId)
  let [agentId, phone] = ['', '']
  for (;;) {
    const page = await readOptedOut(pool, { direction: 'asc', limit: '$4', after: ['$2', '$3'] }, [accountId, agentId, phone, pageRows])
    if (page.length > 0) yield page
    if (page.length < pageRows) return
    ;({ agentId, phone } = page.at(-1) as OptOut)
  }
}
