import { requireAccount } from '../accounts/accounts.ts'
import { readAssignment } from '../agents/agents.ts'
import { accountTransaction, type Executor, type Pool } from '../db/pool.ts'
import { noSuch, OperatorError } from '../errors.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'
import { lengthOf } from '../text-length.ts'
import { folded, meaningOf } from './words.ts'

type NewAutoReply = { accountId: number; agentId: string; keyword: string; templateId: number }
export type AutoReply = NewAutoReply & { autoReplyId: number; createdAt: Date }

/** The fields that are needed to match an incoming text. */
type KeywordReply = { id: number; keyword: string; templateId: number }

const AUTO_REPLY = `auto_replies.id as "autoReplyId", auto_replies.account_id as "accountId", agent_id as "agentId", keyword,
  template_id as "templateId", created_at as "createdAt"`
const MAX_KEYWORD_LENGTH = 100

/** The template of a reply, if it may be sent. A concurrent removal of the template is waited for, and then nothing is found. */
const APPROVED = `select id, account_id from templates where account_id = $1 and id = $4 and status = 'APPROVED' for key share`

/** Stores the keyword in its folded form. Of two concurrent calls with the same keyword, the second gets an error that names the first. */
export async function addAutoReply(db: Executor, reply: NewAutoReply): Promise<AutoReply> {
  const { accountId, agentId, templateId } = reply
  const keyword = checkedKeyword(reply.keyword)
  const { rows } = await db.query<AutoReply>(
    `with t as materialized (${APPROVED})
     insert into auto_replies (account_id, agent_id, keyword, template_id)
     select t.account_id, $2, $3, t.id from t join agent_assignments s on s.account_id = t.account_id and s.agent_id = $2
     where s.assigned
     -- Waits for a concurrent "agent unassign", and then finds nothing.
     for share of s
     on conflict (account_id, agent_id, keyword) do nothing
     returning ${AUTO_REPLY}`,
    [accountId, agentId, keyword, templateId],
  )
  if (rows[0] !== undefined) return rows[0]
  await explainRefusal(db, { ...reply, keyword })
  // The conflicting row was removed meanwhile.
  return await addAutoReply(db, reply)
}

/** Changes the keyword or the template. */
export async function changeAutoReply(
  pool: Pool,
  { accountId, autoReplyId }: Pick<AutoReply, 'accountId' | 'autoReplyId'>,
  changes: Partial<Pick<NewAutoReply, 'keyword' | 'templateId'>>,
): Promise<AutoReply> {
  const { agentId } = await findOwnAutoReply(pool, accountId, autoReplyId)
  return await accountTransaction(pool, accountId, async (tx) => {
    // Changes of the replies of an agent take turns: two that swap their keywords would wait for each other.
    await tx.query('select from agent_assignments where account_id = $1 and agent_id = $2 for no key update', [accountId, agentId])
    const reply = { ...(await findOwnAutoReply(tx, accountId, autoReplyId)), ...changes }
    const { templateId } = reply
    const keyword = checkedKeyword(reply.keyword)
    const { rows } = await tx.query<AutoReply>(
      `with t as materialized (${APPROVED})
       update auto_replies set keyword = $3, template_id = t.id from t
       where auto_replies.id = $5 and auto_replies.account_id = t.account_id and not exists (
         select from auto_replies o where o.account_id = $1 and o.agent_id = $2 and o.keyword = $3 and o.id <> $5
       )
       returning ${AUTO_REPLY}`,
      [accountId, agentId, keyword, templateId, autoReplyId],
    )
    if (rows[0] !== undefined) return rows[0]
    await explainRefusal(tx, { accountId, agentId, keyword, templateId })
    throw new Error(`automatic reply ${autoReplyId} was not changed, for no reason`)
  })
}

function checkedKeyword(given: string): string {
  const keyword = folded(given)
  if (keyword === '' || lengthOf(keyword) > MAX_KEYWORD_LENGTH) {
    throw new OperatorError(`A keyword must have at least one letter or digit, and at most ${MAX_KEYWORD_LENGTH} characters.`)
  }
  if (meaningOf(keyword) !== undefined) {
    throw new OperatorError(`"${keyword}" opts recipients out or in, and gets no automatic reply; choose another keyword.`)
  }
  return keyword
}

