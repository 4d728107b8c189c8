import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import { listQuery, listResponses } from '../http/list-schemas.ts'
import { createLink, requireEnabled } from '../people/links.ts'
import {
  changePerson,
  createPerson,
  findPerson,
  PEOPLE_LIST,
  type Person,
  readPeoplePage,
  removeRole,
  roleEntry,
  setRole,
} from '../people/people.ts'
import { NoBody, NoQuery, refTo } from '../schemas.ts'
import { requireSession } from './guard.ts'
import {
  LinkBody,
  NewPersonBody,
  PEOPLE_FILTERS,
  PEOPLE_TAG,
  PersonBody,
  PersonChangeBody,
  PersonPath,
  PersonRolePath,
  RoleBody,
} from './people-schemas.ts'

const tags = [PEOPLE_TAG.name]
const ThePerson = refTo(PersonBody, { description: 'The person.' })
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
/** Changes of people need the password again. */
const config = { role: 'operator', needsPassword: true } as const

/** A token expires. If it could make an operator, its rights would outlive it. */
function requireSessionFor(request: FastifyRequest, { isOperator }: { isOperator?: boolean }): void {
  if (isOperator) requireSession(request)
}

type Routes = FastifyPluginAsyncTypebox<{ pool: Pool }>

/** For operators: all people. */
export const peopleRoutes: Routes = async (app, options) => {
  app.addSchema(PersonBody)
  await app.register(readRoutes, options)
  await app.register(changeRoutes, options)
  await app.register(roleRoutes, options)
}

const readRoutes: Routes = async (app, { pool }) => {
  app.get(
    '/people',
    {
      schema: {
        operationId: 'listPeople',
        tags,
        summary: 'List all people',
        querystring: listQuery(PEOPLE_LIST, PEOPLE_FILTERS),
        response: listResponses(refTo(PersonBody), 'A page of people.'),
      },
      config: { role: 'operator' },
    },
    async (request) => await readPeoplePage(pool, request.query),
  )

  app.get(
    '/people/:personId',
    {
      schema: {
        operationId: 'readPerson',
        tags,
        summary: 'Read a person',
        params: PersonPath,
        querystring: NoQuery,
        response: { 200: ThePerson, ...errorResponses('RCS_NOT_FOUND') },
      },
      config: { role: 'operator' },
    },
    async (request) => await findPerson(pool, request.params),
  )
}

const changeRoutes: Routes = async (app, { pool }) => {
  app.post(
    '/people',
    {
      schema: {
        operationId: 'createPerson',
        tags,
        summary: 'Add a person, who then needs a link to set a password',
        description: 'A token cannot add an operator.',
        querystring: NoQuery,
        body: NewPersonBody,
        response: { 201: ThePerson, ...errorResponses('RCS_REFUSED', ...BODY_ERRORS) },
      },
      config,
    },
    async (request, reply) => {
      requireSessionFor(request, request.body)
      return await reply.code(201).send(await createPerson(pool, request.body))
    },
  )

  app.patch(
    '/people/:personId',
    {
      schema: {
        operationId: 'changePerson',
        tags,
        summary: 'Change the name of a person, whether they are an operator, or whether they are disabled',
        description:
          'A disabled person is signed out everywhere. The last operator cannot be disabled, and remains an operator. A token cannot make a person an operator.',
        params: PersonPath,
        querystring: NoQuery,
        body: PersonChangeBody,
        response: { 200: ThePerson, ...errorResponses('RCS_NOT_FOUND', 'RCS_REFUSED', ...BODY_ERRORS) },
      },
      config,
    },
    async (request) => {
      requireSessionFor(request, request.body)
      return await changePerson(pool, request.params.personId, request.body)
    },
  )

  app.post(
    '/people/:personId/link',
    {
      schema: {
        operationId: 'createPersonLink',
        tags,
        summary: 'Make a one-time link with which the person sets a password; earlier links end',
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
      const person = await findPerson(pool, request.params)
      requireEnabled(person)
      return await reply.code(201).send(await createLink(pool, person.personId))
    },
  )
}

const roleRoutes: Routes = async (app, { pool }) => {
  async function changed(request: FastifyRequest, change: (personId: number, accountId: number) => Promise<Person>): Promise<Person> {
    const { personId, roleAccountId } = request.params as Static<typeof PersonRolePath>
    const before = roleEntry(await findPerson(pool, { personId }), roleAccountId)
    const person = await change(personId, roleAccountId)
    request.change = { before, after: roleEntry(person, roleAccountId) }
    return person
  }

  app.put(
    '/people/:personId/roles/:roleAccountId',
    {
      schema: {
        operationId: 'setPersonRole',
        tags,
        summary: 'Give a person a role in an account',
        params: PersonRolePath,
        querystring: NoQuery,
        body: RoleBody,
        response: { 200: ThePerson, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config,
    },
    async (request) => {
      const { role } = request.body
      return await changed(request, (personId, accountId) => setRole(pool, personId, accountId, role))
    },
  )

  app.delete(
    '/people/:personId/roles/:roleAccountId',
    {
      schema: {
        operationId: 'removePersonRole',
        tags,
        summary: 'Remove the role of a person in an account',
        params: PersonRolePath,
        querystring: NoQuery,
        response: { 200: ThePerson, ...errorResponses('RCS_NOT_FOUND', ...BODY_ERRORS) },
      },
      config,
    },
    async (request) => await changed(request, (personId, accountId) => removeRole(pool, personId, accountId)),
  )
}
