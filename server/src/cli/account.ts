import { Command } from 'commander'
import { type Account, createAccount, listAccounts, MODULES, setModules } from '../accounts/accounts.ts'
import { accountIdArgument, listArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

const modules = listArgument(MODULES, 0)

function inWords({ accountId, name, modules }: Account): string {
  return `Account ${accountId} (${name}) has ${modules.length > 0 ? `the modules ${modules.join(', ')}` : 'no modules'}.`
}

const create = reportingCommand('create', 'make an account')
  .argument('<name>', 'what people call it', textArgument(200))
  .option('--modules <list>', 'what it may use, separated by commas', modules, [...MODULES])
  .action(async (name: string, options) => {
    report(options, await withDatabase((pool) => createAccount(pool, name, options.modules)), inWords)
  })

const list = reportingCommand('list', 'show all accounts').action(async (options) => {
  const accounts = await withDatabase((pool) => listAccounts(pool))
  report(options, accounts, () =>
    table(
      ['ID', 'NAME', 'MODULES'],
      accounts.map((account) => [account.accountId, account.name, account.modules]),
    ),
  )
})

const change = reportingCommand('modules', 'set which modules an account may use')
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<list>', 'rcs, sms or both, separated by a comma', modules)
  .action(async (accountId: number, list, options) => {
    report(options, await withDatabase((pool) => setModules(pool, accountId, list)), inWords)
  })

export const accountCommand = new Command('account')
  .description('accounts and their modules')
  .addCommand(create)
  .addCommand(list)
  .addCommand(change)
