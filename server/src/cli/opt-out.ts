import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command, InvalidArgumentError } from 'commander'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { changeOptOut, listOptOuts, type OptOut } from '../replies/opt-outs.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'

function phoneArgument(value: string): string {
  const phone = normalisePhoneNumber(value)
  if (phone === undefined) throw new InvalidArgumentError('It must be an international phone number, such as +48500100200.')
  return phone
}

function inWords({ accountId, agentId, phone, optedOut }: OptOut): string {
  return `${phone} gets ${optedOut ? 'no campaigns' : 'campaigns again'} from the agent ${agentId} of account ${accountId}.`
}

const list = reportingCommand('list', 'show who is opted out of what an account sends')
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    await withDatabase(async (pool) => {
      const pages = listOptOuts(pool, accountId)
      // As they are read: there can be millions. Nobody may want all of them, as in `| head`.
      await pipeline(Readable.from(options.json ? asJson(pages) : asTable(pages)), process.stdout, { end: false }).catch((error) => {
        if (error.code !== 'EPIPE') throw error
      })
    })
  })

async function* asJson(pages: AsyncIterable<OptOut[]>): AsyncGenerator<string> {
  let separator = '['
  for await (const page of pages) {
    yield `${separator}\n  ${page.map((optOut) => JSON.stringify(optOut)).join(',\n  ')}`
    separator = ','
  }
  yield separator === '[' ? '[]\n' : '\n]\n'
}

// The widest there are; agents' names, which have no such width, come last.
const WIDTHS = [16, 11, 24]

async function* asTable(pages: AsyncIterable<OptOut[]>): AsyncGenerator<string> {
  let isEmpty = true
  for await (const page of pages) {
    if (isEmpty) yield line(['PHONE', 'BY', 'SINCE', 'AGENT'])
    isEmpty = false
    yield page.map(({ phone, source, changedAt, agentId }) => line([phone, source, changedAt.toISOString(), agentId])).join('')
  }
  if (isEmpty) yield 'None.\n'
}

function line(cells: string[]): string {
  return `${cells.map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0)).join('  ')}\n`
}

function changeCommand(name: string, description: string, optedOut: boolean): Command {
  return reportingCommand(name, description)
    .argument('<account-id>', 'the account', accountIdArgument)
    .argument('<phone>', 'the number, with its country code', phoneArgument)
    .requiredOption('--agent <agent-id>', 'the agent whose messages it is about', textArgument(200))
    .action(async (accountId: number, phone: string, options) => {
      const key = { accountId, agentId: options.agent, phone }
      report(options, await withDatabase((pool) => changeOptOut(pool, key, optedOut)), inWords)
    })
}

export const optOutCommand = new Command('opt-out')
  .description('who wants no campaigns any more, by RCS and by SMS')
  .addCommand(list)
  .addCommand(changeCommand('add', 'send somebody no more campaigns', true))
  .addCommand(changeCommand('remove', 'send somebody campaigns again, who has asked for them', false))
