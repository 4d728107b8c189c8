import { setImmediate as nextTurn } from 'node:timers/promises'
import { type MemberContent, type PersonalCampaign, type Problem, renderForMember } from '../../campaigns/member-content.ts'
import type { Variables } from '../../content/variables.ts'
import type { Executor } from '../../db/pool.ts'
import type { ErasedPeople } from '../../erasure/erased.ts'
import type { SmsPlan } from '../../messages/sms-fallback.ts'
import { failUnfit } from '../fail.ts'
import { CREATE_LISTED, READ_PERSONAL, READ_RETRIED, type Running, readMembersWithAttributes } from './statements.ts'

// Creates messages of a campaign whose content or SMS has variables: each is rendered with the attributes of its member, and stored as it is sent.

type Stored = PersonalCampaign & { bytes: number }

/** `earlier`: what the message that is sent again had. */
type Member = { phone: string; attributes: Variables | null; earlier?: Earlier }
type Earlier = { content: string | null; plan: SmsPlan | null; segments: number }

type Chunk = { members: Member[]; position: string | undefined; isLast: boolean }

/** What a chunk may take in memory, at about the size of the content. */
const CHUNK_BYTES = 4 * 2 ** 20
const SMALLEST_CHUNK = 10

/** Creates up to `chunk` messages in the transaction `tx`. Those of members whose values do not fit fail at once; the others do not wait. */
export async function createPersonal(
  tx: Executor,
  erased: ErasedPeople,
  campaign: Running,
  chunk: number,
  publicUrl: string | undefined,
): Promise<number> {
  const { rows } = await tx.query<Stored>({ name: 'read-personal-campaign', text: READ_PERSONAL, values: [campaign.id] })
  const stored = rows[0] as Stored
  const size = Math.max(SMALLEST_CHUNK, Math.min(chunk, Math.floor(CHUNK_BYTES / stored.bytes)))
  const { members, position, isLast } = await (campaign.isRetry ? readRetried(tx, campaign, size) : readNext(tx, erased, campaign, size))
  const rendered = await renderAll(members, stored, publicUrl)
  const values = [campaign.id, members.map(({ phone }) => phone), position, isLast, ...columnsOf(rendered)]
  const created = await tx.query<Created>({ name: 'create-listed-messages', text: CREATE_LISTED, values })
  const { created: count, wrong } = created.rows[0] as Created
  if (wrong !== null) {
    const problems = new Map(members.map(({ phone }, index) => [phone, rendered[index]]))
    await failUnfit(
      tx,
      Object.entries(wrong).map(([phone, messageId]) => ({ messageId, ...(problems.get(phone) as Problem) })),
    )
  }
  return count
}

/** `wrong`: the ids of the messages to fail, by number. */
type Created = { created: number; wrong: Record<string, string> | null }

async function readNext(tx: Executor, erased: ErasedPeople, campaign: Running, size: number): Promise<Chunk> {
  const { id, accountId, groups, generations, cursor, hasErased } = campaign
  const { rows } = await tx.query<Member>({
    name: `read-members-with-attributes ${groups.length}`,
    text: readMembersWithAttributes(groups),
    values: [id, size, accountId, groups, generations, cursor],
  })
  const phones = rows.map(({ phone }) => phone)
  const isErased = hasErased ? await erased.find(tx, phones) : undefined
  const members = rows.filter(({ phone }) => !isErased?.(accountId, phone))
  // As in fan-out.ts: an erased number is stored only if the chunk has no other.
  return { members, position: members.at(-1)?.phone ?? phones.at(-1), isLast: phones.length < size }
}

type Retried = Earlier & {
  position: string | undefined
  isLast: boolean
  phone: string | null
  isToRender: boolean
  attributes: Variables | null
}

async function readRetried(tx: Executor, { id }: Running, size: number): Promise<Chunk> {
  // The statement looks at ten times as many messages, and all of them may have failed.
  const values = [id, Math.ceil(size / 10)]
  const { rows } = await tx.query<Retried>({ name: 'read-retried-members', text: READ_RETRIED, values })
  const members = rows.flatMap(({ phone, isToRender, attributes, ...earlier }) =>
    phone === null ? [] : [{ phone, attributes, ...(!isToRender && { earlier }) }],
  )
  const { position, isLast = true } = rows[0] ?? {}
  return { members, position, isLast }
}

/** Large contents take a millisecond each, and other work of the process must not wait for all of them. */
const RENDERED_AT_ONCE = 50

type Rendered = { content: string | null; fallback: string | null } | Problem

async function renderAll(members: Member[], stored: Stored, publicUrl: string | undefined): Promise<Rendered[]> {
  const rendered: Rendered[] = []
  for (const { attributes, earlier } of members) {
    if (rendered.length % RENDERED_AT_ONCE === RENDERED_AT_ONCE - 1) await nextTurn()
    rendered.push(earlier === undefined ? asJson(renderForMember(stored, attributes, publicUrl)) : sameAgain(stored, earlier))
  }
  return rendered
}

function asJson(result: MemberContent | Problem): Rendered {
  if ('reason' in result) return result
  const { content, fallback } = result
  return { content: jsonOf(content), fallback: jsonOf(fallback) }
}

function sameAgain({ fallback }: Stored, { content, plan, segments }: Earlier): Rendered {
  return { content, fallback: plan === null ? null : jsonOf({ ...fallback, plan, segments }) }
}

const jsonOf = (value: object | undefined) => (value === undefined ? null : JSON.stringify(value))

function columnsOf(rendered: Rendered[]): unknown[][] {
  const made = rendered.map((each) => ('reason' in each ? { content: null, fallback: null, isWrong: true } : { ...each, isWrong: false }))
  return [made.map(({ content }) => content), made.map(({ fallback }) => fallback), made.map(({ isWrong }) => isWrong)]
}
