import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { onlyAccount } from '../audit/record.ts'
import type { Pool } from '../db/pool.ts'
import { createLink, type Link, requireEnabled } from '../people/links.ts'
import {
  changePerson,
  createPerson,
  findPerson,
  listPeople,
  type Person,
  type PersonChange,
  removeRole,
  roleEntry,
  setRole,
} from '../people/people.ts'
import { ACCOUNT_ROLES, type AccountRole } from '../people/roles.ts'
import { endSessions, listSessions } from '../people/sessions.ts'
import { audited } from './audited.ts'
import {
  accountIdArgument,
  accountIdsArgument,
  type CommandConfig,
  changingCommand,
  readingCommand,
  report,
  textArgument,
  withDatabase,
} from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { consoleBase, setupLink } from './setup-link.ts'
import { quantity, table } from './terminal.ts'

const MAX_EMAIL_CHARACTERS = 254
const emailText = textArgument(MAX_EMAIL_CHARACTERS)

function emailArgument(value: string): string {
  if (!/^\S+@\S+$/.test(emailText(value))) throw new InvalidArgumentError('It must be an e-mail address, such as anna@example.com.')
  return value
}

const email = ['<email>', 'their e-mail address', emailArgument] as const

function rolesOf({ isOperator, roles }: Person): string[] {
  return isOperator ? ['an operator'] : roles.map(({ accountId, role }) => `${role} of account ${accountId}`)
}

function inWords(person: Person): string {
  const roles = rolesOf(person)
  const has = roles.length > 0 ? `is ${new Intl.ListFormat('en').format(roles)}` : 'has no role, so they see nothing'
  const disabled = person.disabledAt === undefined ? '' : ` They have been disabled since ${person.disabledAt.toISOString()}.`
  return `${person.name} (${person.email}) ${has}.${disabled}`
}

type Linked = Person & { link: string; linkExpiresAt: Date }

const linked = (person: Person, { token, expiresAt }: Link, config: CommandConfig): Linked => ({
  ...person,
  link: setupLink(consoleBase(config), token),
  linkExpiresAt: expiresAt,
})

function linkInWords({ email, link, linkExpiresAt }: Linked): string[] {
  return [
    `Link for ${email} to set a password: ${link}`,
    `It works once, until ${linkExpiresAt.toISOString()}, and is shown only this once.`,
  ]
}

type CreateOptions = { json?: boolean; name: string; operator?: boolean; role?: AccountRole; account?: number[] }

const create = changingCommand('create', 'add a person, and print a one-time link with which they set a password', 'createPerson')
  .argument(...email)
  .requiredOption('--name <name>', 'their name', textArgument(200))
  .addOption(new Option('--operator', 'they may do everything, in all accounts').conflicts(['role', 'account']))
  .addOption(new Option('--role <role>', 'their role in the accounts of --account').choices(ACCOUNT_ROLES))
  .option('--account <list>', 'ids of accounts, separated by commas', accountIdsArgument)
  .action(async (address: string, options: CreateOptions, command: Command) => {
    const { name, operator = false, role, account: accountIds = [] } = options
    if ((role === undefined) !== (accountIds.length === 0)) command.error('error: --role and --account belong together')
    const created = await withDatabase(async (pool, config) => {
      const change = async (db: Pool) => {
        let person = await createPerson(db, { email: address, name, isOperator: operator })
        for (const accountId of accountIds) person = await setRole(db, person.personId, accountId, role as AccountRole)
        return { person, link: await createLink(db, person.personId) }
      }
      const entry = ({ person }: { person: Person }) => ({ subject: person.personId, ...onlyAccount(accountIds), after: person })
      const { person, link } = await audited(pool, command, { change, entry })
      return linked(person, link, config)
    })
    report(options, created, () => [inWords(created), ...linkInWords(created)])
  })

const list = readingCommand('list', 'show all people, their roles, and whether they have set a password').action(async (options) => {
  const people = await withDatabase((pool) => listPeople(pool))
  const rows = people.map((person) => {
    const roles = person.isOperator ? ['operator'] : person.roles.map(({ accountId, role }) => `${accountId}:${role}`)
    return [person.email, person.name, roles.join(',') || '-', person.hasPassword ? 'set' : 'not set', person.createdAt, person.disabledAt]
  })
  report(options, people, () => table(['EMAIL', 'NAME', 'ROLES', 'PASSWORD', 'CREATED', 'DISABLED'], rows))
})

/** Changes a person who exists. */
async function changed(pool: Pool, command: Command, { personId }: Person, change: PersonChange): Promise<Person> {
  const before = (db: Pool) => findPerson(db, { personId })
  return await audited(pool, command, { subject: personId, before, change: (db) => changePerson(db, personId, change) })
}

/** The last operator can neither be disabled nor lose the role. */
async function isLastOperator(pool: Pool, { personId }: Person): Promise<boolean> {
  const operators = (await listPeople(pool)).filter(({ isOperator, disabledAt }) => isOperator && disabledAt === undefined)
  return operators.length === 1 && operators[0]?.personId === personId
}

