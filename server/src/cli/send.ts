import { setTimeout as sleep } from 'node:timers/promises'
import { findAccount } from '../accounts/accounts.ts'
import { listActiveAgents } from '../agents/agents.ts'
import { TEXT_MAX_LENGTH } from '../content/limits.ts'
import type { Pool } from '../db/pool.ts'
import { EXIT, noSuch, OperatorError, wrongUsage } from '../errors.ts'
import { createAcceptor } from '../messages/accept.ts'
import { createAnnouncer } from '../messages/announce.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import { readTemplate } from '../templates/templates.ts'
import { accountIdArgument, asOperatorError, idArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { nearest } from './nearest.ts'
import { phoneArgument } from './phone.ts'
import { statusLine } from './terminal.ts'

const POLL_MS = 200

type SendOptions = { json?: boolean; agent?: string; template?: number; reference?: string; wait?: boolean }

/** Sends through the database, like every command, so it needs no key. The service delivers the message as soon as it runs. */
export const sendCommand = reportingCommand('send', 'send a message from the terminal')
  .argument('<account-id>', 'the account that sends', accountIdArgument)
  .argument('<phone>', 'the recipient', phoneArgument)
  .argument('[text]', 'the text; or use --template', textArgument(TEXT_MAX_LENGTH, { isMultiline: true }))
  .option('--template <template-id>', 'send this template instead of a text', idArgument)
  .option('--agent <agent-id>', 'the agent; required if the account has several', textArgument(200))
  .option('--reference <text>', 'your reference (clientReferenceId)', textArgument(255))
  .option('--wait', 'follow the message until it is READ, FAILED or EXPIRED; exits with 1 unless it is READ')
  .action(async (accountId: number, phone: string, text: string | undefined, options: SendOptions) => {
    await withDatabase(async (pool) => {
      const messageId = await send(pool, accountId, phone, text, options)
      const message = options.wait ? await follow(pool, accountId, messageId) : await readMessage(pool, accountId, messageId)
      report(options, message, inWords)
      if (options.wait && message.status !== 'READ') process.exitCode = EXIT.refused
    })
  })

function inWords({ messageId, recipient, status, failure }: Message): string {
  return `Message ${messageId} to ${recipient} is ${status}${failure === undefined ? '' : `: ${failure.description}`}.`.replace(
    /\.\.$/,
    '.',
  )
}

/** The arguments are checked as the API checks its fields, and the account as the API checks its caller. */
async function send(pool: Pool, accountId: number, phone: string, text: string | undefined, options: SendOptions): Promise<string> {
  const { template, reference } = options
  if ((text === undefined) === (template === undefined)) throw wrongUsage('Give either a text or --template.')
  await requireRights(pool, accountId)
  const agentId = await agentOf(pool, accountId, options.agent)
  const content =
    template === undefined
      ? { message: { inline: { type: 'MESSAGE' as const, content: text as string } } }
      : { message: { templateId: template }, basic: await isBasic(pool, accountId, template) }
  const accept = createAcceptor(pool, createAnnouncer(pool))
  const { messageIds } = await accept({
    ...content,
    accountId,
    agentId,
    recipients: [phone],
    test: false,
    ...(reference !== undefined && { clientReferenceId: reference }),
  }).catch((error) =>
    asOperatorError(error, {
      RCS_AGENT_NOT_FOUND: () => noSuch(`Account ${accountId} has no active agent ${agentId}.`),
      RCS_TEMPLATE_NOT_FOUND: () => noTemplate(accountId, template),
      RCS_TEMPLATE_NOT_APPROVED: () => new OperatorError(`Template ${template} is not approved; only approved templates can be sent.`),
    }),
  )
  return messageIds[0] as string
}

async function requireRights(pool: Pool, accountId: number): Promise<void> {
  const { suspendedAt, modules } = await findAccount(pool, accountId)
  if (suspendedAt !== undefined) {
    throw new OperatorError(`Account ${accountId} is suspended, so nothing of it is sent; "herald account resume ${accountId}" ends that.`)
  }
  if (!modules.includes('rcs')) {
    const all = ['rcs', ...modules].join(',')
    throw new OperatorError(`Account ${accountId} does not have the module rcs; "herald account modules ${accountId} ${all}" adds it.`)
  }
}

/** The named agent or, without a name, the only one. */
async function agentOf(pool: Pool, accountId: number, wanted: string | undefined): Promise<string> {
  const known = (await listActiveAgents(pool, accountId)).map(({ agentId }) => agentId)
  const [first, ...others] = known
  if (first === undefined) throw noSuch(`Account ${accountId} has no active agent: "herald agent assign" adds one.`)
  if (wanted === undefined) {
    if (others.length > 0) throw wrongUsage(`Name one of the account's agents by --agent: ${known.join(', ')}.`)
    return first
  }
  if (known.includes(wanted)) return wanted
  const meant = nearest(wanted, known)
  throw noSuch(
    `Account ${accountId} has no active agent ${wanted}. ${meant === undefined ? `It has ${known.join(', ')}.` : `Did you mean ${meant}?`}`,
  )
}

/** A message must be basic if, and only if, its template is. */
async function isBasic(pool: Pool, accountId: number, template: number): Promise<boolean> {
  const reading = readTemplate(pool, accountId, template)
  const found = await reading.catch((error) => asOperatorError(error, { RCS_TEMPLATE_NOT_FOUND: () => noTemplate(accountId, template) }))
  return found.basic
}

const noTemplate = (accountId: number, template: number | undefined) => noSuch(`Account ${accountId} has no template ${template}.`)

/** A delivered message may never be read, so Ctrl-C ends the wait. */
async function follow(pool: Pool, accountId: number, messageId: string): Promise<Message> {
  const status = statusLine({ each: true })
  let shown = ''
  for (;;) {
    const message = await readMessage(pool, accountId, messageId)
    if (message.status !== shown) {
      shown = message.status
      status.show(`${new Date().toISOString()} ${shown}`)
      status.keep()
    }
    if (['READ', 'FAILED', 'EXPIRED'].includes(shown)) return message
    await sleep(POLL_MS)
  }
}
