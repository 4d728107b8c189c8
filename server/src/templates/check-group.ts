import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import { attributesIn, attributesOf, renderForMember, selectAttributes } from '../campaigns/member-content.ts'
import type { MessageContent } from '../content/content.ts'
import { VALUE_MAX_LENGTH, type Variables } from '../content/variables.ts'
import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { findGroup, type GroupKey } from '../groups/groups.ts'
import { lengthOf } from '../text-length.ts'

// Whether a content with variables fits the members of a group. A report would say it only after the campaign.

const MAX_MEMBERS = 10_000
/** The members of a page are in memory at once, with their values. */
const PAGE_CHARACTERS = 2 ** 20
const MAX_PAGE = 1_000
/** Of rendering: other requests wait for it, 10 ms at a time. */
const WITHIN_MS = 500
const TURN_MS = 10
const MAX_EXAMPLES = 10

const count = (description: string) => Type.Integer({ minimum: 0, description })

export const GroupCheck = Type.Object(
  {
    segmentId: Type.Integer(),
    members: count('All members of the group.'),
    checked: count(
      `The members that were checked, in the order of their numbers: at most ${MAX_MEMBERS.toLocaleString('en')}, and as many as take half a second.`,
    ),
    failing: count('Of these, members whose message would fail. The SMS of a campaign is not checked.'),
    variables: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          longest: count(`The characters of the longest value that a checked member has; ${VALUE_MAX_LENGTH + 1} if it is too long.`),
          missing: count('Checked members without a value of their own. They get the value of `variables`, or else the default.'),
        },
        { additionalProperties: false },
      ),
      { description: 'Each variable of the content.' },
    ),
    examples: Type.Array(
      Type.Object(
        { phone: Type.String(), reason: Type.Enum(['MISSING_VARIABLE', 'INVALID_CONTENT']), description: Type.String() },
        { additionalProperties: false },
      ),
      { description: `The first ${MAX_EXAMPLES} members whose message would fail.` },
    ),
  },
  { $id: 'GroupCheck', additionalProperties: false, description: 'What would happen if the content were sent to the group.' },
)

type GroupCheck = Static<typeof GroupCheck>

type Content = { message: MessageContent; basic: boolean; variables: Variables }
type Member = { phone: string; values: (string | null)[] }

/** Renders the content for the first members, as a campaign would. Without variables, it is the same for all. */
export async function checkGroup(db: Executor, group: GroupKey, { message, basic, variables }: Content): Promise<GroupCheck> {
  const found = await findGroup(db, group)
  if (found === undefined) throw notFound('RCS_SEGMENT_NOT_FOUND', 'segmentId', 'segment')
  const { members } = found
  const campaign = { content: message, basic, variables, fallback: null }
  const names = attributesIn(campaign)
  const about = names.map((name) => ({ name, longest: 0, missing: 0 }))
  const result: GroupCheck = { segmentId: group.number, members, checked: 0, failing: 0, variables: about, examples: [] }
  if (names.length === 0) return { ...result, checked: members }

  let leftMs = WITHIN_MS
  for await (const page of pagesOf(db, group, names)) {
    let turnBegin = performance.now()
    for (const member of page) {
      checkMember(member)
      const tookMs = performance.now() - turnBegin
      if (tookMs < TURN_MS) continue
      leftMs -= tookMs
      if (leftMs <= 0) return result
      await nextTurn()
      turnBegin = performance.now()
    }
    leftMs -= performance.now() - turnBegin
  }
  return result

  function checkMember({ phone, values }: Member): void {
    for (const [index, one] of about.entries()) measure(one, values[index] ?? null)
    const rendered = renderForMember(campaign, attributesOf(names, values), undefined)
    result.checked += 1
    if (!('reason' in rendered)) return
    result.failing += 1
    const { reason, details } = rendered
    if (result.failing <= MAX_EXAMPLES) result.examples.push({ phone, reason, description: details })
  }
}

function measure(about: { longest: number; missing: number }, value: string | null): void {
  if (value === null) about.missing += 1
  else about.longest = Math.max(about.longest, lengthOf(value))
}

async function* pagesOf(db: Executor, { accountId, number }: GroupKey, names: string[]): AsyncGenerator<Member[]> {
  const size = Math.max(1, Math.min(MAX_PAGE, Math.floor(PAGE_CHARACTERS / (names.length * VALUE_MAX_LENGTH))))
  const text = `select phone, ${selectAttributes(names, '$5')} from group_members
    where account_id = $1 and group_number = $2 and phone > $3 order by phone limit $4`
  let after = ''
  for (let read = 0; read < MAX_MEMBERS; read += size) {
    const { rows } = await db.query<Member>(text, [accountId, number, after, size, names])
    yield rows
    if (rows.length < size) return
    after = rows.at(-1)?.phone as string
  }
}
