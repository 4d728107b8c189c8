import { Command } from 'commander'
import { type AutoReply, addAutoReply, findAutoReply, listAutoReplies, removeAutoReply } from '../replies/auto-replies.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, idArgument, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { table } from './terminal.ts'

function inWords({ autoReplyId, agentId, keyword, templateId, accountId }: AutoReply): string {
  return `The automatic reply ${autoReplyId} sends template ${templateId} to recipients who write "${keyword}" to the agent ${agentId} of account ${accountId}.`
}

const add = changingCommand('add', 'reply to a keyword with a template', 'createAutoReply')
  .argument('<account-id>', 'the account that replies', accountIdArgument)
  .requiredOption('--agent <agent-id>', 'the agent that recipients write to', textArgument(200))
  .requiredOption('--keyword <word>', 'one or more words; case and accents are ignored', textArgument(200))
  .requiredOption('--template <id>', 'an approved template of the account', idArgument)
  .action(async (accountId: number, options, command: Command) => {
    const reply = { accountId, agentId: options.agent, keyword: options.keyword, templateId: options.template }
    const added = await withDatabase((pool) =>
      audited(pool, command, {
        accountId,
        change: (db) => addAutoReply(db, reply),
        entry: ({ autoReplyId }) => ({ subject: autoReplyId }),
      }),
    )
    report(options, added, inWords)
  })

const list = readingCommand('list', 'show the automatic replies')
  .argument('[account-id]', 'of this account only', accountIdArgument)
  .action(async (accountId: number | undefined, options) => {
    const replies = await withDatabase((pool) => listAutoReplies(pool, accountId))
    const rows = replies.map((reply) => [reply.autoReplyId, reply.accountId, reply.agentId, reply.keyword, reply.templateId])
    report(options, replies, () => table(['ID', 'ACCOUNT', 'AGENT', 'KEYWORD', 'TEMPLATE'], rows))
  })

const remove = confirmedCommand('remove', 'remove an automatic reply', 'deleteAutoReply')
  .argument('<auto-reply-id>', 'its id', idArgument)
  .action(async (id: number, options, command: Command) => {
    const removed = await withDatabase(async (pool) => {
      const { accountId, agentId, keyword, templateId } = await findAutoReply(pool, id)
      const described = `which replies to "${keyword}" with template ${templateId} for the agent ${agentId} of account ${accountId}`
      await confirm(options, `remove 1 automatic reply, ${id}, ${described}`)
      return await audited(pool, command, {
        accountId,
        subject: id,
        before: (db) => findAutoReply(db, id),
        change: (db) => removeAutoReply(db, id),
        entry: () => ({ after: null }),
      })
    })
    report(options, removed, () => `The automatic reply ${id} is removed.`)
  })

export const autoReplyCommand = new Command('auto-reply')
  .description('automatic replies to the keywords that recipients write')
  .addCommand(add)
  .addCommand(list)
  .addCommand(remove)
