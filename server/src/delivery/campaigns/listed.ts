import { setImmediate as nextTurn } from 'node:timers/promises'
import { attributesIn, attributesOf, type PersonalCampaign, renderForMember, type Unfit } from '../../campaigns/member-content.ts'
import { VALUE_MAX_LENGTH } from '../../content/variables.ts'
import { columns, type Executor } from '../../db/pool.ts'
import { type ErasedPeople, NOBODY } from '../../erasure/erased.ts'
import type { SmsPlan } from '../../messages/sms-fallback.ts'
import { opensAt } from '../../windows/gate.ts'
import { type MessageWindow, windowFor } from '../../windows/recipients.ts'
import { failUnfit } from '../fail.ts'
import { CREATE_LISTED, READ_PERSONAL, type Running, readMembers, readRetriedMembers } from './statements.ts'

// Creates messages of members that are read first: to render the content with their attributes, to find the open times of a delivery window, and
// to leave out erased people.

/** `position`: the fan-out cursor after the member. `earlier`: the message that a retry repeats. */
type Member = { phone: string; position: string; timeZones: string | null; values: Values; earlier?: Earlier }
type Values = (string | null)[] | null
type Earlier = { wasUnfit: boolean; content: string | null; plan: SmsPlan | null; segments: number; window: string | null }
/** `position`: the fan-out cursor after all members. */
type Chunk = { members: Member[]; position: string | undefined; isLast: boolean }

/** `personal`: undefined if neither the content nor the SMS has variables. `names`: of the attributes that they use. */
type Reading = { campaign: Running; personal: Stored | undefined; names: string[]; size: number }
type Stored = PersonalCampaign & { bytes: number }

type Options = { erased: ErasedPeople; chunk: number; publicUrl: string | undefined }

