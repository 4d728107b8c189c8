import { Command } from 'commander'
import type { Pool } from '../db/pool.ts'
import { changeOptOut, findOptOuts, listOptOuts, type OptOut } from '../replies/opt-outs.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { printPages } from './pages.ts'
import { phoneArgument } from './phone.ts'
import { quantity } from './terminal.ts'

function inWords({ accountId, agentId, phone, optedOut, block }: OptOut): string {
  const gets = optedOut ? (block ? 'no messages' : 'no campaigns') : 'campaigns again'
  return `${phone} gets ${gets} from the agent ${agentId} of account ${accountId}.`
}

const list = reportingCommand('list', "show the recipients who opted out of an account's campaigns")
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
type Change = { pool: Pool; options: Options; concerned: { accountId: number; agentId: string | undefined; phone: string } }

function changeCommand(command: Command, change: (request: Change) => Promise<OptOut[]>): Command {
  return command
    .argument('<account-id>', 'the account', accountIdArgument)
    .argument('<phone>', 'the number, with its country code', phoneArgument)
    .option('--agent <agent-id>', 'one agent; by default all agents of the account, also agents that are assigned later', textArgument(200))
    .action(async (accountId: number, phone: string, options: Options) => {
      const concerned = { accountId, agentId: options.agent, phone }
      const changed = await withDatabase((pool) => change({ pool, options, concerned }))
      const [one] = changed
      if (options.agent !== undefined && one !== undefined) report(options, one, inWords)
      else report(options, changed, (optOuts) => (optOuts.length > 0 ? optOuts.map(inWords) : `Account ${accountId} has no agents yet.`))
    })
}

const add = changeCommand(
  reportingCommand('add', 'opt a recipient out of campaigns').option('--block', 'stop single messages to the recipient, too'),
  ({ pool, options, concerned }) => changeOptOut(pool, concerned, true, options.block),
)

const remove = changeCommand(
  confirmedCommand('remove', 'send campaigns again to a recipient who asked for them; ends a block, too'),
  async ({ pool, options, concerned }) => {
    const found = (await findOptOuts(pool, concerned)).filter(({ optedOut }) => optedOut)
    // A number that is not opted out is refused without asking.
    if (found.length > 0) await confirm(options, removalInWords(found as [OptOut, ...OptOut[]]))
    return await changeOptOut(pool, concerned, false)
  },
)

function removalInWords(found: [OptOut, ...OptOut[]]): string {
  const { accountId, phone } = found[0]
  const agents = found.length === 1 ? `the agent ${found[0].agentId}` : quantity(found.length, 'agent')
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
