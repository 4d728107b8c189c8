import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { printError } from './terminal.ts'

// In the order in which the help lists them.
const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', async () => (await import('./serve.ts')).serveCommand],
  ['migrate', async () => (await import('./migrate.ts')).migrateCommand],
  ['account', async () => (await import('./account.ts')).accountCommand],
  ['key', async () => (await import('./key.ts')).keyCommand],
  ['agent', async () => (await import('./agent.ts')).agentCommand],
  ['campaign', async () => (await import('./campaign.ts')).campaignCommand],
  ['group', async () => (await import('./group.ts')).groupCommand],
  ['webhook', async () => (await import('./webhook.ts')).webhookCommand],
  ['encryption', async () => (await import('./encryption.ts')).encryptionCommand],
  ['auto-reply', async () => (await import('./auto-reply.ts')).autoReplyCommand],
  ['opt-out', async () => (await import('./opt-out.ts')).optOutCommand],
])

/** With the command that is asked for, or with all of them where it is none: loading all takes three times as long as one. */
export async function createProgram(asked = ''): Promise<Command> {
  const program = new Command('herald')
    .description('A self-hosted RCS messaging service. Settings come from the environment; .env.example lists them.')
    .version(packageJson.version)
  const load = COMMANDS.get(asked)
  for (const command of await Promise.all((load === undefined ? [...COMMANDS.values()] : [load]).map((each) => each()))) {
    program.addCommand(command)
  }
  escapeErrors(program)
  return program
}

/** Commander quotes arguments unescaped in its errors. Each command has its own setting for that. */
function escapeErrors(command: Command): void {
  command.configureOutput({ outputError: (message) => printError(message.trimEnd().split('\n')) })
  for (const each of command.commands) escapeErrors(each)
}
