import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Static, Type } from 'typebox'
import { renderForMember } from '../campaigns/member-content.ts'
import type { MessageContent } from '../content/content.ts'
import { renderContent, type Variables } from '../content/variables.ts'
import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { findGroup, type GroupKey } from '../groups/groups.ts'
import { lengthOf } from '../text-length.ts'

// How a content with variables fits the members of a group: before a campaign, rather than in its report.

const MAX_MEMBERS = 10_000
const PAGE = 1_000
const RENDERED_AT_ONCE = 50
/** A large content takes a millisecond for each member. */
const WITHIN_MS = 1_000
const MAX_EXAMPLES = 10

const count = (description: string) => Type.Integer({ minimum: 0, description })

export const GroupCheck = Type.Object(
  {
    segmentId: Type.Integer(),
    members: count('All members of the group.'),
    checked: count(
      `The members that were checked, in the order of their numbers: at most ${MAX_MEMBERS.toLocaleString('en')}, and as many as take a second.`,
    ),
    failing: count('Of these, members whose message would fail.'),
    variables: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          longest: count('The characters of the longest value that a checked member has.'),
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
type Member = { phone: string; attributes: Variables | null }

/** Renders the content for the first members, as a campaign would. */
export async function checkGroup(db: Executor, group: GroupKey, { message, basic, variables }: Content): Promise<GroupCheck> {
  const found = await findGroup(db, group)
  if (found === undefined) throw notFound('RCS_SEGMENT_NOT_FOUND', 'segmentId', 'segment')
  const names = new Set(renderContent(message, {}).fields.flatMap((field) => field.names))
  const about = [...names].map((name) => ({ name, longest: 0, missing: 0 }))
  const { members } = found
  const result: GroupCheck = { segmentId: group.number, members, checked: 0, failing: 0, variables: about, examples: [] }
  const campaign = { content: message, basic, variables, fallback: null }
  const deadline = performance.now() + WITHIN_MS

  for await (const { phone, attributes } of firstMembers(db, group)) {
    for (const one of about) measure(one, attributes)
    const rendered = renderForMember(campaign, attributes, undefined)
    if ('reason' in rendered) {
      result.failing += 1
      const { reason, details } = rendered
      if (result.failing <= MAX_EXAMPLES) result.examples.push({ phone, reason, description: details })
    }
    result.checked += 1
    if (result.checked % RENDERED_AT_ONCE === 0) await nextTurn()
    if (performance.now() > deadline) break
  }
  return result
}

function measure(about: { name: string; longest: number; missing: number }, attributes: Variables | null): void {
  const value = attributes !== null && Object.hasOwn(attributes, about.name) ? attributes[about.name] : undefined
  if (value === undefined) about.missing += 1
  else about.longest = Math.max(about.longest, lengthOf(value))
}

async function* firstMembers(db: Executor, { accountId, number }: GroupKey): AsyncGenerator<Member> {
  const text = `select phone, attributes from group_members where account_id = $1 and group_number = $2 and phone > $3 order by phone limit ${PAGE}`
  let after = ''
  for (let read = 0; read < MAX_MEMBERS; read += PAGE) {
    const { rows } = await db.query<Member>(text, [accountId, number, after])
    yield* rows
    if (rows.length < PAGE) return
    after = rows.at(-1)?.phone as string
  }
}
