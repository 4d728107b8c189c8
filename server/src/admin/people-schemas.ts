import { Type } from 'typebox'
import { ACCOUNT_ROLES } from '../people/roles.ts'
import { MAX_ID, OutgoingTime } from '../schemas.ts'

const object = { additionalProperties: false }

export const PEOPLE_TAG = { name: 'People', description: 'Who may sign in, and what they may do.' }

export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^\\s*\\S+@\\S+\\s*$',
  description: 'an e-mail address, such as anna@example.com; case is ignored',
})
export const PersonName = Type.String({ maxLength: 200, pattern: '\\S', description: 'a name of at most 200 characters, not only spaces' })
export const RoleInAccount = Type.Enum([...ACCOUNT_ROLES])
export const RoleList = Type.Array(Type.Object({ accountId: Type.Integer(), role: RoleInAccount }, object), {
  description: 'The roles in single accounts. An operator needs none.',
})

export const PEOPLE_FILTERS = {
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 254, description: 'Part of the name or the e-mail address.' })),
}

export const PersonBody = Type.Object(
  {
    personId: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    isOperator: Type.Boolean({ description: 'May do everything, in all accounts.' }),
    roles: RoleList,
    hasPassword: Type.Boolean({ description: 'Whether the person has a password in Herald.' }),
    createdAt: OutgoingTime,
    disabledAt: Type.Optional(OutgoingTime),
  },
  { $id: 'Person', ...object },
)

export const NewPersonBody = Type.Object({ email: Email, name: PersonName, isOperator: Type.Optional(Type.Boolean()) }, object)
export const PersonChangeBody = Type.Object(
  { name: Type.Optional(PersonName), isOperator: Type.Optional(Type.Boolean()), isDisabled: Type.Optional(Type.Boolean()) },
  { ...object, minProperties: 1 },
)
export const RoleBody = Type.Object({ role: RoleInAccount }, object)
export const NewMemberBody = Type.Object({ email: Email, name: PersonName, role: RoleInAccount }, object)

const Id = Type.Integer({ minimum: 1, maximum: MAX_ID })
export const PersonPath = Type.Object({ personId: Id }, object)
export const PersonRolePath = Type.Object({ personId: Id, roleAccountId: Id }, object)

export const LinkBody = Type.Object(
  { token: Type.String({ description: 'The part of the link after `/console#setup=`.' }), expiresAt: OutgoingTime },
  object,
)
