import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { accountCommand } from './cli/account.ts'
import { agentCommand } from './cli/agent.ts'
import { autoReplyCommand } from './cli/auto-reply.ts'
import { campaignCommand } from './cli/campaign.ts'
import { groupCommand } from './cli/group.ts'
import { keyCommand } from './cli/key.ts'
import { migrateCommand } from './cli/migrate.ts'
import { optOutCommand } from './cli/opt-out.ts'
import { serveCommand } from './cli/serve.ts'
import { OperatorError } from './errors.ts'

const program = new Command('herald')
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

try {
  await program.parseAsync()
} catch (error) {
  // A mistake of the operator's gets its sentence; a fault of ours gets its stack.
  console.error(error instanceof OperatorError ? error.message : error)
  process.exitCode = 1
}
