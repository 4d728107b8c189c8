import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { accountCommand } from './account.ts'
import { agentCommand } from './agent.ts'
import { autoReplyCommand } from './auto-reply.ts'
import { campaignCommand } from './campaign.ts'
import { groupCommand } from './group.ts'
import { keyCommand } from './key.ts'
import { migrateCommand } from './migrate.ts'
import { optOutCommand } from './opt-out.ts'
import { serveCommand } from './serve.ts'
import { webhookCommand } from './webhook.ts'

export const program = new Command('herald')
  .description('A self-hosted RCS messaging service. Settings come from the environment; .env.example lists them.')
  .version(packageJson.version)
  .addCommand(serveCommand)
  .addCommand(migrateCommand)
  .addCommand(accountCommand)
  .addCommand(keyCommand)
  .addCommand(agentCommand)
  .addCommand(campaignCommand)
  .addCommand(groupCommand)
  .addCommand(autoReplyCommand)
  .addCommand(optOutCommand)
  .addCommand(webhookCommand)
