import { Command, Option } from 'commander'
import { noSuch, wrongUsage } from '../errors.ts'
import { ROLES, type Role } from '../people/roles.ts'
import { createToken, listTokens, revokeToken, type Token, tokenEntry } from '../people/tokens.ts'
import { audited } from './audited.ts'
import { accountIdsArgument, changingCommand, idArgument, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { expiryArgument } from './key-options.ts'
import { table } from './terminal.ts'

function described({ tokenId, name, role, accountIds }: Token): string {
  const accounts = accountIds.length === 0 ? 'all accounts' : `account ${accountIds.join(', ')}`
  return `${tokenId} (${name}), ${role} in ${accounts}`
}

type CreateOptions = { json?: boolean; role: Role; account?: number[]; expires: Date }

const create = changingCommand('create', 'create a token, with which a program uses /admin/v1', 'createToken')
  .argument('<name>', 'what it is for; the audit log names it', textArgument(200))
  .addOption(new Option('--role <role>', 'what it may do').choices(ROLES).makeOptionMandatory())
  .option('--account <list>', 'the accounts of an admin or a viewer, separated by commas', accountIdsArgument)
  .requiredOption('--expires <time>', 'when it expires: a time such as 2027-01-31T08:00:00Z, or 90d or 12h from now', expiryArgument)
  .action(async (name: string, { role, account: accountIds = [], expires: expiresAt, ...options }: CreateOptions, command: Command) => {
    if (role === 'operator' && accountIds.length > 0) throw wrongUsage('An operator has all accounts: leave out --account.')
    if (role !== 'operator' && accountIds.length === 0) throw wrongUsage(`Name the accounts of the ${role} by --account.`)
    const token = await withDatabase((pool) =>
      audited(pool, command, {
        change: (db) => createToken(db, { name, role, accountIds, expiresAt }),
        entry: tokenEntry,
      }),
    )
    report(options, token, () => [
      `Token ${described(token)}, until ${token.expiresAt.toISOString()}.`,
      `Secret: ${token.secret}`,
      'The secret is shown only this once. Send it as "Authorization: Bearer ho_…".',
    ])
  })

const list = readingCommand('list', 'show all tokens, without their secrets').action(async (options) => {
  const tokens = await withDatabase((pool) => listTokens(pool))
  const rows = tokens.map(({ tokenId, name, role, accountIds, ...token }) => {
    const { expiresAt, lastUsedAt, createdAt, revokedAt } = token
    return [tokenId, name, role, accountIds.join(',') || 'all', expiresAt, lastUsedAt ?? 'never', createdAt, revokedAt]
  })
  report(options, tokens, () => table(['ID', 'NAME', 'ROLE', 'ACCOUNTS', 'EXPIRES', 'LAST USED', 'CREATED', 'REVOKED'], rows))
})

const revoke = confirmedCommand('revoke', 'revoke a token for good', 'revokeToken')
  .argument('<token-id>', 'its id', idArgument)
  .action(async (tokenId: number, options, command: Command) => {
    const revoked = await withDatabase(async (pool) => {
      const find = async (db: typeof pool) => (await listTokens(db)).find((token) => token.tokenId === tokenId)
      const found = await find(pool)
      if (found === undefined) throw noSuch(`There is no token ${tokenId}; see "herald token list".`)
      // Revoking a revoked token changes nothing.
      if (found.revokedAt === null)
        await confirm(options, `revoke 1 token for good, ${described(found)}; requests with it are refused at once`)
      return await audited(pool, command, { subject: tokenId, before: find, change: (db) => revokeToken(db, tokenId), entry: tokenEntry })
    })
    report(options, revoked, () => `Token ${tokenId} is revoked.`)
  })

export const tokenCommand = new Command('token')
  .description('tokens with which programs administer Herald')
  .addCommand(create)
  .addCommand(list)
  .addCommand(revoke)
