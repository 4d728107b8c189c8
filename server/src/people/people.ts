import pg from 'pg'
import { requireAccount } from '../accounts/accounts.ts'
import type { Executor } from '../db/pool.ts'
import { noSuch, OperatorError } from '../errors.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'
import type { AccountRole } from './roles.ts'
import { endSessions } from './sessions.ts'

export type Person = {
  personId: number
  email: string
  name: string
  isOperator: boolean
  /** The roles in single accounts. An operator needs none. */
  roles: { accountId: number; role: AccountRole }[]
  /** Whether the person has set a password. */
  hasPassword: boolean
  createdAt: Date
  disabledAt?: Date
}

type Row = Omit<Person, 'disabledAt'> & { disabledAt: Date | null }

const PERSON = `p.id as "personId", p.email, p.name, p.is_operator as "isOperator", p.password_hash is not null as "hasPassword",
  p.created_at as "createdAt", p.disabled_at as "disabledAt", (
    select coalesce(json_agg(json_build_object('accountId', r.account_id, 'role', r.role) order by r.account_id), '[]')
    from people_roles r where r.person_id = p.id
  ) as roles`

function toPerson({ disabledAt, ...row }: Row): Person {
  return disabledAt === null ? row : { ...row, disabledAt }
}

const UNIQUE_VIOLATION = '23505'

/** Whether the e-mail address of a new person belongs to another one. */
export const isTaken = (error: unknown) => error instanceof pg.DatabaseError && error.code === UNIQUE_VIOLATION

export async function createPerson(db: Executor, { email, name, isOperator = false }: NewPerson): Promise<Person> {
  const values = [normalizedEmail(email), name, isOperator]
  try {
    const { rows } = await db.query<Row>(
      `with p as (insert into people (email, name, is_operator) values ($1, $2, $3) returning *) select ${PERSON} from p`,
      values,
    )
    return toPerson(rows[0] as Row)
  } catch (error) {
    if (!isTaken(error)) throw error
    throw new OperatorError(`A person with the e-mail address ${values[0]} already exists.`)
  }
}

/** The person with this e-mail address, who is created if nobody has it. */
export async function ensurePerson(db: Executor, { email, name }: NewPerson): Promise<{ person: Person; isNew: boolean }> {
  const values = [normalizedEmail(email), name]
  const { rowCount } = await db.query('insert into people (email, name) values ($1, $2) on conflict (email) do nothing', values)
  return { person: await findPerson(db, { email }), isNew: rowCount === 1 }
}

type NewPerson = { email: string; name: string; isOperator?: boolean }

/** Mail servers treat addresses that differ only in case as one, and so do people. */
export function normalizedEmail(email: string): string {
  return email.trim().normalize('NFC').toLowerCase()
}

/** In SQL: whether there is an operator. It stays true: the last operator can be neither disabled nor demoted. */
export const HAS_OPERATOR = 'exists (select from people where is_operator and disabled_at is null)'

/** Whether there is an operator. There may be other people before: a command can create them. */
export async function isSetUp(db: Executor): Promise<boolean> {
  return (await db.query(`select where ${HAS_OPERATOR}`)).rowCount === 1
}

export const PEOPLE_LIST: ListDefinition<'email'> = {
  fields: { email: { column: 'p.email', type: 'text' } },
  id: 'email',
  defaultSort: 'email',
}

type PeopleFilters = { accountId?: number | undefined; search?: string | undefined }

/**
 * A text in lower case; and its letters in upper and in lower case, for `translate`. The function `lower` of a database whose locale is C changes
 * only the letters of English.
 */
function inAnyCase(text: string): [text: string, upper: string, lower: string] {
  // A letter such as ß has no other case of one letter.
  const pairs = [...new Set(text)].map((letter) => [letter.toUpperCase(), letter.toLowerCase()] as const)
  const single = pairs.filter(([upper, lower]) => [...upper].length === 1 && [...lower].length === 1)
  const lowerOf = new Map(single)
  const found = [...text].map((letter) => lowerOf.get(letter) ?? letter).join('')
  return [found, single.map(([upper]) => upper).join(''), single.map(([, lower]) => lower).join('')]
}

/** `accountId`: only people with a role in this account. `search`: only people whose name or e-mail address contains the text. */
export async function listPeople(
  db: Executor,
  { accountId, search }: PeopleFilters = {},
  read: PageRead = wholeList(PEOPLE_LIST),
): Promise<Person[]> {
  const { rows } = await db.query<Row>(
    `select ${PERSON} from people p
     where ($1::int is null or exists (select from people_roles r where r.person_id = p.id and r.account_id = $1))
       and ($3::text is null or position($3 in translate(p.name || ' ' || p.email, $4::text, $5::text)) > 0) and ${read.condition}
     order by ${read.orderBy} limit $2`,
    [accountId, read.fetch, ...(search === undefined ? [null, '', ''] : inAnyCase(search)), ...read.values],
  )
  return rows.map(toPerson)
}