/** Creates up to `chunk` messages in the transaction `tx`. Messages of unfit members fail in it, so no worker sees them. */
export async function createListed(tx: Executor, campaign: Running, { erased, chunk, publicUrl }: Options): Promise<number> {
  const personal = campaign.isPersonal ? await readPersonal(tx, campaign.id) : undefined
  const names = personal === undefined ? [] : attributesIn(personal)
  const reading = { campaign, personal, names, size: sizeOf(personal, names, chunk) }
  const next = await (campaign.isRetry ? readRetried(tx, reading) : readNext(tx, erased, reading))
  const rendered = await renderAll(next.members, reading, publicUrl)
  const members = next.members.slice(0, rendered.length)
  const isCut = members.length < next.members.length
  const [position, isLast] = isCut ? [members.at(-1)?.position, false] : [next.position, next.isLast]
  const windows = members.map((member) => windowOf(member, campaign))
  const values = [campaign.id, members.map(({ phone }) => phone), position, isLast, ...columnsOf(rendered, windows)]
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

async function readPersonal(tx: Executor, id: string): Promise<Stored> {
  const { rows } = await tx.query<Stored>({ name: 'read-personal-campaign', text: READ_PERSONAL, values: [id] })
  return rows[0] as Stored
}

// Bounds for the memory and the time of a chunk. Its transaction is open meanwhile, and other statements rely on its end within seconds.
const CHUNK_BYTES = 4 * 2 ** 20
const CHUNK_MS = 500
const SMALLEST_CHUNK = 10

/** How many members to read: their values may be long, and without values the content has its least size. */
function sizeOf(personal: Stored | undefined, names: string[], chunk: number): number {
  if (personal === undefined) return chunk
  return Math.max(SMALLEST_CHUNK, Math.min(chunk, Math.floor(CHUNK_BYTES / (personal.bytes + names.length * VALUE_MAX_LENGTH))))
}

async function readNext(tx: Executor, erased: ErasedPeople, { campaign, names, size }: Reading): Promise<Chunk> {
  const { id, accountId, groups, generations, cursor, hasErased, window } = campaign
  const { rows } = await tx.query<Omit<Member, 'position'>>({
    name: `read-members ${groups.length} ${names.length} ${window === null ? '' : 'zoned'}`,
    text: readMembers(groups, names, window !== null),
    values: [id, size, accountId, groups, generations, cursor, ...listOf(names)],
  })
  const phones = rows.map(({ phone }) => phone)
  const isErased = hasErased ? await erased.find(tx, phones) : NOBODY
  const members = rows.filter(({ phone }) => !isErased(accountId, phone)).map((row) => ({ ...row, position: row.phone }))
  // An erased number becomes the fan-out cursor, which the campaign keeps, only if the chunk has no other number.
  return { members, position: members.at(-1)?.phone ?? phones.at(-1), isLast: phones.length < size }
}

type Retried = Earlier & { position: string | null; isLast: boolean; id: string; phone: string | null; values: Values }

/** Erased people are left out by the statement. */
async function readRetried(tx: Executor, { campaign, names, size }: Reading): Promise<Chunk> {
  // The statement looks at ten times as many messages, and all of them may have failed.
  const { rows } = await tx.query<Retried>({
    name: `read-retried-members ${names.length}`,
    text: readRetriedMembers(names),
    values: [campaign.id, Math.ceil(size / 10), ...listOf(names)],
  })
  const members = rows.flatMap(({ id, phone, values, position: _position, isLast: _isLast, ...earlier }) =>
    phone === null ? [] : [{ phone, position: id, timeZones: null, values, earlier }],
  )
  const { position, isLast = true } = rows[0] ?? {}
  return { members, position: position ?? undefined, isLast }
}

/** The parameter for `names`, which a statement without names does not have. */
const listOf = (names: string[]) => (names.length > 0 ? [names] : [])

/** What other work of the process waits for at most. */
const TURN_MS = 10

type Rendered = { content: string | null; fallback: string | null } | Unfit
/** The message has the content and the SMS of the campaign. */
const SHARED: Rendered = { content: null, fallback: null }

/** Renders the content for the first members: for all, unless the bounds of a chunk are reached. */
async function renderAll(members: Member[], { personal, names }: Reading, publicUrl: string | undefined): Promise<Rendered[]> {
  if (personal === undefined) return members.map(() => SHARED)
  const rendered: Rendered[] = []
  const end = performance.now() + CHUNK_MS
  let turnEnd = performance.now() + TURN_MS
  let bytes = 0
  for (const member of members) {
    const one = renderOne(member, personal, names, publicUrl)
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

function renderOne({ values, earlier }: Member, personal: Stored, names: string[], publicUrl: string | undefined): Rendered {
  if (earlier !== undefined && !earlier.wasUnfit) {
    const { content, plan, segments } = earlier
    return { content, fallback: plan === null ? null : JSON.stringify({ ...personal.fallback, plan, segments }) }
  }
  const result = renderForMember(personal, attributesOf(names, values ?? []), publicUrl)
  return 'reason' in result ? result : { content: jsonOf(result.content), fallback: jsonOf(result.fallback) }
}

const jsonOf = (value: object | undefined) => (value === undefined ? null : JSON.stringify(value))

/** A retried message has the window of the earlier message. */
function windowOf({ earlier, ...member }: Member, { window, nowMs }: Running): MessageWindow | undefined {
  if (window === null) return undefined
  const ownWindow = earlier?.window ?? null
  return ownWindow === null ? windowFor(window, member, nowMs) : { text: ownWindow, opensAt: new Date(opensAt(ownWindow, nowMs)) }
}

function columnsOf(rendered: Rendered[], windows: (MessageWindow | undefined)[]): unknown[][] {
  const made = rendered.map((one, index) => ({
    ...('reason' in one ? { ...SHARED, isUnfit: true } : { ...one, isUnfit: false }),
    window: windows[index]?.text ?? null,
    opensAt: windows[index]?.opensAt ?? null,
  }))
  return columns(made, 'content', 'fallback', 'isUnfit', 'window', 'opensAt')
}
