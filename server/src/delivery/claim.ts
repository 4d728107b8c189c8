import type { RcsCarrier, Traffic } from '../carriers/carrier.ts'
import type { MessageContent } from '../content/content.ts'
import { byMonth, eventsTable, isMissingMonth } from '../db/partitions.ts'
import { type Executor, listed } from '../db/pool.ts'
import { NO_CAMPAIGN, PRIORITIES } from '../messages/states.ts'

/** What a worker took up: it alone may ask it of the network and write down what came of it, until its lease ends. */
export type Entry = {
  messageId: string
  accountId: number
  agentId: string
  task: 'send' | 'revoke'
  /** This one included. */
  attempts: number
  lease: string
  /** By performance.now(): its turn, where the carrier or the agent has a rate. */
  turnAt: number
  /** By the database's clock: this machine's may be off. Past already where the task is to revoke. */
  expiresInMs: number
}

export type ClaimRequest = {
  carrier: Pick<RcsCarrier, 'name' | 'messagesPerSecond' | 'messagesPerSecondPerAgent'>
  /** How many calls the worker can make now. */
  free: number
  lease: string
  leaseMs: number
  /** Agents whose messages the network would only turn away. */
  pausedAgents: string[]
  /** The calls that the worker makes now, by account. */
  calls: ReadonlyMap<number, number>
}

export type Claim = {
  entries: Entry[]
  /** Another worker is claiming at this moment. */
  isBusy: boolean
  /** Some are due and had to stay: for a turn to come, or since their account makes its share of the calls. */
  isHeldBack: boolean
}

/** Turns are given out this far ahead, and waited for: a rate is kept to the message, and a claim serves many of them. */
export const TURNS_AHEAD_MS = 100

/**
 * What turns are given out by: the clock as it stands when all candidates are found, not `now()`, which was before the statement was planned.
 * All turns that had passed meanwhile were taken at once: on a busy machine, 24 in a second at a rate of 20.
 */
export const clockAfter = (found: string) =>
  `clock as materialized (select clock_timestamp() as at from (select count(*) from ${found}) as looked)`

/** When the next turn is free. Further ahead than the slowest rate, one a second, puts it, it is of a clock that was set back since, and means nothing. */
export const nextTurn = (mostSecondsAhead: number) =>
  `case when free_at > clock.at + interval '${mostSecondsAhead} seconds' then clock.at else greatest(free_at, clock.at) end`
const NEXT_TURN = nextTurn(2)

/**
 * By the clock as it stands when the answer is given, not as the statement began: a claim that took 80 ms would put its messages off by as
 * much, into the turns of the next one, and a second would see more than the rate. Read once for the whole answer (the subquery is
 * what makes it so): a pause between two rows would otherwise move their turns closer together.
 */
export const waitMs = (turnAt: string) => `coalesce(round(extract(epoch from ${turnAt} - (select clock_timestamp())) * 1000)::int, 0)`

/**
 * All lanes, with the time the first entry of each is due: one look into the index for each lane, however long it is. Measured: 4.5 ms
 * for 314 lanes that hold a million entries, on a busy machine.
 */
export const LANES = `
  lane as (
    (select account_id, agent_id, priority, campaign_id, due_at from queue order by account_id, agent_id, priority, campaign_id, due_at limit 1)
    union all
    select next.*
    from lane, lateral (
      select account_id, agent_id, priority, campaign_id, due_at from queue q
      where (q.account_id, q.agent_id, q.priority, q.campaign_id) > (lane.account_id, lane.agent_id, lane.priority, lane.campaign_id)
      order by account_id, agent_id, priority, campaign_id, due_at limit 1
    ) as next
  )`

/**
 * Takes up what is due, in one statement: transactional before campaign; of each kind one of every account before the second of any, and of
 * an account one of every agent; where turns are few, the account that waited longest first. So a million entries of one account put
 * another's single one off by no more than the batch that is being sent.
 *
 * An account gets at most half of the calls that are free, counting those it makes already: while one account's calls hang, there is
 * always room for the others.
 *
 * Claims of one carrier come one after the other (the lock on its pace), which is what makes its rate hold across all workers. One that
 * finds the lock taken returns at once. One that got it just after another has let it go still sees the queue as it was before: the
 * entries that the other took are no longer due, and are not taken again.
 *
 * Only small columns: a worker that is stopped while it reads the answer must not hold the lock until its buffers are empty.
 */
