import { Command, InvalidArgumentError } from 'commander'
import {
  type Account,
  countWaiting,
  createAccount,
  findAccount,
  listAccounts,
  MAX_QUARANTINE_HOURS,
  MODULES,
  type Module,
  renameAccount,
  resumeAccount,
  setCampaignWindow,
  setModules,
  setQuarantine,
  suspendAccount,
} from '../accounts/accounts.ts'
import { countLiveKeys } from '../accounts/keys.ts'
import type { Pool } from '../db/pool.ts'
import { wrongUsage } from '../errors.ts'
import { readTimeZone } from '../time-zones.ts'
import { DAYS, type Day, FROM, RECIPIENT, TO, windowInWords } from '../windows/window.ts'
import { quotaCommand } from './account-quota.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, listArgument, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { quantity, table } from './terminal.ts'

const modules = listArgument(MODULES, 0)

function inWords({ accountId, name, modules, quarantineHours, campaignWindow, suspendedAt }: Account): string {
  const has = modules.length > 0 ? `the modules ${modules.join(', ')}` : 'no modules'
  const suspended = suspendedAt === undefined ? '' : ` It has been suspended since ${suspendedAt.toISOString()}.`
  const window = campaignWindow === undefined ? '' : ` Its campaigns are sent ${windowInWords(campaignWindow)}.`
  return `Account ${accountId} (${name}) has ${has} and a quarantine of ${quarantineHours} h.${window}${suspended}`
}

function hoursArgument(value: string): number {
  if (!/^\d{1,4}$/.test(value) || Number(value) > MAX_QUARANTINE_HOURS) {
    throw new InvalidArgumentError(`It must be a whole number of hours from 0 to ${MAX_QUARANTINE_HOURS}.`)
  }
  return Number(value)
}

type HoursOfDay = { from: string; to: string }
type WindowOptions = { json?: boolean; days?: Day[]; timeZone?: string }

function hoursOfDayArgument(value: string): HoursOfDay | 'none' {
  if (value === 'none') return value
  const [from = '', to = '', more] = value.split('-')
  if (more !== undefined || !FROM.test(from) || !TO.test(to) || from === to) {
    throw new InvalidArgumentError('It must be two different times of day, such as 09:00-20:00, or none.')
  }
  return { from, to }
}

function timeZoneArgument(value: string): string {
  if (value !== RECIPIENT && !readTimeZone(value)) {
    throw new InvalidArgumentError(`It must be ${RECIPIENT}, or the IANA name of a time zone, such as Europe/Warsaw.`)
  }
  return value
}

const create = changingCommand('create', 'create an account', 'createAccount')
  .argument('<name>', 'its name', textArgument(200))
  .option('--modules <list>', 'modules that it may use, separated by commas', modules, [...MODULES])
  .action(async (name: string, options, command: Command) => {
    const created = await withDatabase((pool) =>
      audited(pool, command, {
        change: (db) => createAccount(db, name, options.modules),
        entry: ({ accountId }) => ({ accountId, subject: accountId }),
      }),
    )
    report(options, created, inWords)
  })

const list = readingCommand('list', 'show all accounts').action(async (options) => {
  const accounts = await withDatabase((pool) => listAccounts(pool))
  report(options, accounts, () =>
    table(
      ['ID', 'NAME', 'MODULES', 'QUARANTINE', 'SUSPENDED'],
      accounts.map(({ accountId, name, modules, quarantineHours, suspendedAt }) => {
        return [accountId, name, modules.join(',') || '-', `${quarantineHours} h`, suspendedAt]
      }),
    ),
  )
})

const change = confirmedCommand('modules', 'set which modules an account may use; asks before it removes one', 'changeAccount')
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<list>', 'rcs, sms or both, separated by a comma', modules)
  .action(async (accountId: number, list: Module[], options, command: Command) => {
    const account = await withDatabase(async (pool) => {
      const effect = await removedModules(pool, accountId, list)
      if (effect !== undefined) await confirm(options, effect)
      return await changed(pool, command, accountId, (db) => setModules(db, accountId, list))
    })
    report(options, account, inWords)
  })

/** Changes an account that exists. */
async function changed(pool: Pool, command: Command, accountId: number, change: (db: Pool) => Promise<Account>): Promise<Account> {
  return await audited(pool, command, { accountId, before: (db) => findAccount(db, accountId), change })
}

