import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addManners } from './manners.ts'

// The help lists the commands in this order.
const COMMANDS = new Map<string, () => Promise<Command>>([
  ['serve', async () => (await import('./serve.ts')).serveCommand],
  ['config', async () => (await import('./config.ts')).configCommand],
  ['migrate', async () => (await import('./migrate.ts')).migrateCommand],
  ['doctor', async () => (await import('./doctor.ts')).doctorCommand],
  ['user', async () => (await import('./user.ts')).userCommand],
  ['token', async () => (await import('./token.ts')).tokenCommand],
  ['audit', async () => (await import('./audit.ts')).auditCommand],
  ['account', async () => (await import('./account.ts')).accountCommand],
  ['key', async () => (await import('./key.ts')).keyCommand],
  ['agent', async () => (await import('./agent.ts')).agentCommand],
  ['send', async () => (await import('./send.ts')).sendCommand],
  ['message', async () => (await import('./message.ts')).messageCommand],
  ['campaign', async () => (await import('./campaign.ts')).campaignCommand],
  ['segment', async () => (await import('./segment.ts')).segmentCommand],
  ['webhook', async () => (await import('./webhook.ts')).webhookCommand],
  ['listen', async () => (await import('./listen.ts')).listenCommand],
  ['encryption', async () => (await import('./encryption.ts')).encryptionCommand],
  ['auto-reply', async () => (await import('./auto-reply.ts')).autoReplyCommand],
  ['opt-out', async () => (await import('./opt-out.ts')).optOutCommand],
  ['person', async () => (await import('./person.ts')).personCommand],
])

/** Other names of commands. */
const ALIASES = new Map([['group', 'segment']])

/** Loads only the named command, or all commands if there is none of that name. Loading all takes three times as long as loading one. */
export async function createProgram(name = ''): Promise<Command> {
  const program = new Command('herald')
    .description('A self-hosted RCS messaging service. Settings come from the environment; .env.example lists them.')
    .version(packageJson.version)
  const load = COMMANDS.get(ALIASES.get(name) ?? name)
  for (const command of await Promise.all((load === undefined ? [...COMMANDS.values()] : [load]).map((each) => each()))) {
    program.addCommand(command)
  }
  addManners(program)
  return program
}