const disable = confirmedCommand('disable', 'sign a person out everywhere, and refuse them until they are enabled', 'changePerson')
  .argument(...email)
  .action(async (address: string, options, command: Command) => {
    const person = await withDatabase(async (pool) => {
      const found = await findPerson(pool, { email: address })
      // Disabling a disabled person changes nothing, and the last operator is refused without asking.
      if (found.disabledAt === undefined && !(await isLastOperator(pool, found))) {
        const sessions = quantity((await listSessions(pool, found.personId)).length, 'session ends', 'sessions end')
        const effect = `${sessions} at once, and they can't sign in until they are enabled; tokens of programs stay valid`
        await confirm(options, `disable ${found.email} (${found.name}): ${effect}`)
      }
      return await changed(pool, command, found, { isDisabled: true })
    })
    report(options, person, inWords)
  })

const sessions = readingCommand('sessions', 'show the sessions of a person, and from where each was opened')
  .argument(...email)
  .action(async (address: string, options) => {
    const listed = await withDatabase(async (pool) => listSessions(pool, (await findPerson(pool, { email: address })).personId))
    const rows = listed.map((session) => [session.sessionId, session.createdAt, session.lastUsedAt, session.address, session.userAgent])
    report(options, listed, () => table(['ID', 'CREATED', 'LAST USED', 'ADDRESS', 'BROWSER'], rows))
  })

type SignedOut = { personId: number; email: string; sessionsEnded: number }

const signOut = changingCommand('sign-out', 'end all sessions of a person, who can sign in again', 'endPersonSession')
  .argument(...email)
  .action(async (address: string, options, command: Command) => {
    const signedOut = await withDatabase(async (pool) => {
      const { personId, email } = await findPerson(pool, { email: address })
      const change = async (db: Pool) => ({ personId, email, sessionsEnded: await endSessions(db, personId) })
      const entry = ({ sessionsEnded }: SignedOut) => ({ isChanged: sessionsEnded > 0 })
      return await audited(pool, command, { subject: personId, change, entry })
    })
    const ended = ({ email, sessionsEnded }: SignedOut) => `${email}: ${quantity(sessionsEnded, 'session has', 'sessions have')} ended.`
    report(options, signedOut, ended)
  })

const enable = changingCommand('enable', 'let a disabled person sign in again', 'changePerson')
  .argument(...email)
  .action(async (address: string, options, command: Command) => {
    const person = await withDatabase(async (pool) =>
      changed(pool, command, await findPerson(pool, { email: address }), { isDisabled: false }),
    )
    report(options, person, inWords)
  })

const link = changingCommand('link', 'print a new one-time link to set a password; earlier links end', 'createPersonLink')
  .argument(...email)
  .action(async (address: string, options, command: Command) => {
    const person = await withDatabase(async (pool, config) => {
      const found = await findPerson(pool, { email: address })
      requireEnabled(found)
      const { personId } = found
      return linked(found, await audited(pool, command, { subject: personId, change: (db) => createLink(db, personId) }), config)
    })
    report(options, person, linkInWords)
  })

const role = changingCommand('role', 'set what a person may do in an account', 'setPersonRole', 'removePersonRole')
  .argument(...email)
  .argument('<account-id>', 'the account', accountIdArgument)
  .addArgument(new Argument('<role>', 'admin: everything; viewer: read, with masked numbers').choices([...ACCOUNT_ROLES, 'none']))
  .action(async (address: string, accountId: number, wanted: AccountRole | 'none', options, command: Command) => {
    const person = await withDatabase(async (pool) => {
      const { personId } = await findPerson(pool, { email: address })
      const isRemoval = wanted === 'none'
      return await audited(pool, command, {
        action: isRemoval ? 'removePersonRole' : 'setPersonRole',
        accountId,
        subject: personId,
        before: async (db) => roleEntry(await findPerson(db, { personId }), accountId),
        change: (db) => (isRemoval ? removeRole(db, personId, accountId) : setRole(db, personId, accountId, wanted)),
        entry: (changed) => ({ after: roleEntry(changed, accountId) }),
      })
    })
    report(options, person, inWords)
  })

const operator = confirmedCommand(
  'operator',
  'make a person an operator, who may do everything in all accounts, or end that',
  'changePerson',
)
  .argument(...email)
  .addArgument(new Argument('<yes-or-no>', 'whether the person is an operator').choices(['yes', 'no']))
  .action(async (address: string, answer: 'yes' | 'no', options, command: Command) => {
    const isOperator = answer === 'yes'
    const person = await withDatabase(async (pool) => {
      const found = await findPerson(pool, { email: address })
      const effect = isOperator
        ? `make ${found.email} (${found.name}) an operator, who may do everything in all accounts and change other people`
        : `end the operator role of ${found.email} (${found.name}) at once; they keep ${quantity(found.roles.length, 'role')} in single accounts`
      // If nothing changes, or the last operator would be lost, there is nothing to confirm.
      if (found.isOperator !== isOperator && (isOperator || !(await isLastOperator(pool, found)))) await confirm(options, effect)
      return await changed(pool, command, found, { isOperator })
    })
    report(options, person, inWords)
  })

export const userCommand = new Command('user')
  .description('people who may sign in, and what they may do')
  .addCommand(create)
  .addCommand(list)
  .addCommand(link)
  .addCommand(role)
  .addCommand(operator)
  .addCommand(sessions)
  .addCommand(signOut)
  .addCommand(disable)
  .addCommand(enable)
