import type { MessageContent } from '../content/content.ts'
import type { Executor } from '../db/pool.ts'

/** Whom an answer is for: an account and its agent, and the message it answers where that is known. */
export type Addressee = { accountId: number; agentId: string; messageId: string | undefined; test: boolean }

// Nobody answers what they got longer ago; and one who writes out of the blue answers nothing.
const ANSWERED_WITHIN_DAYS = 30

/** An event of a network: who did it, when, and which agent or number they did it to. */
export type Origin = { carrier: string; phone: string; agentId?: string; number?: string; occurredAt: Date }

/**
 * The account whose message somebody answers: by RCS the one that this agent last sent to them, by SMS the one that came from this number.
 * Where the agent has sent them nothing lately, it is that of the agent, if only one account has it.
 */
export async function findAddressee(db: Executor, origin: Origin): Promise<Addressee | undefined> {
  const { carrier, phone, agentId, number, occurredAt } = origin
  if (agentId === undefined) return number === undefined ? undefined : await findBySms(db, phone, number)
  const { rows } = await db.query<Addressee>({ name: 'find-answered', text: LAST_MESSAGE, values: [phone, agentId, carrier, occurredAt] })
  if (rows[0] !== undefined) return rows[0]
  const [only, ...others] = await accountsOf(db, carrier, agentId)
  return only === undefined || others.length > 0 ? undefined : { accountId: only, agentId, messageId: undefined, test: false }
}

// By how much the network's clock may be off ours, and a phone quicker than our own note that its message was sent.
const CLOCK_SECONDS = 10
// Of the messages to one phone, as many as can be on their way at once.
const MOST_CANDIDATES = 50

/**
 * What was sent after somebody wrote is not what they answer, and neither is what waits to be sent: where two accounts share an agent, the
 * answer to one would be taken for the other's.
 */
const LAST_MESSAGE = `
  select "accountId", "agentId", "messageId", test
  from (
    select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, m.sent_at
    from messages m join agents a on a.agent_id = m.agent_id left join queue q on q.message_id = m.id
    where m.recipient = $1 and m.agent_id = $2 and a.carrier = $3 and m.id >= uuid_v7_from(now() - interval '${ANSWERED_WITHIN_DAYS} days')
      and (m.sent_at <= $4::timestamptz + interval '${CLOCK_SECONDS} seconds'
        or m.sent_at is null and m.status = 'ACCEPTED' and coalesce(q.claimed, true))
    order by m.id desc limit ${MOST_CANDIDATES}
  ) as candidate
  order by coalesce(sent_at, now()) desc, "messageId" desc limit 1`

// Who answers the copy that a test number got answers no message of the recipient's.
const ADDRESSEE = `account_id as "accountId", agent_id as "agentId", case when not is_copy then message_id end as "messageId", false as test`

async function findBySms(db: Executor, phone: string, number: string): Promise<Addressee | undefined> {
  const { rows } = await db.query<Addressee>({
    name: 'find-answered-sms',
    text: `select ${ADDRESSEE} from sms_contacts where recipient = $1 and sender = $2 order by sent_at desc limit 1`,
    values: [phone, number],
  })
  return rows[0]
}

/**
 * Whose messages somebody wants no more, or again. By RCS it is the account that they answer; where that can't be told, and several send by
 * the agent, all of them: people know the agent only. By SMS they know the number only: so it is all agents by which the account that they
 * answer has written from it.
 */
export async function findConcerned(db: Executor, origin: Origin): Promise<Addressee[]> {
  const { carrier, phone, agentId, number } = origin
  const addressee = await findAddressee(db, origin)
  if (addressee !== undefined && agentId === undefined) {
    const { rows } = await db.query<Addressee>({
      name: 'agents-of-number',
      text: `select distinct on (agent_id) ${ADDRESSEE} from sms_contacts
             where account_id = $1 and recipient = $2 and sender = $3 order by agent_id, sent_at desc`,
      values: [addressee.accountId, phone, number],
    })
    return rows
  }
  if (addressee !== undefined) return [addressee]
  const accounts = agentId === undefined ? [] : await accountsOf(db, carrier, agentId)
  return accounts.map((accountId) => ({ accountId, agentId: agentId as string, messageId: undefined, test: false }))
}

/** All accounts that send by this agent. */
async function accountsOf(db: Executor, carrier: string, agentId: string): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>({
    name: 'accounts-of-agent',
    text: `select s.account_id as "accountId" from agent_assignments s join agents a on a.agent_id = s.agent_id
           where s.agent_id = $1 and a.carrier = $2 order by s.account_id`,
    values: [agentId, carrier],
  })
  return rows.map(({ accountId }) => accountId)
}

export type Tapped = Addressee & { messageId: string; content: MessageContent }

/** The message whose button was tapped: where it went to this phone, by this agent, over this network. */
export async function findTapped(db: Executor, origin: Origin, messageId: string): Promise<Tapped | undefined> {
  const { rows } = await db.query<Tapped>({
    name: 'find-tapped',
    text: `select m.account_id as "accountId", m.agent_id as "agentId", m.id as "messageId", m.test, coalesce(m.content, c.message) as content
           from messages m join agents a on a.agent_id = m.agent_id left join contents c on c.id = m.content_id
           where m.id = $1 and m.recipient = $2 and m.agent_id = $3 and a.carrier = $4`,
    values: [messageId, origin.phone, origin.agentId, origin.carrier],
  })
  return rows[0]
}
