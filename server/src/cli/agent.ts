import { Command, InvalidArgumentError, Option } from 'commander'
import { type Agent, activateAgent, assignAgent, BILLING_TYPES, createAgent, listAgents } from '../agents/agents.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { table } from './terminal.ts'

function agentIdArgument(value: string): string {
  if (!/^[!-~]{1,200}$/.test(value)) {
    throw new InvalidArgumentError('An agent id has 1 to 200 printable ASCII characters and no space.')
  }
  return value
}

const agentId = ['<agent-id>', 'its id in the RCS agent system', agentIdArgument] as const
const accountId = ['<account-id>', 'the account', accountIdArgument] as const

const create = reportingCommand('create', 'register an agent')
  .argument(...agentId)
  .requiredOption('--name <name>', 'technical name', textArgument(200))
  .addOption(new Option('--billing-type <type>', 'how its messages are billed').choices(BILLING_TYPES).makeOptionMandatory())
  .option('--carrier <carrier>', 'the carrier that its messages go through', textArgument(100), 'simulator')
  .action(async (id: string, options) => {
    const agent = { agentId: id, name: options.name, billingType: options.billingType, carrier: options.carrier }
    report(options, await withDatabase((pool) => createAgent(pool, agent)), () => `Agent ${id} is registered; assign it to an account.`)
  })

const assign = reportingCommand('assign', 'let an account use an agent')
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options) => {
    report(options, await withDatabase((pool) => assignAgent(pool, id, account)), (agent) => `${describe(agent)} for account ${account}.`)
  })

const activate = reportingCommand('activate', 'activate an agent that an account has deactivated')
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options) => {
    report(options, await withDatabase((pool) => activateAgent(pool, id, account)), (agent) => `${describe(agent)} for account ${account}.`)
  })

function describe({ agentId, active }: Agent): string {
  return `Agent ${agentId} is ${active ? 'active' : 'assigned but inactive'}`
}

const list = reportingCommand('list', 'show all agents and the accounts they are assigned to').action(async (options) => {
  const agents = await withDatabase((pool) => listAgents(pool))
  const rows = agents.map(({ accounts, ...agent }) => {
    const assigned = accounts.map((account) => `${account.accountId}${account.active ? '' : ' (inactive)'}`)
    return [agent.agentId, agent.name, agent.billingType, agent.carrier, assigned.join(', ') || '-']
  })
  report(options, agents, () => table(['ID', 'NAME', 'BILLING', 'CARRIER', 'ACCOUNTS'], rows))
})

export const agentCommand = new Command('agent')
  .description('RCS agents and their assignment to accounts')
  .addCommand(create)
  .addCommand(assign)
  .addCommand(activate)
  .addCommand(list)
