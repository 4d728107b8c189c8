import { Command, Option } from 'commander'
import { requireAccount } from '../accounts/accounts.ts'
import { findAgent } from '../agents/agents.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { cancelMessage, isCancelled, refuseLateCancel } from '../delivery/cancel.ts'
import { noSuch, OperatorError, wrongUsage } from '../errors.ts'
import { UUID } from '../ids.ts'
import { listMessages } from '../messages/list.ts'
import type { MessageFilters } from '../messages/list-plan.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import { STATUSES } from '../messages/states.ts'
import { readTimeline, type TimelineItem } from '../timeline/timeline.ts'
import { audited } from './audited.ts'
import {
  accountIdArgument,
  asOperatorError,
  listArgument,
  readingCommand,
  report,
  textArgument,
  timeArgument,
  withDatabase,
} from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { phoneArgument } from './phone.ts'
import { table } from './terminal.ts'

const MAX_FOUND = 100
const id = ['<message-id>', 'its id', textArgument(100)] as const

type FindOptions = {
  json?: boolean
  account?: number
  reference?: string
  campaign?: string
  agent?: string
  status?: string[]
  from?: Date
  to?: Date
  test?: boolean
}
type Found = Message & { accountId: number }

const find = readingCommand('find', `find messages by number, reference, campaign, agent, status or time: the newest ${MAX_FOUND}`)
  .argument('[phone]', 'the number of the recipient; without it, --account is required', phoneArgument)
  .option('--account <account-id>', 'of this account only', accountIdArgument)
  .option('--reference <text>', 'with this clientReferenceId', textArgument(255))
  .option('--campaign <campaign-id>', 'of this campaign', textArgument(100))
  .option('--agent <agent-id>', 'of this agent', textArgument(200))
  .addOption(
    new Option('--status <list>', `one or more of ${STATUSES.join(', ')}, separated by commas`).argParser(listArgument(STATUSES, 1)),
  )
  .option('--from <time>', 'accepted at this time or later', timeArgument)
  .option('--to <time>', 'accepted before this time', timeArgument)
  .option('--test', 'test messages instead of all others')
  .action(async (phone: string | undefined, options: FindOptions) => {
    const found = await withDatabase((pool) => findMessages(pool, phone, options))
    const rows = found.map(({ messageId, accountId, acceptedAt, recipient, status, failure, smsFallback }) => [
      ...[messageId, accountId, acceptedAt, recipient, status, failure?.reason, smsFallback?.status],
    ])
    report(options, found, () => table(['ID', 'ACCOUNT', 'ACCEPTED', 'RECIPIENT', 'STATUS', 'REASON', 'SMS'], rows))
  })

async function findMessages(db: Executor, phone: string | undefined, options: FindOptions): Promise<Found[]> {
  const { account, reference, campaign, agent, status, from, to, test } = options
  await checkFilters(db, phone, options)
  const filters: MessageFilters = {
    ...(phone !== undefined && { recipient: phone }),
    ...(reference !== undefined && { clientReferenceId: reference }),
    ...(campaign !== undefined && { campaignId: campaign }),
    ...(agent !== undefined && { agentId: agent }),
    ...(status !== undefined && { status: status.join(',') }),
    ...(test && { test }),
    ...(from !== undefined && { acceptedFrom: from.toISOString() }),
    ...(to !== undefined && { acceptedTo: to.toISOString() }),
  }
  const accounts = account === undefined ? await accountsOf(db, phone as string) : [account]
  const found: Found[] = []
  for (const accountId of accounts) found.push(...(await readAll(db, accountId, filters)))
  return found.sort((a, b) => (a.messageId < b.messageId ? 1 : -1)).slice(0, MAX_FOUND)
}

async function checkFilters(db: Executor, phone: string | undefined, { account, campaign, agent, from, to }: FindOptions): Promise<void> {
  if (phone === undefined && account === undefined) {
    throw wrongUsage('Name a number or an account: "herald message find +48500100200" or "herald message find --account 1".')
  }
  if (from !== undefined && to !== undefined && to < from) throw wrongUsage('--to must not be before --from.')
  if (account !== undefined) await requireAccount(db, account)
  if (campaign !== undefined) await requireCampaign(db, campaign, account)
  if (agent !== undefined) await findAgent(db, agent)
}

async function requireCampaign(db: Executor, id: string, accountId: number | undefined): Promise<void> {
  const owner = accountId === undefined ? 'There is' : `Account ${accountId} has`
  const { rowCount } = UUID.test(id)
    ? await db.query('select from campaigns where id = $1 and ($2::int is null or account_id = $2)', [id, accountId ?? null])
    : { rowCount: 0 }
  if (rowCount === 0) throw noSuch(`${owner} no campaign ${id}; see "herald campaign list ${accountId ?? 'ACCOUNT_ID'}".`)
}

