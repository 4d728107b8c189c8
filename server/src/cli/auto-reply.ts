import { Command, InvalidArgumentError } from 'commander'
import { type AutoReply, addAutoReply, listAutoReplies, removeAutoReply } from '../replies/auto-replies.ts'
import { accountIdArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

function idArgument(value: string): number {
  if (!/^[1-9]\d{0,14}$/.test(value)) throw new InvalidArgumentError('An id is a whole number above 0.')
  return Number(value)
}

function inWords({ autoReplyId, agentId, keyword, templateId, accountId }: AutoReply): string {
  return `The automatic reply ${autoReplyId} answers "${keyword}", written to the agent ${agentId} of account ${accountId}, with template ${templateId}.`
}

const add = reportingCommand('add', 'answer who writes a word with a template')
  .argument('<account-id>', 'the account that answers', accountIdArgument)
  .requiredOption('--agent <agent-id>', 'the agent that it is written to', textArgument(200))
  .requiredOption('--keyword <word>', 'the word, or several; capitals and accents make no difference', textArgument(200))
  .requiredOption('--template <id>', "an approved template of the account's", idArgument)
  .action(async (accountId: number, options) => {
    const reply = { accountId, agentId: options.agent, keyword: options.keyword, templateId: options.template }
    report(options, await withDatabase((pool) => addAutoReply(pool, reply)), inWords)
  })

const list = reportingCommand('list', 'show the automatic replies')
  .argument('[account-id]', 'of this account only', accountIdArgument)
  .action(async (accountId: number | undefined, options) => {
    const replies = await withDatabase((pool) => listAutoReplies(pool, accountId))
    const rows = replies.map((reply) => [reply.autoReplyId, reply.accountId, reply.agentId, reply.keyword, reply.templateId])
    report(options, replies, () => table(['ID', 'ACCOUNT', 'AGENT', 'KEYWORD', 'TEMPLATE'], rows))
  })

const remove = reportingCommand('remove', 'end an automatic reply')
  .argument('<auto-reply-id>', 'its id', idArgument)
  .action(async (id: number, options) => {
    report(options, await withDatabase((pool) => removeAutoReply(pool, id)), () => `The automatic reply ${id} is removed.`)
  })

export const autoReplyCommand = new Command('auto-reply')
  .description('automatic replies to what recipients write')
  .addCommand(add)
  .addCommand(list)
  .addCommand(remove)
