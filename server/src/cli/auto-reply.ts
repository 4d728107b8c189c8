import { Command } from 'commander'
import { type AutoReply, addAutoReply, findAutoReply, listAutoReplies, removeAutoReply } from '../replies/auto-replies.ts'
import { accountIdArgument, idArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { table } from './terminal.ts'

function inWords({ autoReplyId, agentId, keyword, templateId, accountId }: AutoReply): string {
  return `The automatic reply ${autoReplyId} sends template ${templateId} to recipients who write "${keyword}" to the agent ${agentId} of account ${accountId}.`
}

const add = reportingCommand('add', 'reply to a keyword with a template')
  .argument('<account-id>', 'the account that replies', accountIdArgument)
  .requiredOption('--agent <agent-id>', 'the agent that recipients write to', textArgument(200))
  .requiredOption('--keyword <word>', 'one or more words; case and accents are ignored', textArgument(200))
  .requiredOption('--template <id>', 'an approved template of the account', idArgument)
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

const remove = confirmedCommand('remove', 'remove an automatic reply')
  .argument('<auto-reply-id>', 'its id', idArgument)
  .action(async (id: number, options) => {
    const removed = await withDatabase(async (pool) => {
      const { accountId, agentId, keyword, templateId } = await findAutoReply(pool, id)
      const described = `which replies to "${keyword}" with template ${templateId} for the agent ${agentId} of account ${accountId}`
      await confirm(options, `remove 1 automatic reply, ${id}, ${described}`)
      return await removeAutoReply(pool, id)
    })
    report(options, removed, () => `The automatic reply ${id} is removed.`)
  })

export const autoReplyCommand = new Command('auto-reply')
  .description('automatic replies to the keywords that recipients write')
  .addCommand(add)
  .addCommand(list)
  .addCommand(remove)
