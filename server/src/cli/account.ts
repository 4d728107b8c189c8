import { Command, InvalidArgumentError } from 'commander'
import {
  type Account,
  createAccount,
  listAccounts,
  MAX_QUARANTINE_HOURS,
  MODULES,
  setModules,
  setQuarantine,
} from '../accounts/accounts.ts'
import { accountIdArgument, listArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

const modules = listArgument(MODULES, 0)

function inWords({ accountId, name, modules, quarantineHours }: Account): string {
  const has = modules.length > 0 ? `the modules ${modules.join(', ')}` : 'no modules'
  return `Account ${accountId} (${name}) has ${has} and a quarantine of ${quarantineHours} h.`
}

function hoursArgument(value: string): number {
  if (!/^\d{1,4}$/.test(value) || Number(value) > MAX_QUARANTINE_HOURS) {
    throw new InvalidArgumentError(`It is a whole number of hours, from 0 to ${MAX_QUARANTINE_HOURS}.`)
  }
  return Number(value)
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
      ['ID', 'NAME', 'MODULES', 'QUARANTINE'],
      accounts.map((account) => [account.accountId, account.name, account.modules.join(',') || '-', `${account.quarantineHours} h`]),
    ),
  )
})

const change = reportingCommand('modules', 'set which modules an account may use')
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<list>', 'rcs, sms or both, separated by a comma', modules)
  .action(async (accountId: number, list, options) => {
    report(options, await withDatabase((pool) => setModules(pool, accountId, list)), inWords)
  })

const quarantine = reportingCommand('quarantine', 'set how long who had an SMS gets no other one, where its sender asks for that')
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<hours>', `from 0 to ${MAX_QUARANTINE_HOURS}`, hoursArgument)
  .action(async (accountId: number, hours: number, options) => {
    report(options, await withDatabase((pool) => setQuarantine(pool, accountId, hours)), inWords)
  })

export const accountCommand = new Command('account')
  .description('accounts, their modules and their quarantine')
  .addCommand(create)
  .addCommand(list)
  .addCommand(change)
  .addCommand(quarantine)
