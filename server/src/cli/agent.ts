import { Command, InvalidArgumentError, Option } from 'commander'
import { findAccount } from '../accounts/accounts.ts'
import {
  type Agent,
  type AgentRecord,
  activateAgent,
  assignAgent,
  BILLING_TYPES,
  changeAgent,
  countAgentUse,
  createAgent,
  findAgent,
  listAgents,
  MAX_COUNTED_USE,
  readAssignment,
  unassignAgent,
  updateAgent,
} from '../agents/agents.ts'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import { audited } from './audited.ts'
import { carrierNamed } from './carrier-name.ts'
import { accountIdArgument, changingCommand, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { quantity, table } from './terminal.ts'

function agentIdArgument(value: string): string {
  if (!/^[!-~]{1,200}$/.test(value)) {
    throw new InvalidArgumentError('An agent id has 1 to 200 printable ASCII characters and no space.')
  }
  return value
}

const agentId = ['<agent-id>', 'its id in the RCS agent system', agentIdArgument] as const
const accountId = ['<account-id>', 'the account', accountIdArgument] as const

const create = changingCommand('create', 'register an agent', 'createAgent')
  .argument(...agentId)
  .requiredOption('--name <name>', 'technical name', textArgument(200))
  .addOption(new Option('--billing-type <type>', 'how its messages are billed').choices(BILLING_TYPES).makeOptionMandatory())
  .option('--carrier <carrier>', 'the carrier that its messages go through; by default the only one', textArgument(100))
  .action(async (id: string, options, command: Command) => {
    const { name, billingType } = options
    const create = async (pool: Pool, config: Config) => {
      const carrier = await carrierNamed(options.carrier, config)
      return await audited(pool, command, { subject: id, change: (db) => createAgent(db, { agentId: id, name, billingType, carrier }) })
    }
    report(options, await withDatabase(create), () => `Agent ${id} is registered; assign it to an account.`)
  })

const assign = changingCommand('assign', 'let an account use an agent', 'assignAgent')
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options, command: Command) => {
    const assigned = await withDatabase((pool) =>
      audited(pool, command, {
        accountId: account,
        subject: id,
        before: (db) => readAssignment(db, id, account).catch(() => undefined),
        change: (db) => assignAgent(db, id, account),
      }),
    )
    report(options, assigned, (agent) => `${describe(agent)} for account ${account}.`)
  })

const activate = changingCommand('activate', 'activate an agent that was deactivated for an account', 'activateAgent')
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options, command: Command) => {
    const change = (db: Pool) => activateAgent(db, id, account)
    const agent = await withDatabase((pool) => changed(pool, command, id, account, change))
    report(options, agent, () => `${describe(agent)} for account ${account}.`)
  })

/** Changes an assignment that exists. */
async function changed<T>(pool: Pool, command: Command, id: string, account: number, change: (db: Pool) => Promise<T>): Promise<T> {
  return await audited(pool, command, { accountId: account, subject: id, before: (db) => readAssignment(db, id, account), change })
}

const deactivate = confirmedCommand(
  'deactivate',
  'let an account send nothing more with an agent; "agent activate" undoes it',
  'changeAgent',
)
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options, command: Command) => {
    const agent = await withDatabase(async (pool) => {
      const { active } = await readAssignment(pool, id, account)
      // Deactivating an inactive agent changes nothing.
      if (active) await confirm(options, `deactivate the agent ${id} for ${await endOf(pool, id, account)}`)
      const change = async (db: Pool) => (await changeAgent(db, account, id, { active: false })) ?? (await readAssignment(db, id, account))
      return await changed(pool, command, id, account, change)
    })
    report(options, agent, () => `${describe(agent)} for account ${account}.`)
  })

const unassign = confirmedCommand('unassign', 'end the assignment of an agent to an account; opt-outs are kept', 'unassignAgent')
  .argument(...agentId)
  .argument(...accountId)
  .action(async (id: string, account: number, options, command: Command) => {
    const agent = await withDatabase(async (pool) => {
      await readAssignment(pool, id, account)
      const { autoReplies, optOuts } = await countAgentUse(pool, id, account)
      const kept = `${quantity(autoReplies, 'automatic reply is', 'automatic replies are')} removed and ${counted(optOuts, 'opt-out is', 'opt-outs are')} kept`
      await confirm(options, `unassign the agent ${id} from ${await endOf(pool, id, account)}; ${kept}`)
      return await changed(pool, command, id, account, (db) => unassignAgent(db, id, account))
    })
    report(options, agent, () => `Agent ${id} is no longer assigned to account ${account}.`)
  })

/** A quantity that `countAgentUse` counted. */
const counted = (count: number, one: string, other: string) =>
  `${count === MAX_COUNTED_USE ? 'at least ' : ''}${quantity(count, one, other)}`

/** The account, and what happens to messages that an agent has not sent. */
async function endOf(pool: Pool, id: string, account: number): Promise<string> {
  const { name } = await findAccount(pool, account)
  const { messages, campaigns } = await countAgentUse(pool, id, account)
  const failing = `${counted(messages, 'queued message fails', 'queued messages fail')} with AGENT_INACTIVE`
  const further = `and so do further messages of ${quantity(campaigns, 'campaign that is', 'campaigns that are')} not over`
  return `account ${account} (${name}): ${failing}, ${further}; their SMS fallbacks are sent`
}

const update = confirmedCommand(
  'update',
  'change the name, billing type or carrier of an agent; asks before it changes the carrier',
  'updateAgent',
)
  .argument(...agentId)
  .option('--name <name>', 'technical name', textArgument(200))
  .addOption(new Option('--billing-type <type>', 'how its messages are billed').choices(BILLING_TYPES))
  .option('--carrier <carrier>', 'the carrier that its messages go through', textArgument(100))
  .action(async (id: string, options, command: Command) => {
    const { name, billingType, carrier } = options
    if (name === undefined && billingType === undefined && carrier === undefined) {
      command.error('error: --name, --billing-type or --carrier is required')
    }
    const agent = await withDatabase(async (pool, config) => {
      const before = await findAgent(pool, id)
      if (carrier !== undefined) await carrierNamed(carrier, config)
      if (carrier !== undefined && carrier !== before.carrier) await confirm(options, await moveOf(pool, before, carrier))
      const change = (db: Pool) => updateAgent(db, id, { name, billingType, carrier })
      return await audited(pool, command, { subject: id, before: (db) => findAgent(db, id), change })
    })
    report(options, agent, () => `Agent ${id} is ${agent.name}, billed as ${agent.billingType}, on the carrier ${agent.carrier}.`)
  })

/** Describes the effect of another carrier. Receipts count only from the agent's current carrier, and a network recognizes only its own messages. */
async function moveOf(pool: Pool, { agentId: id, carrier: from }: AgentRecord, to: string): Promise<string> {
  const queued = counted((await countAgentUse(pool, id)).messages, 'queued message goes', 'queued messages go')
  const lost = `receipts and replies of messages that went through ${from} are no longer recorded`
  return `move the agent ${id} from the carrier ${from} to ${to}: ${queued} through ${to}; a message that ${from} already has may arrive twice; ${lost}`
}

function describe({ agentId, active }: Agent): string {
  return `Agent ${agentId} is ${active ? 'active' : 'assigned but inactive'}`
}

const list = readingCommand('list', 'show all agents and the accounts they are assigned to').action(async (options) => {
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
  .addCommand(deactivate)
  .addCommand(unassign)
  .addCommand(update)
  .addCommand(list)