export async function readPeoplePage(db: Executor, query: PageQuery & { search?: string }, accountId?: number): Promise<PageOf<Person>> {
  const page = readPage(PEOPLE_LIST, query, 6, `people ${accountId}`)
  return page.toBody(await listPeople(db, { accountId, search: query.search }, page))
}

export async function findPerson(db: Executor, who: { personId: number } | { email: string }): Promise<Person> {
  const [condition, value] = 'personId' in who ? ['p.id = $1', who.personId] : ['p.email = $1', normalizedEmail(who.email)]
  const { rows } = await db.query<Row>(`select ${PERSON} from people p where ${condition}`, [value])
  return toPerson(rows[0] ?? noSuchPerson(value as string | number))
}

function noSuchPerson(who: string | number): never {
  throw missing(`There is no person ${who}`, 'see "herald user list"')
}

export type PersonChange = { name?: string; isOperator?: boolean; isDisabled?: boolean }

/**
 * Changes a person, for every request that begins after the commit, on every node. Refuses to leave the installation without an operator: all
 * operators are locked first, so that two people cannot disable each other. A person who is enabled again is no longer linked to the OpenID
 * provider: the next sign-in there links them by their e-mail address.
 */
export async function changePerson(db: Executor, personId: number, change: PersonChange): Promise<Person> {
  const { name = null, isOperator = null, isDisabled = null } = change
  const { rows } = await db.query<Row>(
    `with operators as materialized (
       select id from people where is_operator and disabled_at is null order by id for update
     ), refused as (
       select 1 from operators where id = $1 and ($3 = false or $4) and (select count(*) from operators) = 1
     ), p as (
       update people set name = coalesce($2, name), is_operator = coalesce($3, is_operator),
         oidc_issuer = case when $4 = false and disabled_at is not null then null else oidc_issuer end,
         oidc_subject = case when $4 = false and disabled_at is not null then null else oidc_subject end,
         disabled_at = case when $4 then coalesce(disabled_at, now()) when $4 = false then null else disabled_at end
       where id = $1 and not exists (select from refused)
       returning *
     )
     select ${PERSON} from p`,
    [personId, name, isOperator, isDisabled],
  )
  if (isOperator) await endKnownPassword(db, personId)
  if (isDisabled && rows[0] !== undefined) {
    await endSessions(db, personId)
    await db.query('delete from people_links where person_id = $1', [personId])
  }
  if (rows[0] !== undefined) return isOperator ? await findPerson(db, { personId }) : toPerson(rows[0])
  const { email } = await findPerson(db, { personId })
  throw new OperatorError(`${email} is the last operator; make somebody else an operator first.`)
}

/** Whether the person `p` has rights beyond these accounts. False without accounts. */
export const hasRightsBeyond = (accountIds: string) =>
  `(${accountIds} is not null and (p.is_operator or exists (
    select from people_roles r where r.person_id = p.id and r.account_id <> all (${accountIds})
  )))`

/**
 * The admin who made a link may have used it, and know the password. So when the person gets rights beyond the accounts that they had then, the
 * password and the sessions end, and so does an unused link: otherwise the admin would get these rights, too. Call it in the transaction.
 */
export async function endKnownPassword(db: Executor, personId: number): Promise<void> {
  const { rowCount } = await db.query(
    `update people p set password_hash = null, password_account_ids = null where p.id = $1 and ${hasRightsBeyond('p.password_account_ids')}`,
    [personId],
  )
  if (rowCount === 1) await endSessions(db, personId)
  await db.query(
    `delete from people_links l using people p where p.id = $1 and l.person_id = p.id and ${hasRightsBeyond('l.account_ids')}`,
    [personId],
  )
}

/** Gives a person a role in an account, instead of the one they had there. */
export async function setRole(db: Executor, personId: number, accountId: number, role: AccountRole): Promise<Person> {
  await requireAccount(db, accountId)
  await findPerson(db, { personId })
  await db.query(
    `insert into people_roles (person_id, account_id, role) values ($1, $2, $3)
     on conflict (person_id, account_id) do update set role = excluded.role`,
    [personId, accountId, role],
  )
  await endKnownPassword(db, personId)
  return await findPerson(db, { personId })
}

export async function removeRole(db: Executor, personId: number, accountId: number): Promise<Person> {
  const { rowCount } = await db.query('delete from people_roles where person_id = $1 and account_id = $2', [personId, accountId])
  const person = await findPerson(db, { personId })
  if (rowCount === 0) throw noSuch(`${person.email} has no role in account ${accountId}.`)
  return person
}

/** What the entries of an account contain about a person. The admins of the account read them, so other accounts are left out. */
export function roleEntry({ personId, email, roles }: Person, accountId: number) {
  return { personId, email, role: roles.find((each) => each.accountId === accountId)?.role ?? null }
}
