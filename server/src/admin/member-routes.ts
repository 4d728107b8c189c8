import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { noSuch, OperatorError } from '../errors.ts'
import { errorResponses } from '../http/error-responses.ts'
import { callerOf } from '../http/guard.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { createLink, requireEnabled } from '../people/links.ts'
import { ensurePerson, listPeople, PEOPLE_LIST, type Person, readPeoplePage, removeRole, roleEntry, setRole } from '../people/people.ts'
import { type AccountRole, roleIn } from '../people/roles.ts'
import { NoBody, NoQuery, OutgoingTime, refTo } from '../schemas.ts'
import { adminOf } from './guard.ts'
import { LinkBody, NewMemberBody, PEOPLE_FILTERS, PEOPLE_TAG, PersonPath, RoleBody, RoleInAccount } from './people-schemas.ts'

const tags = [PEOPLE_TAG.name]
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
const config = { role: 'admin', needsPassword: true } as const

/** A person as the admins of an account see them: without roles in other accounts. */
const AccountMember = Type.Object(
  {
    personId: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: RoleInAccount,
    hasPassword: Type.Boolean({ description: 'Whether the person has a password in Herald.' }),
    disabledAt: Type.Optional(OutgoingTime),
  },
  { $id: 'AccountMember', additionalProperties: false },
)
type AccountMember = Static<typeof AccountMember>
const TheMember = refTo(AccountMember, { description: 'The person.' })

function toMember({ personId, email, name, roles, hasPassword, disabledAt }: Person, accountId: number): AccountMember {
  const role = roles.find((each) => each.accountId === accountId)?.role
  if (role === undefined) throw notMember(personId, accountId)
  return { personId, email, name, role, hasPassword, ...(disabledAt && { disabledAt }) }
}

const notMember = (personId: number, accountId: number) => noSuch(`There is no person ${personId} with a role in account ${accountId}.`)

/** The error is the same for a person of another account and for one who does not exist. */
async function findMember(pool: Pool, request: FastifyRequest, personId: number): Promise<Person> {
  const { accountId } = callerOf(request)
  const person = (await listPeople(pool, { accountId })).find((each) => each.personId === personId)
  if (person === undefined) throw notMember(personId, accountId)
  return person
}

/**
 * Anyone who has a link to set somebody's password can become that person. So an admin makes links only for people who have no rights beyond the
 * admin's own accounts.
 */
function requireNoOtherRights(request: FastifyRequest, { email, isOperator, roles }: Person): void {
  const admin = adminOf(request)
  const isWithin = !isOperator && roles.every(({ accountId }) => roleIn(admin, accountId) === 'admin')
  if (admin.isOperator || isWithin) return
  throw new OperatorError(`${email} has rights beyond your accounts; an operator can make the link.`)
}

/**
 * An admin neither sees nor changes people of other accounts: the response would show their name, and the new role could end their password. The
 * refusal shows only that the e-mail address is taken.
 */
