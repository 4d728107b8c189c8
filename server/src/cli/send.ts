import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { findAccount } from '../accounts/accounts.ts'
import { listActiveAgents } from '../agents/agents.ts'
import { TEXT_MAX_LENGTH } from '../content/limits.ts'
import { type Variables, variablesOf } from '../content/variables.ts'
import type { Pool } from '../db/pool.ts'
import { EXIT, noSuch, OperatorError, wrongUsage } from '../errors.ts'
import { acceptedEntry, createAcceptor, type Submission } from '../messages/accept.ts'
import { createAnnouncer } from '../messages/announce.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import { LATEST_START_DAYS } from '../messages/schemas.ts'
import { readTemplate } from '../templates/templates.ts'
import { audited } from './audited.ts'
import {
  accountIdArgument,
  asOperatorError,
  changingCommand,
  idArgument,
  report,
  textArgument,
  timeArgument,
  withDatabase,
} from './command.ts'
import { nearest } from './nearest.ts'
import { phoneArgument } from './phone.ts'
import { printError, statusLine } from './terminal.ts'

const POLL_MS = 200
const DEFAULT_TIMEOUT_SECONDS = 300
const MAX_TIMEOUT_SECONDS = 86_400
/** A running service hands a message to the network within a second. */
const HINT_AFTER_MS = 3_000

type SendOptions = {
  json?: boolean
  agent?: string
  template?: number
  variable?: Variables
  reference?: string
  at?: Date
  wait?: boolean
  timeout?: number
}

function timeoutArgument(value: string): number {
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > MAX_TIMEOUT_SECONDS) {
    throw new InvalidArgumentError(`It must be a whole number of seconds from 1 to ${MAX_TIMEOUT_SECONDS}.`)
  }
  return Number(value)
}

/** Adds a value to those of the same option before. */
function variableArgument(value: string, before: Variables = {}): Variables {
  const [, name = '', text] = /^([^=]*)=(.*)$/s.exec(value) ?? []
  const variables = variablesOf({ ...before, [name]: text })
  if (variables === undefined) {
    throw new InvalidArgumentError(
      'Write name=value, at most 50 times. A name begins with a letter and has at most 64 letters, digits or _; a value has at most 1,000 characters.',
    )
  }
  return variables
}

/** Sends through the database, like every command, so it needs no key. The service delivers the message as soon as it runs. */
export const sendCommand = changingCommand('send', 'send a message from the terminal', 'sendMessage')
  .argument('<account-id>', 'the account that sends', accountIdArgument)
  .argument('<phone>', 'the recipient', phoneArgument)
  .argument('[text]', 'the text; or use --template', textArgument(TEXT_MAX_LENGTH, { isMultiline: true }))
  .option('--template <template-id>', 'send this template instead of a text', idArgument)
  .option('--variable <name=value>', 'the value of a variable of the template; repeat it for each variable', variableArgument)
  .option('--agent <agent-id>', 'the agent; required if the account has several', textArgument(200))
  .option('--reference <text>', 'your reference (clientReferenceId)', textArgument(255))
  .option('--at <time>', `when to send it, at most ${LATEST_START_DAYS} days ahead; by default now`, timeArgument)
  .option('--wait', 'follow the message until it is READ (exit status 0), FAILED or EXPIRED (1)')
  .option('--timeout <seconds>', `how long to wait before exiting with 5; by default ${DEFAULT_TIMEOUT_SECONDS}`, timeoutArgument)
  .action(async (accountId: number, phone: string, text: string | undefined, options: SendOptions, command: Command) => {
    const { wait = false, timeout = DEFAULT_TIMEOUT_SECONDS } = options
    if (options.timeout !== undefined && !wait) throw wrongUsage('--timeout needs --wait.')
    await withDatabase(async (pool) => {
      const submission = await compose(pool, accountId, phone, text, options)
      const messageId = await send(pool, submission, command)
      createAnnouncer(pool)('messages')
      const message = wait ? await follow(pool, accountId, messageId, timeout * 1_000) : await readMessage(pool, accountId, messageId)
      report(options, message, inWords)
      if (!wait || message.status === 'READ') return
      process.exitCode = isOver(message) ? EXIT.refused : EXIT.timedOut
      if (!isOver(message))
        printError(`The message is not READ, FAILED or EXPIRED after ${timeout} s. "herald message show ${messageId}" shows it.`)
    })
  })

