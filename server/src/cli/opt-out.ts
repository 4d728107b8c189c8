import { Command } from 'commander'
import type { Pool } from '../db/pool.ts'
import { type ChangedOptOuts, changeOptOut, findOptOuts, isOptedOut, listOptOuts, type OptOut } from '../replies/opt-outs.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { printPages } from './pages.ts'
import { phoneArgument } from './phone.ts'
import { quantity } from './terminal.ts'

function inWords({ accountId, agentId, phone, optedOut, block }: OptOut): string {
  const gets = optedOut ? (block ? 'no messages' : 'no campaigns') : 'campaigns again'
  return `${phone} gets ${gets} from the agent ${agentId} of account ${accountId}.`
}

const list = readingCommand('list', "show the recipients who opted out of an account's campaigns")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    await withDatabase((pool) => printPages(listOptOuts(pool, accountId), options, OPT_OUTS))
  })

// Agent ids can be any length, so they come last.
const OPT_OUTS = {
  columns: ['PHONE', 'BLOCKED', 'BY', 'SINCE', 'AGENT'],
  widths: [16, 7, 11, 24],
  cells: ({ phone, block, source, changedAt, agentId }: OptOut) => [phone, block ? 'yes' : 'no', source, changedAt.toISOString(), agentId],
}

type Options = { json?: boolean; yes?: boolean; agent?: string; block?: boolean }
type Concerned = { accountId: number; agentId: string | undefined; phone: string }
type Change = { pool: Pool; options: Options; concerned: Concerned; command: Command }

function changeCommand(command: Command, change: (request: Change) => Promise<OptOut[]>): Command {
  return command
    .argument('<account-id>', 'the account', accountIdArgument)
    .argument('<phone>', 'the number, with its country code', phoneArgument)
    .option('--agent <agent-id>', 'one agent; by default all agents of the account, also agents that are assigned later', textArgument(200))
    .action(async (accountId: number, phone: string, options: Options, self: Command) => {
      const concerned = { accountId, agentId: options.agent, phone }
      const changed = await withDatabase((pool) => change({ pool, options, concerned, command: self }))
      const [one] = changed
      if (options.agent !== undefined && one !== undefined) report(options, one, inWords)
      else report(options, changed, (optOuts) => (optOuts.length > 0 ? optOuts.map(inWords) : `Account ${accountId} has no agents yet.`))
    })
}

async function change({ pool, concerned, command }: Change, change: (db: Pool) => Promise<ChangedOptOuts>): Promise<OptOut[]> {
  const { accountId, agentId, phone } = concerned
  const subject = [phone, agentId].filter(Boolean).join(' ')
  return (await audited(pool, command, { accountId, subject, change, entry: (changed) => changed })).after
}

const add = changeCommand(
  changingCommand('add', 'opt a recipient out of campaigns', 'putOptOut').option('--block', 'stop single messages to the recipient, too'),
  (request) => change(request, (db) => changeOptOut(db, request.concerned, true, request.options.block)),
)

const remove = changeCommand(
  confirmedCommand('remove', 'send campaigns again to a recipient who asked for them; ends a block, too', 'deleteOptOut'),
  async (request) => {
    const { pool, options, concerned } = request
    const found = (await findOptOuts(pool, concerned)).filter(({ optedOut }) => optedOut)
    // A number that is not opted out is refused without asking.
    if (found.length > 0 || (await isOptedOut(pool, concerned))) await confirm(options, removalInWords(concerned, found))
    return await change(request, (db) => changeOptOut(db, concerned, false))
  },
)

function removalInWords({ accountId, phone }: Concerned, found: OptOut[]): string {
  const [first, ...others] = found
  if (first === undefined) return `end the opt-out of 1 recipient, ${phone}, from all agents that account ${accountId} gets later`
  const agents = others.length === 0 ? `the agent ${first.agentId}` : quantity(found.length, 'agent')
  const since = found.map(
    ({ source, block, changedAt }) => `${block ? 'was blocked' : 'opted out'} at ${changedAt.toISOString()} (by ${source})`,
  )
  const what = found.some(({ block }) => block) ? 'messages' : 'campaigns'
  return `let ${agents} of account ${accountId} send ${what} again to 1 recipient, ${phone}, who ${[...new Set(since)].join(', ')}`
}

export const optOutCommand = new Command('opt-out')
  .description('recipients who opted out of campaigns, by RCS and by SMS, or are blocked')
  .addCommand(list)
  .addCommand(add)
  .addCommand(remove)