async function explainRefusal(db: Executor, { accountId, agentId, keyword, templateId }: NewAutoReply): Promise<void> {
  await readAssignment(db, agentId, accountId)
  const { rows } = await db.query<{ status: string | null; existing: number | null }>(
    `select (select status from templates where account_id = $1 and id = $4) as status,
       (select id from auto_replies where account_id = $1 and agent_id = $2 and keyword = $3) as existing`,
    [accountId, agentId, keyword, templateId],
  )
  const { status, existing } = rows[0] as { status: string | null; existing: number | null }
  if (status === null) throw noSuch(`Account ${accountId} has no template ${templateId}.`)
  if (status !== 'APPROVED') throw new OperatorError(`Template ${templateId} is not approved; only approved templates can be sent.`)
  if (existing !== null) throw new OperatorError(`Automatic reply ${existing} already has the keyword "${keyword}"; remove it first.`)
}

/** An agent has a keyword once. */
export const AUTO_REPLY_LIST: ListDefinition<'agentId' | 'keyword'> = {
  fields: { agentId: { column: 'agent_id', type: 'text' }, keyword: { column: 'keyword', type: 'text', hidden: true } },
  id: 'keyword',
  defaultSort: 'agentId',
}

/** Lists the automatic replies of one account, or of all accounts. */
export async function listAutoReplies(db: Executor, accountId?: number, read: PageRead = wholeList(AUTO_REPLY_LIST)): Promise<AutoReply[]> {
  if (accountId !== undefined) {
    await requireAccount(db, accountId)
  }
  const { rows } = await db.query<AutoReply>(
    `select ${AUTO_REPLY} from auto_replies where ($1::int is null or account_id = $1) and ${read.condition}
     order by account_id, ${read.orderBy} limit $2`,
    [accountId ?? null, read.fetch, ...read.values],
  )
  return rows
}

export async function readAutoRepliesPage(db: Executor, accountId: number, query: PageQuery): Promise<PageOf<AutoReply>> {
  const page = readPage(AUTO_REPLY_LIST, query, 3, `auto-replies ${accountId}`)
  return page.toBody(await listAutoReplies(db, accountId, page))
}

/** Finds an automatic reply without its account, for operators. */
export async function findAutoReply(db: Executor, autoReplyId: number): Promise<AutoReply> {
  const { rows } = await db.query<AutoReply>(`select ${AUTO_REPLY} from auto_replies where id = $1`, [autoReplyId])
  return rows[0] ?? noSuchAutoReply(autoReplyId)
}

/** The same for an automatic reply of this account. It never changes its account. */
export async function findOwnAutoReply(db: Executor, accountId: number, autoReplyId: number): Promise<AutoReply> {
  const reply = await findAutoReply(db, autoReplyId)
  return reply.accountId === accountId ? reply : noSuchAutoReply(autoReplyId)
}

export async function removeAutoReply(db: Executor, autoReplyId: number): Promise<AutoReply> {
  const { rows } = await db.query<AutoReply>(`delete from auto_replies where id = $1 returning ${AUTO_REPLY}`, [autoReplyId])
  return rows[0] ?? noSuchAutoReply(autoReplyId)
}

function noSuchAutoReply(autoReplyId: number): never {
  throw missing(`There is no automatic reply ${autoReplyId}`, 'see "herald auto-reply list"')
}

/** Reads the automatic replies of an agent, to match an incoming text. A template may have become a draft since; sending checks that. */
export async function readAutoReplies(db: Executor, accountId: number, agentId: string): Promise<KeywordReply[]> {
  const { rows } = await db.query<KeywordReply>({
    name: 'read-auto-replies',
    text: `select id, keyword, template_id as "templateId" from auto_replies where account_id = $1 and agent_id = $2 order by id`,
    values: [accountId, agentId],
  })
  return rows
}

/**
 * Whether this phone may get an automatic reply now: true at most once in any minute, so that two bots never reply to each other
 * endlessly. Of concurrent calls only one returns true: the others wait for its row and then see its time. That time is read after the
 * wait, not at the start of the transaction. A rollback releases the turn.
 */
export async function takeReplyTurn(db: Executor, accountId: number, phone: string): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'take-reply-turn',
    text: `insert into auto_reply_turns as t (account_id, phone, replied_at) values ($1, $2, clock_timestamp())
           on conflict (account_id, phone) do update set replied_at = clock_timestamp()
           where t.replied_at <= clock_timestamp() - interval '1 minute'`,
    values: [accountId, phone],
  })
  return rowCount === 1
}