const CLAIM = `
  with recursive pace as materialized (
    select free_at from carrier_paces where carrier = $1 for update skip locked
  ), ${LANES}, open_lane as materialized (
    select l.account_id, l.agent_id, l.priority, l.campaign_id, max(s.served_at) over (partition by l.account_id) as served_at, count(*) over () as lanes
    from lane l
    join agents a on a.agent_id = l.agent_id and a.carrier = $1
    join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
    left join campaigns c on c.id = l.campaign_id
    where exists (select from pace) and l.due_at <= now() and l.agent_id <> all (${listed('$5::text[]')}::text[])
      -- A message is taken back whatever has become of its agent and its campaign.
      and (l.priority = ${PRIORITIES.revoke} or s.active and (l.campaign_id = '${NO_CAMPAIGN}' or c.status = 'RUNNING'))
  ), candidate as materialized (
    -- Not more of a lane than can be needed, which is what its account may get, and one to show that there are more: 32 of a long lane took
    -- 4.2 ms instead of 4.9. What has run out is not looked behind, or a million of them would be looked at each time.
    select c.*, l.served_at, row_number() over (partition by c.account_id, c.agent_id order by c.priority, c.due_at) as lane_turn
    from open_lane l, lateral (
      select message_id, account_id, agent_id, priority, due_at, task, expires_at
      from queue q
      where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and q.campaign_id = l.campaign_id
        and q.due_at <= now()
      order by q.due_at limit least(ceil(2.0 * $2::int / l.lanes)::int, ($2 + 1) / 2 + 1)
    ) as c
    where c.task = 'revoke' or c.expires_at > now()
  ), ${clockAfter('candidate')}, turn as materialized (
    select ${NEXT_TURN} as starts_at, clock.at + $10 * interval '1 millisecond' as ends_at from pace, clock
  ), agent_turns as materialized (
    select agent_id, a.starts_at, 1 + floor(extract(epoch from turn.ends_at - a.starts_at) * $9::float8) as turns
    from turn, (
      select agent_id, ${NEXT_TURN} as starts_at
      from clock, agents where $9::float8 is not null and agent_id in (select agent_id from open_lane)
      order by agent_id for no key update of agents
    ) as a
  ), of_agent as (
    select c.*, row_number() over (partition by c.agent_id order by c.priority, c.lane_turn, c.served_at, c.due_at) as agent_turn
    from candidate c
  ), of_account as (
    select o.*, row_number() over (partition by o.account_id order by o.priority, o.lane_turn, o.due_at) as account_turn
    from of_agent o left join agent_turns t using (agent_id)
    where $9 is null or o.agent_turn <= t.turns
  ), ordered as (
    select o.*, row_number() over (order by o.priority, o.account_turn, o.served_at, o.due_at) as carrier_turn
    from of_account o left join unnest(${listed('$6::int[]')}, ${listed('$7::int[]')}) as busy (account_id, calls) using (account_id)
    where o.account_turn <= ($2::int - coalesce(busy.calls, 0) + 1) / 2
  ), picked as materialized (
    select o.message_id, c.carrier_at,
      t.starts_at + (row_number() over (partition by o.agent_id order by o.carrier_turn) - 1) * (interval '1 second' / $9) as agent_at
    from ordered o left join agent_turns t using (agent_id), turn,
    lateral (select turn.starts_at + (o.carrier_turn - 1) * (interval '1 second' / $8::float8) as carrier_at) as c
    where o.carrier_turn <= $2 and ($8 is null or c.carrier_at <= turn.ends_at)
  ), taken as materialized (
    -- Waits for nobody: others lock entries in an order of their own.
    select p.* from picked p, lateral (
      select from queue q where q.message_id = p.message_id and q.due_at <= now() for update skip locked
    ) as mine
  ), updated as (
    update queue q set due_at = now() + $4 * interval '1 millisecond', lease = $3, attempts = q.attempts + 1, claimed = true
    where q.message_id = any (array(select message_id from taken))
    returning q.message_id, q.account_id, q.agent_id, q.task, q.attempts, q.expires_at
  ), claimed as materialized (
    select u.*, t.agent_at, t.carrier_at from updated u join taken t using (message_id)
  ), served as (
    update agent_assignments s set served_at = now()
    from (select distinct account_id, agent_id from claimed) as c where s.account_id = c.account_id and s.agent_id = c.agent_id
  ), paced as (
    update carrier_paces c set free_at = last.at + interval '1 second' / $8
    from (select max(carrier_at) as at from claimed) as last
    where c.carrier = $1 and last.at is not null
  ), paced_agents as (
    update agents a set free_at = last.at + interval '1 second' / $9
    from (select agent_id, max(agent_at) as at from claimed group by agent_id) as last
    where a.agent_id = last.agent_id and last.at is not null
  )
  select not exists (select from pace) as "isBusy", (select count(*) from candidate) > (select count(*) from claimed) as "isHeldBack",
    message_id as "messageId", account_id as "accountId", agent_id as "agentId", task, attempts,
    ${waitMs('greatest(agent_at, carrier_at)')} as "waitMs", round(extract(epoch from expires_at - now()) * 1000)::float8 as "expiresInMs"
  from (values (1)) as always left join claimed on true`

