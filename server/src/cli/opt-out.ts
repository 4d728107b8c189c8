import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command, InvalidArgumentError } from 'commander'
import type { Pool } from '../db/pool.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { printable } from '../printable.ts'
import { changeOptOut, findOptOut, listOptOuts, type OptOut, type OptOutKey } from '../replies/opt-outs.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { asText, tableLine } from './terminal.ts'

function phoneArgument(value: string): string {
  const phone = normalisePhoneNumber(value)
  if (phone === undefined) throw new InvalidArgumentError('It must be an international phone number, such as +48500100200.')
  return phone
}

function inWords({ accountId, agentId, phone, optedOut }: OptOut): string {
  return `${phone} gets ${optedOut ? 'no campaigns' : 'campaigns again'} from the agent ${agentId} of account ${accountId}.`
}

const list = reportingCommand('list', "show the recipients who opted out of an account's campaigns")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    await withDatabase(async (pool) => {
      const pages = listOptOuts(pool, accountId)
      // Each page is printed as it is read, since there can be millions of rows. The reader may close the pipe early, as in `| head`.
      await pipeline(Readable.from(options.json ? asJson(pages) : asTable(pages)), process.stdout, { end: false }).catch((error) => {
        if (error.code !== 'EPIPE') throw error
      })
    })
  })

async function* asJson(pages: AsyncIterable<OptOut[]>): AsyncGenerator<string> {
  let separator = '['
  for await (const page of pages) {
    yield `${separator}\n  ${page.map((optOut) => printable(JSON.stringify(optOut))).join(',\n  ')}`
    separator = ','
  }
  yield separator === '[' ? '[]\n' : '\n]\n'
}

// The width of the longest value of each column. Agent ids can be any length, so they come last.
const WIDTHS = [16, 11, 24]

async function* asTable(pages: AsyncIterable<OptOut[]>): AsyncGenerator<string> {
  let isEmpty = true
  for await (const page of pages) {
    const rows = page.map(({ phone, source, changedAt, agentId }) => [phone, source, changedAt.toISOString(), agentId])
    if (isEmpty) rows.unshift(['PHONE', 'BY', 'SINCE', 'AGENT'])
    isEmpty = false
    yield asText(rows.map((cells) => tableLine(cells, WIDTHS)))
  }
  if (isEmpty) yield asText('None.')
}

type Change = OptOutKey & { pool: Pool; options: { yes?: boolean } }

function changeCommand(command: Command, change: (request: Change) => Promise<OptOut>): Command {
  return command
    .argument('<account-id>', 'the account', accountIdArgument)
    .argument('<phone>', 'the number, with its country code', phoneArgument)
    .requiredOption('--agent <agent-id>', 'the agent that sends the campaigns', textArgument(200))
    .action(async (accountId: number, phone: string, options) => {
      report(options, await withDatabase((pool) => change({ pool, options, accountId, agentId: options.agent, phone })), inWords)
    })
}

const add = changeCommand(reportingCommand('add', 'opt a recipient out of campaigns'), ({ pool, options, ...key }) =>
  changeOptOut(pool, key, true),
)

const remove = changeCommand(
  confirmedCommand('remove', 'send campaigns again to a recipient who asked for them'),
  async ({ pool, options, ...key }) => {
    const found = await findOptOut(pool, key)
    // A number that is not opted out is refused without asking.
    if (found?.optedOut) await confirm(options, removalInWords(found))
    return await changeOptOut(pool, key, false)
  },
)

function removalInWords({ accountId, agentId, phone, source, changedAt }: OptOut): string {
  const since = `who opted out at ${changedAt.toISOString()} (by ${source})`
  return `let the agent ${agentId} of account ${accountId} send campaigns again to 1 recipient, ${phone}, ${since}`
}

export const optOutCommand = new Command('opt-out')
  .description('recipients who opted out of campaigns, by RCS and by SMS')
  .addCommand(list)
  .addCommand(add)
  .addCommand(remove)