function requireKnown(request: FastifyRequest, { roles }: Person): void {
  const admin = adminOf(request)
  if (admin.isOperator || roles.some(({ accountId }) => roleIn(admin, accountId) === 'admin')) return
  throw new OperatorError(
    'A person with this e-mail address exists, without a role in an account of which you are admin; an operator can add them.',
  )
}

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** The people of an account, for its admins. */
export const memberRoutes: Routes = async (app, options) => {
  app.addSchema(AccountMember)
  await app.register(readRoutes, options)
  await app.register(addRoutes, options)
  await app.register(changeRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/people',
    {
      schema: {
        operationId: 'listAccountPeople',
        tags,
        summary: 'List the people with a role in an account',
        querystring: listQuery(PEOPLE_LIST, PEOPLE_FILTERS),
        response: listResponses(refTo(AccountMember), 'A page of people.'),
      },
      config: { role: 'admin' },
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { items, nextCursor } = await readPeoplePage(pool, request.query, accountId)
      return { items: items.map((person) => toMember(person, accountId)), nextCursor }
    },
  )

  app.get(
    '/people/:personId',
    {
      schema: {
        operationId: 'readAccountPerson',
        tags,
        summary: 'Read a person of an account',
        params: PersonPath,
        querystring: NoQuery,
        response: { 200: TheMember, ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'admin' },
    },
    async (request) => toMember(await findMember(pool, request, request.params.personId), callerOf(request).accountId),
  )
}

/** Refuses to change a role, so that an admin does not change their own by mistake. The same role again is a repeated request. */
function requireNoOtherRole({ email, roles }: Person, accountId: number, wanted: string): void {
  const role = roles.find((each) => each.accountId === accountId)?.role
  if (role === undefined || role === wanted) return
  throw new OperatorError(`${email} already has the role ${role} in this account; change it instead.`)
}

const addRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/people',
    {
      schema: {
        operationId: 'addAccountPerson',
        tags,
        summary: 'Give a person a role in an account',
        description:
          'A person with a new e-mail address is created, and needs a link to set a password. Otherwise `name` is ignored, and the person must have a role in an account of which you are an admin; an operator can add anybody. A person who already has another role in the account gets 409: use `setAccountRole` to change it.',
        querystring: NoQuery,
        body: NewMemberBody,
        response: { 201: TheMember, ...errorResponses('RCS_REFUSED', ...BODY_ERRORS) },
      },
      config,
    },
    async (request, reply) => {
      const { email, name, role } = request.body
      const { accountId } = callerOf(request)
      const { person, isNew } = await ensurePerson(pool, { email, name })
      if (!isNew) requireKnown(request, person)
      requireNoOtherRole(person, accountId, role)
      const changed = await setRole(pool, person.personId, accountId, role as AccountRole)
      request.change = { before: isNew ? null : roleEntry(person, accountId), after: roleEntry(changed, accountId) }
      return await reply.code(201).send(toMember(changed, accountId))
    },
  )

  app.post(
    '/people/:personId/link',
    {
      schema: {
        operationId: 'createAccountPersonLink',
        tags,
        summary: 'Make a one-time link with which a person of the account sets a password; earlier links end',
        params: PersonPath,
        querystring: NoQuery,
        body: NoBody,
        response: {
          201: { ...LinkBody, description: 'The link. It is shown only this once.' },
          ...errorResponses('RCS_NOT_FOUND', 'RCS_REFUSED', ...BODY_ERRORS),
        },
      },
      config: { ...config, needsSession: true, audit: 'result' },
    },
    async (request, reply) => {
      const person = await findMember(pool, request, request.params.personId)
      requireNoOtherRights(request, person)
      requireEnabled(person)
      const accountIds = adminOf(request).isOperator ? undefined : person.roles.map(({ accountId }) => accountId)
      return await reply.code(201).send(await createLink(pool, person.personId, accountIds))
    },
  )
}

const changeRoutes: Routes = async (app, { pool }) => {
  app.put(
    '/people/:personId',
    {
      schema: {
        operationId: 'setAccountRole',
        tags,
        summary: 'Change the role of a person in an account',
        params: PersonPath,
        querystring: NoQuery,
        body: RoleBody,
        response: { 200: TheMember, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config,
    },
    async (request) => {
      const { accountId } = callerOf(request)
      const { personId } = await findMember(pool, request, request.params.personId)
      return toMember(await setRole(pool, personId, accountId, request.body.role as AccountRole), accountId)
    },
  )

  app.delete(
    '/people/:personId',
    {
      schema: {
        operationId: 'removeAccountPerson',
        tags,
        summary: 'Remove the role of a person in an account',
        params: PersonPath,
        querystring: NoQuery,
        response: {
          204: Type.Null({ description: 'The person has no role in the account.' }),
          ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS),
        },
      },
      config,
    },
    async (request, reply) => {
      const { personId } = await findMember(pool, request, request.params.personId)
      await removeRole(pool, personId, callerOf(request).accountId)
      return await reply.code(204).send(null)
    },
  )
}