type Row = Omit<Entry, 'lease' | 'turnAt'> & { messageId: string | null; waitMs: number; isBusy: boolean; isHeldBack: boolean }

export async function claim(db: Executor, request: ClaimRequest): Promise<Claim> {
  const { carrier, free, lease, leaseMs, pausedAgents, calls } = request
  const { rows } = await db.query<Row>({
    name: 'claim',
    text: CLAIM,
    values: [
      carrier.name,
      free,
      lease,
      leaseMs,
      pausedAgents,
      [...calls.keys()],
      [...calls.values()],
      carrier.messagesPerSecond ?? null,
      carrier.messagesPerSecondPerAgent ?? null,
      TURNS_AHEAD_MS,
    ],
  })
  const answeredAt = performance.now()
  const entries = rows.flatMap(({ isBusy, isHeldBack, waitMs, ...entry }) =>
    entry.messageId === null ? [] : [{ ...entry, lease, turnAt: answeredAt + waitMs }],
  )
  return { entries, isBusy: rows[0]?.isBusy ?? false, isHeldBack: rows[0]?.isHeldBack ?? false }
}

/** Without its row a carrier has no turns. */
export async function ensurePace(db: Executor, carrier: string): Promise<void> {
  await db.query('insert into carrier_paces (carrier) values ($1) on conflict do nothing', [carrier])
}

export type Claimed = {
  messageId: string
  recipient: string
  content: MessageContent
  traffic: Traffic
  expiresAt: Date
  /** And it is of a kind that is then not sent. */
  isOptedOut: boolean
  /** Since that was first found after the last try that may have sent it; 0 where it was not. */
  heldBackForMs: number
}

/** What a message that is held back notes: if it was sent again since, another receipt is waited for. */
export const TRIES = (attempts: string) => `'tries before: ' || (${attempts})`

/** What is to be sent. Contents may be large, so they are read outside of the claim, which others wait for. */
export async function readClaimed(db: Executor, entries: Entry[]): Promise<Map<string, Claimed>> {
  const found = new Map<string, Claimed>()
  for (const [messages, ofMonth] of byMonth(entries, ({ messageId }) => messageId)) {
    const rows = await readMonth(db, messages, ofMonth)
    for (const row of rows) found.set(row.messageId, row)
  }
  return found
}

async function readMonth(db: Executor, messages: string, entries: Entry[]): Promise<Claimed[]> {
  try {
    const { rows } = await db.query<Claimed>({
      name: `read-claimed ${messages}`,
      text: `select m.id as "messageId", m.recipient, coalesce(m.content, c.message) as content, m.traffic, m.expires_at as "expiresAt",
               coalesce(o.opted_out, false) as "isOptedOut",
               coalesce(round(extract(epoch from now() - held.since) * 1000)::float8, 0) as "heldBackForMs"
             from ${messages} m left join contents c on c.id = m.content_id
             left join lateral (
               select opted_out from opt_outs o
               where m.traffic = 'PROMOTION' and o.account_id = m.account_id and o.agent_id = m.agent_id and o.phone = m.recipient
             ) as o on true
             left join lateral (
               select min(e.occurred_at) as since from ${eventsTable(messages)} e, queue q
               where o.opted_out and e.message_id = m.id and e.kind = 'held-back' and e.occurred_at <= now()
                 and q.message_id = m.id and e.detail = ${TRIES('q.attempts - 1')}
             ) as held on true
             where m.id = any (${listed('$1::uuid[]')}::uuid[])`,
      values: [entries.map(({ messageId }) => messageId)],
    })
    return rows
  } catch (error) {
    if (isMissingMonth(error, messages)) return []
    throw error
  }
}
