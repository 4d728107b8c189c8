import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Option } from 'commander'
import { CONTENT_SCHEMAS } from '../content/content.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError, OperatorError, wrongUsage } from '../errors.ts'
import { createAcceptor } from '../messages/accept.ts'
import { createAnnouncer } from '../messages/announce.ts'
import { type Message, readMessage } from '../messages/messages.ts'
import { requestHash } from '../messages/request-hash.ts'
import { MessageRequest } from '../messages/schemas.ts'
import { createSchemaCompiler } from '../validation.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { phoneArgument } from './phone.ts'
import { statusLine } from './terminal.ts'

const POLL_MS = 200

type SendOptions = { json?: boolean; agent?: string; template?: string; reference?: string; wait?: boolean }

/** Sends through the database, like every command, so it needs no key. The service delivers the message as soon as it runs. */
export const sendCommand = reportingCommand('send', 'send a message from the terminal')
  .argument('<account-id>', 'the account that sends', accountIdArgument)
  .argument('<phone>', 'the recipient', phoneArgument)
  .argument('[text]', 'the text; or use --template', textArgument(3072))
  .addOption(new Option('--template <template-id>', 'send this template instead of a text').argParser(textArgument(16)))
  .option('--agent <agent-id>', 'the agent; required if the account has several', textArgument(200))
  .option('--reference <text>', 'your reference (clientReferenceId)', textArgument(255))
  .option('--wait', 'follow the message until it is READ, FAILED or EXPIRED')
  .action(async (accountId: number, phone: string, text: string | undefined, options: SendOptions) => {
    await withDatabase(async (pool) => {
      const messageId = await send(pool, accountId, phone, text, options)
      const message = options.wait ? await follow(pool, accountId, messageId) : await readMessage(pool, accountId, messageId)
      report(options, message, inWords)
    })
  })

function inWords({ messageId, recipient, status, failure }: Message): string {
  return `Message ${messageId} to ${recipient} is ${status}${failure === undefined ? '' : `: ${failure.description}`}.`.replace(
    /\.\.$/,
    '.',
  )
}

async function send(pool: Pool, accountId: number, phone: string, text: string | undefined, options: SendOptions): Promise<string> {
  const { template, reference } = options
  if ((text === undefined) === (template === undefined)) throw wrongUsage('Give either a text or --template.')
  const body = {
    agentId: options.agent ?? (await onlyAgentOf(pool, accountId)),
    recipient: phone,
    message: text === undefined ? { templateId: Number(template) } : { inline: { type: 'MESSAGE' as const, content: text } },
    ...(reference !== undefined && { clientReferenceId: reference }),
  }
  const violations = createSchemaCompiler(CONTENT_SCHEMAS)(MessageRequest)(body)
  if (violations.length > 0) throw wrongUsage(...violations.map(({ path, reason }) => `${path} ${reason}.`))
  const { recipient, ...others } = body
  const accept = createAcceptor(pool, createAnnouncer(pool))
  const { messageIds } = await accept({
    ...others,
    accountId,
    recipients: [recipient],
    test: false,
    idempotency: { key: `herald-send-${randomUUID()}`, hash: requestHash(body) },
  }).catch(asOperatorError)
  return messageIds[0] as string
}

function asOperatorError(error: unknown): never {
  if (!(error instanceof ApiError)) throw error
  const details = error.details?.map(({ path, reason }) => `${path} ${reason}.`) ?? []
  throw new OperatorError(...(details.length > 0 ? details : [`The message was refused: ${error.code}.`]))
}

async function onlyAgentOf(pool: Pool, accountId: number): Promise<string> {
  const { rows } = await pool.query<{ agentId: string }>(
    'select agent_id as "agentId" from agent_assignments where account_id = $1 and active order by 1',
    [accountId],
  )
  const [first, ...others] = rows.map(({ agentId }) => agentId)
  if (first === undefined) throw new OperatorError(`Account ${accountId} has no active agent: "herald agent assign" adds one.`)
  if (others.length > 0) throw wrongUsage(`Name one of the account's agents by --agent: ${[first, ...others].join(', ')}.`)
  return first
}

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
