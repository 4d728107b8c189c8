import { type Executor, listed, lists } from '../db/pool.ts'
import { ALL_ACCOUNTS, ANY_ERASED, type ErasedPeople } from '../erasure/erased.ts'

// What networks said about numbers: the rows of `capabilities`, one for each number and agent. They are facts about the network, so all accounts
// with the agent share them, and no caller sees them.

/** In SQL: how long a row counts. */
const LIFETIME = `interval '24 hours'`
// A receipt that only confirms a row writes nothing until the row has this age: otherwise every receipt would cost a write.
const CONFIRM_AFTER = `interval '12 hours'`

/** In SQL: what the current network of an agent said about a number in the last 24 hours, or null. */
const known = (phone: string, agentId: string) => `(
      select k.reachable from capabilities k join agents a on a.agent_id = k.agent_id and a.carrier = k.carrier
      where k.phone = ${phone} and k.agent_id = ${agentId} and k.checked_at > now() - ${LIFETIME})`

/** Of a message with the routing `capability`. `unknown`: no network was asked in the last 24 hours. */
export type Capability = 'reachable' | 'unreachable' | 'unknown'

/** In SQL: the Capability of a message `m`; null without the routing. PostgreSQL looks nothing up for a message without it. */
export const CAPABILITY = `case when m.routing = 'capability' then
    case ${known('m.recipient', 'm.agent_id')} when true then 'reachable' when false then 'unreachable' else 'unknown' end
  end`

/** Reads what is known about these numbers. */
export async function readKnown(db: Executor, agentId: string, phones: string[]): Promise<Map<string, boolean>> {
  const query = { name: 'read-capabilities', text: READ_CAPABILITIES, values: [agentId, phones] }
  const { rows } = await db.query<{ phone: string; reachable: boolean | null }>(query)
  return new Map(rows.flatMap(({ phone, reachable }) => (reachable === null ? [] : [[phone, reachable]])))
}

export const READ_CAPABILITIES = `
  select phone, ${known('wanted.phone', '$1')} as reachable from unnest(${listed('$2::text[]')}) as wanted (phone)`

// The network's largest batch has 10,000 numbers. These take 20 s at 250 messages a second, so few messages wait for a look-up.
const LOOK_AHEAD = 5_000

/** Reads the numbers of the next messages in the lane of a message, of which nothing is known, without those of erased people. Numbers may repeat. */
export async function readAhead(db: Executor, erased: ErasedPeople, accountId: number, messageId: string): Promise<string[]> {
  const query = { name: 'read-ahead', text: READ_AHEAD, values: [messageId] }
  const { rows } = await db.query<{ phone: string; hasErased: boolean }>(query)
  const phones = rows.map(({ phone }) => phone)
  if (!rows[0]?.hasErased) return phones
  const isErased = await erased.find(db, phones)
  return phones.filter((phone) => !isErased(accountId, phone))
}

export const READ_AHEAD = `
  select m.recipient as phone, ${ANY_ERASED} as "hasErased"
  from queue own, lateral (
    select message_id, attempts from queue q
    where q.account_id = own.account_id and q.agent_id = own.agent_id and q.priority = own.priority and q.campaign_id = own.campaign_id
      and q.due_at <= now()
    order by q.due_at limit ${LOOK_AHEAD}
  ) as next join messages m on m.id = next.message_id
  where own.message_id = $1 and next.attempts = 0 and ${CAPABILITY} = 'unknown'`

type Said = { phone: string; reachable: boolean }

/**
 * Stores what the network said. A receipt or failure that came after the network was asked is newer, so it stays. People who were erased
 * meanwhile are left out.
 */
export async function storeCapabilities(
  db: Executor,
  erased: ErasedPeople,
  { agentId, accountId, carrier, askedMsAgo }: { agentId: string; accountId: number; carrier: string; askedMsAgo: number },
  said: Said[],
): Promise<void> {
  const [phones, reachable, hashes] = [
    said.map(({ phone }) => phone),
    said.map((each) => each.reachable),
    said.map(({ phone }) => erased.hashOf(phone)),
  ]
  const values = [phones, reachable, hashes, agentId, accountId, carrier, askedMsAgo]
  await db.query({ name: 'store-capabilities', text: STORE_CAPABILITIES, values })
}

export const STORE_CAPABILITIES = `
  insert into capabilities as c (phone, agent_id, carrier, reachable, checked_at)
  select s.phone, $4, $6, s.reachable, now() - $7 * interval '1 millisecond'
  from unnest(${lists('text', 'bool', 'bytea')}) as s (phone, reachable, hash)
  where not exists (select from erased_people x where x.hash = s.hash and x.account_id in (${ALL_ACCOUNTS}, $5))
  order by s.phone
  on conflict (phone, agent_id) do update set carrier = excluded.carrier, reachable = excluded.reachable, checked_at = excluded.checked_at
  where c.checked_at < excluded.checked_at`

/**
 * A step that corrects rows by what happened to messages. `source` names a step with `recipient`, `agent_id` and `at`, a condition included. It
 * changes only rows that exist: messages without a look-up cost one search of the index, and no write.
 */
export const learn = (reachable: boolean, source: string, at: string) => `
  learned as (
    update capabilities c set reachable = ${reachable}, checked_at = l.at
    from (
      select c.phone, c.agent_id, s.${at} as at
      from ${source} as s join capabilities c on c.phone = s.recipient and c.agent_id = s.agent_id
      where c.checked_at < s.${at} and (c.reachable <> ${reachable} or c.checked_at < s.${at} - ${CONFIRM_AFTER})
      order by c.phone, c.agent_id for update of c
    ) as l
    where c.phone = l.phone and c.agent_id = l.agent_id
  )`