/** Describes the effect of removing modules. Returns undefined if the account keeps all of its modules. */
async function removedModules(pool: Pool, accountId: number, kept: Module[]): Promise<string | undefined> {
  const { name, modules } = await findAccount(pool, accountId)
  const removed = modules.filter((module) => !kept.includes(module))
  if (removed.length === 0) return undefined
  const keys = quantity(await countLiveKeys(pool, accountId), 'live key')
  return `remove ${removed.join(' and ')} from account ${accountId} (${name}): requests with its ${keys} get 403 if they need ${removed.join(' or ')}`
}

const quarantine = changingCommand(
  'quarantine',
  'set the minimum hours between two SMS to a recipient, for SMS with "quarantine": true',
  'changeAccount',
)
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<hours>', `from 0 to ${MAX_QUARANTINE_HOURS}`, hoursArgument)
  .action(async (accountId: number, hours: number, options, command: Command) => {
    const change = (db: Pool) => setQuarantine(db, accountId, hours)
    report(options, await withDatabase((pool) => changed(pool, command, accountId, change)), inWords)
  })

const campaignWindow = changingCommand(
  'campaign-window',
  'set when campaigns that do not say it themselves may be sent',
  'setCampaignWindow',
)
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<window>', 'such as 09:00-20:00; or none', hoursOfDayArgument)
  .option('--days <list>', 'the days on which it begins, separated by commas; by default all', listArgument(DAYS, 1))
  .option('--time-zone <name>', `the name of a time zone, such as Europe/Warsaw; by default ${RECIPIENT}`, timeZoneArgument)
  .action(async (accountId: number, hours: HoursOfDay | 'none', options: WindowOptions, command: Command) => {
    const { days, timeZone } = options
    if (hours === 'none' && (days ?? timeZone) !== undefined) throw wrongUsage('--days and --time-zone need a window.')
    const window = hours === 'none' ? undefined : { ...hours, ...(days && { days }), ...(timeZone && { timeZone }) }
    const change = (db: Pool) => setCampaignWindow(db, accountId, window)
    report(options, await withDatabase((pool) => changed(pool, command, accountId, change)), inWords)
  })

const rename = changingCommand('rename', 'give an account another name', 'changeAccount')
  .argument('<account-id>', 'its id', accountIdArgument)
  .argument('<name>', 'its new name', textArgument(200))
  .action(async (accountId: number, name: string, options, command: Command) => {
    const change = (db: Pool) => renameAccount(db, accountId, name)
    report(options, await withDatabase((pool) => changed(pool, command, accountId, change)), inWords)
  })

const suspend = confirmedCommand(
  'suspend',
  'refuse the requests of an account, and send nothing of it, until it is resumed',
  'suspendAccount',
)
  .argument('<account-id>', 'its id', accountIdArgument)
  .action(async (accountId: number, options, command: Command) => {
    const suspended = await withDatabase(async (pool) => {
      const { name, suspendedAt } = await findAccount(pool, accountId)
      // Suspending a suspended account changes nothing.
      if (suspendedAt === undefined) await confirm(options, `suspend account ${accountId} (${name}): ${await heldUp(pool, accountId)}`)
      return await changed(pool, command, accountId, (db) => suspendAccount(db, accountId))
    })
    report(options, suspended, inWords)
  })

async function heldUp(pool: Pool, accountId: number): Promise<string> {
  const { messages, sms, campaigns } = await countWaiting(pool, accountId)
  const keys = quantity(await countLiveKeys(pool, accountId), 'live key')
  const waiting = `${quantity(messages, 'queued message')} and ${quantity(sms, 'SMS', 'SMS')} wait and may expire`
  return `requests with its ${keys} get 403, ${waiting}, and ${quantity(campaigns, 'running campaign stops', 'running campaigns stop')} until it is resumed`
}

const resume = changingCommand('resume', 'end the suspension of an account; what has not expired is sent', 'resumeAccount')
  .argument('<account-id>', 'its id', accountIdArgument)
  .action(async (accountId: number, options, command: Command) => {
    const change = (db: Pool) => resumeAccount(db, accountId)
    report(options, await withDatabase((pool) => changed(pool, command, accountId, change)), inWords)
  })

export const accountCommand = new Command('account')
  .description('accounts: their names, modules, quarantine, quotas, delivery window and suspension')
  .addCommand(create)
  .addCommand(list)
  .addCommand(change)
  .addCommand(quarantine)
  .addCommand(quotaCommand)
  .addCommand(campaignWindow)
  .addCommand(rename)
  .addCommand(suspend)
  .addCommand(resume)
