import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  attributesIn,
  attributesOf,
  type MemberContent,
  type PersonalCampaign,
  renderForMember,
  type Unfit,
} from '../../campaigns/member-content.ts'
import { VALUE_MAX_LENGTH } from '../../content/variables.ts'
import { columns, type Executor } from '../../db/pool.ts'
import type { ErasedPeople } from '../../erasure/erased.ts'
import type { SmsPlan } from '../../messages/sms-fallback.ts'
import { failUnfit } from '../fail.ts'
import { CREATE_LISTED, READ_PERSONAL, type Running, readMembersWithValues, readRetriedMembers } from './statements.ts'

// Creates messages of a campaign whose content or SMS has variables. Each is rendered with the attributes of its member, and stored as it is sent.

type Stored = PersonalCampaign & { bytes: number; names: string[] }

type Values = (string | null)[]
/** `position`: the fan-out cursor after the member. `earlier`: what the message had that a retry repeats. */
type Member = { phone: string; position: string; values: Values | null; earlier?: Earlier }
type Earlier = { content: string | null; plan: SmsPlan | null; segments: number }
/** `position`: the fan-out cursor after all members. */
type Chunk = { members: Member[]; position: string | undefined; isLast: boolean }

type Options = { erased: ErasedPeople; chunk: number; publicUrl: string | undefined }

/** Creates up to `chunk` messages in the transaction `tx`. Messages of unfit members fail in it, so no worker sees them. */
export async function createPersonal(tx: Executor, campaign: Running, { erased, chunk, publicUrl }: Options): Promise<number> {
  const stored = await readStored(tx, campaign.id)
  const size = sizeOf(stored, chunk)
  const next = await (campaign.isRetry ? readRetried(tx, campaign, stored, size) : readNext(tx, erased, campaign, stored, size))
  const rendered = await renderAll(next.members, stored, publicUrl)
  const members = next.members.slice(0, rendered.length)
  const isCut = members.length < next.members.length
  const [position, isLast] = isCut ? [members.at(-1)?.position, false] : [next.position, next.isLast]
  const values = [campaign.id, members.map(({ phone }) => phone), position, isLast, ...columnsOf(rendered)]
  const { rows } = await tx.query<Created>({ name: 'create-listed-messages', text: CREATE_LISTED, values })
  const { created, unfit } = rows[0] as Created
  if (unfit !== null) {
    const why = new Map(members.map(({ phone }, index) => [phone, rendered[index]]))
    const failing = Object.entries(unfit).map(([phone, messageId]) => ({ messageId, ...(why.get(phone) as Unfit) }))
    await failUnfit(tx, failing)
  }
  return created
}

/** `unfit`: the ids of messages to fail, by number. */
type Created = { created: number; unfit: Record<string, string> | null }

async function readStored(tx: Executor, id: string): Promise<Stored> {
  const { rows } = await tx.query<Omit<Stored, 'names'>>({ name: 'read-personal-campaign', text: READ_PERSONAL, values: [id] })
  const campaign = rows[0] as Omit<Stored, 'names'>
  return { ...campaign, names: attributesIn(campaign) }
}

// Bounds for the memory and the time of a chunk. Its transaction is open meanwhile, and other statements rely on its end within seconds.
const CHUNK_BYTES = 4 * 2 ** 20
const CHUNK_MS = 500
const SMALLEST_CHUNK = 10

/** How many members to read: their values may be long, and without values the content has its least size. */
function sizeOf({ bytes, names }: Stored, chunk: number): number {
  return Math.max(SMALLEST_CHUNK, Math.min(chunk, Math.floor(CHUNK_BYTES / (bytes + names.length * VALUE_MAX_LENGTH))))
}

async function readNext(tx: Executor, erased: ErasedPeople, campaign: Running, { names }: Stored, size: number): Promise<Chunk> {
  const { id, accountId, groups, generations, cursor, hasErased } = campaign
  const { rows } = await tx.query<{ phone: string; values: Values }>({
    name: `read-members-with-values ${groups.length} ${names.length}`,
    text: readMembersWithValues(groups, names),
    values: [id, size, accountId, groups, generations, cursor, names],
  })
  const phones = rows.map(({ phone }) => phone)
  const isErased = hasErased ? await erased.find(tx, phones) : undefined
  const members = rows.filter(({ phone }) => !isErased?.(accountId, phone)).map((row) => ({ ...row, position: row.phone }))
  // As in fan-out.ts: an erased number is stored only if the chunk has no other.
  return { members, position: members.at(-1)?.phone ?? phones.at(-1), isLast: phones.length < size }
}

type Retried = Earlier & {
  position: string | null
  isLast: boolean
  id: string
  phone: string | null
  wasUnfit: boolean
  values: Values | null
}

async function readRetried(tx: Executor, { id }: Running, { names }: Stored, size: number): Promise<Chunk> {
  // The statement looks at ten times as many messages, and all of them may have failed.
  const { rows } = await tx.query<Retried>({
    name: `read-retried-members ${names.length}`,
    text: readRetriedMembers(names),
    values: [id, Math.ceil(size / 10), names],
  })
  const members = rows.flatMap(({ id: position, phone, wasUnfit, values, content, plan, segments }) =>
    phone === null ? [] : [{ phone, position, values, ...(!wasUnfit && { earlier: { content, plan, segments } }) }],
  )
  const { position, isLast = true } = rows[0] ?? {}
  return { members, position: position ?? undefined, isLast }
}

/** What other work of the process waits for at most. */
const TURN_MS = 10

type Rendered = { content: string | null; fallback: string | null } | Unfit

/** Renders the first members: all, unless the bounds of a chunk are reached. */
async function renderAll(members: Member[], stored: Stored, publicUrl: string | undefined): Promise<Rendered[]> {
  const rendered: Rendered[] = []
  const end = performance.now() + CHUNK_MS
  let turnEnd = performance.now() + TURN_MS
  let bytes = 0
  for (const member of members) {
    const one = renderOne(member, stored, publicUrl)
    rendered.push(one)
    if (!('reason' in one)) bytes += (one.content?.length ?? 0) + (one.fallback?.length ?? 0)
    const now = performance.now()
    if (bytes >= CHUNK_BYTES || now >= end) break
    if (now >= turnEnd) {
      await nextTurn()
      turnEnd = performance.now() + TURN_MS
    }
  }
  return rendered
}

function renderOne({ values, earlier }: Member, stored: Stored, publicUrl: string | undefined): Rendered {
  const { fallback, names } = stored
  if (earlier !== undefined) {
    const { content, plan, segments } = earlier
    return { content, fallback: plan === null ? null : jsonOf({ ...fallback, plan, segments }) }
  }
  const result: MemberContent | Unfit = renderForMember(stored, attributesOf(names, values ?? []), publicUrl)
  return 'reason' in result ? result : { content: jsonOf(result.content), fallback: jsonOf(result.fallback) }
}

const jsonOf = (value: object | undefined) => (value === undefined ? null : JSON.stringify(value))

function columnsOf(rendered: Rendered[]): unknown[][] {
  const made = rendered.map((one) => ('reason' in one ? { content: null, fallback: null, isUnfit: true } : { ...one, isUnfit: false }))
  return columns(made, 'content', 'fallback', 'isUnfit')
}