const isOver = ({ status }: Message) => ['READ', 'FAILED', 'EXPIRED'].includes(status)

function inWords({ messageId, recipient, status, scheduledAt, failure }: Message): string {
  const until = status === 'ACCEPTED' && scheduledAt !== undefined ? `, to be sent at ${scheduledAt.toISOString()}` : ''
  return `Message ${messageId} to ${recipient} is ${status}${until}${failure === undefined ? '' : `: ${failure.description}`}.`.replace(
    /\.\.$/,
    '.',
  )
}

/** The arguments are checked as the API checks its fields, and the account as the API checks its caller. */
async function compose(pool: Pool, accountId: number, phone: string, text: string | undefined, options: SendOptions): Promise<Submission> {
  const { template, reference, variable, at } = options
  if ((text === undefined) === (template === undefined)) throw wrongUsage('Give either a text or --template.')
  if (variable !== undefined && template === undefined) throw wrongUsage('--variable needs --template: a text is sent as it is.')
  await requireRights(pool, accountId)
  const agentId = await agentOf(pool, accountId, options.agent)
  const content =
    template === undefined
      ? { message: { inline: { type: 'MESSAGE' as const, content: text as string } } }
      : { message: { templateId: template }, basic: await isBasic(pool, accountId, template) }
  const facts = { accountId, agentId, recipients: [phone], test: false }
  return {
    ...content,
    ...facts,
    ...(variable && { variables: variable }),
    ...(reference !== undefined && { clientReferenceId: reference }),
    ...(at !== undefined && { sendAt: at.toISOString() }),
  }
}

/** Accepts the message. Its entry in the audit log does not have its text. */
async function send(pool: Pool, submission: Submission, command: Command): Promise<string> {
  const { accountId, agentId, message } = submission
  const template = message.templateId
  const sent = audited(pool, command, {
    accountId,
    // Announced after the commit.
    change: (db) => createAcceptor(db, () => {})(submission),
    entry: (accepted) => acceptedEntry(accepted, submission),
  })
  const { messageIds } = await sent.catch((error) =>
    asOperatorError(error, {
      RCS_AGENT_NOT_FOUND: () => noSuch(`Account ${accountId} has no active agent ${agentId}.`),
      RCS_TEMPLATE_NOT_FOUND: () => noTemplate(accountId, template),
      RCS_INVALID_REQUEST: (reason) => wrongUsage(`--at ${reason}.`),
      RCS_MISSING_VARIABLE: (reason) => wrongUsage(`Template ${template} ${ofTemplate(reason)}: add --variable name=value.`),
      RCS_INVALID_MESSAGE: (reason) => new OperatorError(`Template ${template}: ${reason.replace(/^names a template whose/, 'its')}.`),
      RCS_TEMPLATE_NOT_APPROVED: () => new OperatorError(`Template ${template} is not approved; only approved templates can be sent.`),
    }),
  )
  return messageIds[0] as string
}

/** The command names the template itself. */
const ofTemplate = (reason: string) => reason.replace(/^names a template whose \S+ /, '')

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

/** A delivered message may never be read, so the wait has an end. Ctrl-C ends it, too. */
async function follow(pool: Pool, accountId: number, messageId: string, timeoutMs: number): Promise<Message> {
  const status = statusLine({ each: true })
  const startedAt = performance.now()
  let shown = ''
  let isHinted = false
  for (;;) {
    const message = await readMessage(pool, accountId, messageId)
    if (message.status !== shown) {
      shown = message.status
      status.show(`${new Date().toISOString()} ${shown}`)
      status.keep()
    }
    const waitedMs = performance.now() - startedAt
    if (isOver(message) || waitedMs >= timeoutMs) return message
    if (shown === 'ACCEPTED' && message.scheduledAt === undefined && waitedMs >= HINT_AFTER_MS && !isHinted) {
      isHinted = true
      printError('The message still waits to be sent. Start a service with the role delivery, or find the cause with "herald doctor".')
    }
    await sleep(POLL_MS)
  }
}
