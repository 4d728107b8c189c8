import { Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { OutgoingTime } from '../schemas.ts'
import { escapePointer } from '../validation.ts'
import { MAX_GROUP_NAME_CHARACTERS } from './groups.ts'

const MAX_MEMBERS = 1_000
const MAX_ATTRIBUTES = 100
const MAX_CONSENTS = 1_000

const name = Type.String({ minLength: 1, maxLength: MAX_GROUP_NAME_CHARACTERS })

export const Segment = Type.Object(
  {
    segmentId: Type.Integer({ description: 'The number to use in `segmentIds` of a campaign.' }),
    name: Type.Optional(name),
    members: Type.Integer({ description: 'How many members it has.' }),
    createdAt: OutgoingTime,
    updatedAt: Type.Unsafe<Date>({ ...OutgoingTime, description: 'When the segment or a member was last changed.' }),
  },
  { $id: 'Segment', additionalProperties: false },
)

export const SegmentName = Type.Object({ name }, { additionalProperties: false, examples: [{ name: 'Customers' }] })

const consents = Type.Array(Type.Integer(), { maxItems: MAX_CONSENTS, description: 'The consents that the recipient has given.' })
const controlGroup = Type.Boolean({ description: 'Whether the recipient is in the control group.' })
const attributes = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string' },
  maxProperties: MAX_ATTRIBUTES,
  description:
    'Further facts about the recipient, by name. Like all texts, names have neither the character NUL nor half of a surrogate pair.',
  rules: nameRules,
})

/** The validator checks the values of all texts, but only attributes have names that a caller chooses. */
function nameRules(given: Record<string, unknown>): Violation[] {
  return Object.keys(given)
    .filter((name) => name.includes('\0') || !name.isWellFormed())
    .map((name) => ({
      path: `/${escapePointer(name)}`,
      reason: 'must have a name without the character NUL and without half of a surrogate pair',
    }))
}

export const SegmentMember = Type.Object(
  {
    phone: Type.String({ description: '`+` and digits.' }),
    consents,
    controlGroup,
    status: Type.Enum(['active', 'inactive']),
    timeZone: Type.Optional(Type.String({ description: 'The IANA name of the time zone.' })),
    attributes: Type.Optional(attributes),
  },
  { $id: 'SegmentMember', additionalProperties: false },
)

// The schema checks only types. A wrong value rejects its member, not the whole request (put-members.ts).
const NewMember = Type.Object(
  {
    phone: Type.String({ description: 'An international phone number.' }),
    consents: Type.Optional(consents),
    controlGroup: Type.Optional(controlGroup),
    status: Type.Optional(Type.String({ description: '`active`, the default, or `inactive`.' })),
    timeZone: Type.Optional(Type.String({ description: 'The IANA name of a time zone. An empty string removes it.' })),
    attributes: Type.Optional(attributes),
  },
  { additionalProperties: false, description: 'If the segment already has the member, fields that are absent keep their values.' },
)

const EXAMPLE = { phone: '+48500100200', consents: [1, 7], timeZone: 'Europe/Warsaw', attributes: { city: 'Gdynia' } }

export const NewMembers = Type.Object(
  { members: Type.Array(NewMember, { minItems: 1, maxItems: MAX_MEMBERS }) },
  { additionalProperties: false, examples: [{ members: [EXAMPLE] }] },
)

const reason = Type.String({ description: 'Why it was rejected.' })

export const MembersChange = Type.Object(
  {
    added: Type.Integer({ description: 'New members.' }),
    updated: Type.Integer({ description: 'Members that the segment already had.' }),
    rejected: Type.Array(
      Type.Object({ index: Type.Integer({ description: 'The position in `members`, from 0.' }), reason }, { additionalProperties: false }),
    ),
  },
  { additionalProperties: false },
)

export const Import = Type.Object(
  {
    imported: Type.Integer({ description: 'Numbers of the file that are in the segment now.' }),
    rejected: Type.Array(
      Type.Object({ line: Type.Integer({ description: 'The line of the file, from 1.' }), reason }, { additionalProperties: false }),
      {
        description: 'The first 1,000 lines that were rejected.',
      },
    ),
  },
  { additionalProperties: false },
)