async function accountsOf(db: Executor, phone: string): Promise<number[]> {
  const { rows } = await db.query<{ id: number }>('select distinct account_id as id from messages where recipient = $1', [phone])
  return rows.map((row) => row.id)
}

/** Reads pages until there are enough messages. A page may be empty although others follow. */
async function readAll(db: Executor, accountId: number, filters: MessageFilters): Promise<Found[]> {
  const found: Found[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof listMessages>> = await listMessages(db, accountId, {
      ...filters,
      limit: MAX_FOUND,
      ...(cursor !== null && { cursor }),
    })
    found.push(...page.items.map((message) => ({ ...message, accountId })))
    cursor = page.nextCursor
  } while (cursor !== null && found.length < MAX_FOUND)
  return found
}

const show = readingCommand('show', 'show a message and everything that happened to it')
  .argument(...id)
  .action(async (messageId: string, options) => {
    const shown = await withDatabase(async (pool) => {
      const accountId = await accountOf(pool, messageId)
      return { accountId, ...(await readMessage(pool, accountId, messageId)), timeline: await readTimeline(pool, accountId, messageId) }
    })
    report(options, shown, ({ timeline, ...message }) => [...summaryOf(message), '', ...timelineOf(timeline)])
  })

function summaryOf({
  messageId,
  accountId,
  recipient,
  status,
  agentId,
  clientReferenceId,
  campaignId,
  failure,
  smsFallback,
}: Found): string[] {
  const facts = [
    `Message ${messageId} of account ${accountId}, from ${agentId} to ${recipient}, is ${status}.`,
    failure && `${failure.reason}: ${failure.description}`,
    smsFallback && `Its SMS is ${smsFallback.status}${smsFallback.reason === undefined ? '' : ` (${smsFallback.reason})`}.`,
    clientReferenceId && `Reference: ${clientReferenceId}`,
    campaignId && `Campaign: ${campaignId}`,
  ]
  return facts.filter((fact) => typeof fact === 'string')
}

function timelineOf(items: TimelineItem[]): string[] {
  const rows = items.map(({ occurredAt, step, reason, description, data }) => [occurredAt, step, reason, inWords(description, data)])
  return table(['TIME', 'STEP', 'REASON', ''], rows)
}

/** Returns the description of a step, with the data that it does not mention. */
function inWords(description: string, { response, rules }: Record<string, unknown>): string {
  if (typeof response === 'string') return `${description} It said: ${response}`
  if (!Array.isArray(rules)) return description
  return `${description} (${rules.map(({ rule, result }) => `${rule} ${result}`).join(', ')})`
}

const cancel = confirmedCommand('cancel', 'cancel a message that has not been sent', 'cancelMessage')
  .argument(...id)
  .action(async (messageId: string, options, command: Command) => {
    const message = await withDatabase(async (pool) => {
      const accountId = await accountOf(pool, messageId)
      return await cancelOwn({ pool, command, options }, accountId, messageId).catch((error) =>
        asOperatorError(error, { RCS_MESSAGE_STATE: (reason) => new OperatorError(`The message ${reason}.`) }),
      )
    })
    report(options, message, () => `Message ${messageId} is cancelled: it will not be sent.`)
  })

type Cancel = { pool: Pool; command: Command; options: { yes?: boolean } }

async function cancelOwn({ pool, command, options }: Cancel, accountId: number, messageId: string): Promise<Message> {
  const found = await readMessage(pool, accountId, messageId)
  refuseLateCancel(found)
  // Cancelling a cancelled message changes nothing.
  if (!isCancelled(found)) await confirm(options, `cancel the message ${messageId} to ${found.recipient}, and its SMS`)
  return await audited(pool, command, {
    accountId,
    subject: messageId,
    before: (db) => readMessage(db, accountId, messageId),
    change: (db) => cancelMessage(db, accountId, messageId),
  })
}

async function accountOf(db: Executor, messageId: string): Promise<number> {
  const { rows } = UUID.test(messageId)
    ? await db.query<{ accountId: number }>('select account_id as "accountId" from messages where id = $1', [messageId])
    : { rows: [] }
  if (rows[0] === undefined) throw noSuch(`There is no message ${messageId}. "herald message find" finds messages by number.`)
  return rows[0].accountId
}

export const messageCommand = new Command('message')
  .description('find, show and cancel messages')
  .addCommand(find)
  .addCommand(show)
  .addCommand(cancel)
