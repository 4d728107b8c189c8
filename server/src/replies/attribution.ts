import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'
import { LATEST_START_DAYS } from '../messages/schemas.ts'

/** The account and agent that a reply belongs to, and the message it replies to if that is known. */
export type Addressee = { accountId: number; agentId: string; messageId: string | undefined; test: boolean }

// A reply belongs to a message that was sent in the last 30 days. A text without such a message replies to nothing.
const REPLIED_WITHIN_DAYS = 30
// A message may have been accepted that long before it was sent. Messages are found by the time of their acceptance.
const ACCEPTED_WITHIN_DAYS = REPLIED_WITHIN_DAYS + LATEST_START_DAYS

/** Where an event came from: the network, the phone, and the agent or number it was sent to. */
type Origin = { carrier: string; phone: string; agentId?: string; senderNumber?: string; occurredAt: Date }

/**
 * Finds the account that a reply belongs to. By RCS it is the account whose message this agent sent last to the recipient; by SMS, the account
 * that last sent from this number. If the agent has sent the recipient nothing lately, it is the agent's account, provided that there is only
 * one.
 */
export async function findAddressee(db: Executor, origin: Origin): Promise<Addressee | undefined> {
  const { carrier, phone, agentId, senderNumber, occurredAt } = origin
  if (agentId === undefined) return senderNumber === undefined ? undefined : await findBySms(db, phone, senderNumber)
  const { rows } = await db.query<Addressee>({
    name: 'find-replied-message',
    text: FIND_REPLIED_MESSAGE,
    values: [phone, agentId, carrier, occurredAt],
  })
  if (rows[0] !== undefined) return rows[0]
  const [only, ...others] = await accountsOf(db, carrier, agentId)
  return only === undefined || others.length > 0 ? undefined : { accountId: only, agentId, messageId: undefined, test: false }
}

// Allows for the difference between the clocks of the network and the database, and for a phone that replies before the send result is stored.
const CLOCK_SECONDS = 10
// The newest messages that are compared. A message that was scheduled days ahead may be older than the messages that were sent meanwhile.
const MAX_CANDIDATES = 200

/**
 * Excludes messages sent after the reply, and messages not sent yet: if two accounts share an agent, the reply to one would be attributed
 * to the other.
 */
export const FIND_REPLIED_MESSAGE = `
  select "accountId", "agentId", "messageId", test
  from (
    select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, m.sent_at
    from messages m join agents a on a.agent_id = m.agent_id left join queue q on q.message_id = m.id
    where m.recipient = $1 and m.agent_id = $2 and a.carrier = $3 and m.id >= uuid_v7_from(now() - interval '${ACCEPTED_WITHIN_DAYS} days')
      and (m.sent_at <= $4::timestamptz + interval '${CLOCK_SECONDS} seconds' and m.sent_at >= now() - interval '${REPLIED_WITHIN_DAYS} days'
        or m.sent_at is null and m.status = 'ACCEPTED' and coalesce(q.claimed, true))
    order by m.id desc limit ${MAX_CANDIDATES}
  ) as candidate
  order by coalesce(sent_at, now()) desc, "messageId" desc limit 1`

// A test number that replies to its copy replies to no message of its own.
const ADDRESSEE = `account_id as "accountId", agent_id as "agentId", case when not is_copy then message_id end as "messageId", false as test`

async function findBySms(db: Executor, phone: string, senderNumber: string): Promise<Addressee | undefined> {
  const { rows } = await db.query<Addressee>({
    name: 'find-replied-sms',
    text: FIND_REPLIED_SMS,
    values: [phone, senderNumber],
  })
  return rows[0]
}

export const FIND_REPLIED_SMS = `select ${ADDRESSEE} from sms_contacts where recipient = $1 and sender = $2 order by sent_at desc limit 1`

/**
 * Finds the accounts and agents that an opt-out or opt-in applies to. By RCS it is the account that the recipient replies to. If that is
 * unknown and several accounts use the agent, it applies to all of them, since recipients only know the agent. By SMS recipients only know the
 * number, so it applies to all agents of the account that have sent to them from that number.
 */
export async function findConcerned(db: Executor, origin: Origin): Promise<Addressee[]> {
  const { carrier, phone, agentId, senderNumber } = origin
  const addressee = await findAddressee(db, origin)
  if (addressee !== undefined && agentId === undefined) {
    const { rows } = await db.query<Addressee>({
      name: 'agents-of-number',
      text: `select distinct on (agent_id) ${ADDRESSEE} from sms_contacts
             where account_id = $1 and recipient = $2 and sender = $3 order by agent_id, sent_at desc`,
      values: [addressee.accountId, phone, senderNumber],
    })
    return rows
  }
  if (addressee !== undefined) return [addressee]
  const accounts = agentId === undefined ? [] : await accountsOf(db, carrier, agentId)
  return accounts.map((accountId) => ({ accountId, agentId: agentId as string, messageId: undefined, test: false }))
}

/** Finds all accounts that use this agent. */
async function accountsOf(db: Executor, carrier: string, agentId: string): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>({
    name: 'accounts-of-agent',
    text: `select s.account_id as "accountId" from agent_assignments s join agents a on a.agent_id = s.agent_id
           where s.agent_id = $1 and a.carrier = $2 order by s.account_id`,
    values: [agentId, carrier],
  })
  return rows.map(({ accountId }) => accountId)
}

type Tapped = Addressee & { messageId: string; content: MessageContent }

/** Finds the message whose button was tapped, if it went to this phone, from this agent, over this network. */
export async function findTapped(db: Executor, origin: Origin, messageId: string): Promise<Tapped | undefined> {
  const { rows } = await db.query<Tapped>({
    name: 'find-tapped',
    text: FIND_TAPPED,
    values: [messageId, origin.phone, origin.agentId, origin.carrier],
  })
  return rows[0]
}

export const FIND_TAPPED = `
  select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, coalesce(m.content, c.message) as content
  from messages m join agents a on a.agent_id = m.agent_id left join contents c on c.id = m.content_id
  where m.id = $1 and m.recipient = $2 and m.agent_id = $3 and a.carrier = $4`
