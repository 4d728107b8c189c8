import { Command, InvalidArgumentError, Option } from 'commander'
import type { Pool } from '../db/pool.ts'
import { openKeyring } from '../db/secrets.ts'
import { EVENT_KINDS } from '../events/kinds.ts'
import { type Attempt, listAttempts } from '../webhooks/attempts.ts'
import { changeEndpoint, disableEndpoint, type Enabled, enableEndpoint } from '../webhooks/change-endpoint.ts'
import {
  type AddedEndpoint,
  addEndpoint,
  countDeliveries,
  type Endpoint,
  findEndpoint,
  type ListedEndpoint,
  listEndpoints,
  type Rotated,
  rotateSecret,
} from '../webhooks/endpoints.ts'
import { removeEndpoint } from '../webhooks/remove-endpoint.ts'
import { isSuccess } from '../webhooks/schedule.ts'
import { awaitTest, type TestOutcome, testEndpoint } from '../webhooks/test-endpoint.ts'
import { checkEndpointUrl, urlProblem } from '../webhooks/url.ts'
import { audited, recorder } from './audited.ts'
import {
  accountIdArgument,
  type CommandConfig,
  changingCommand,
  listArgument,
  readingCommand,
  report,
  textArgument,
  withDatabase,
} from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { printError, table } from './terminal.ts'
import { described, endpoint, replayCommand } from './webhook-replay.ts'

const MAX_URL_CHARACTERS = 4_000
const MAX_ATTEMPTS_LISTED = 10_000
const MAX_RESPONSE_CHARACTERS = 60
const MAX_URL_SHOWN = 80

function limitArgument(value: string): number {
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > MAX_ATTEMPTS_LISTED) {
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_ATTEMPTS_LISTED}.`)
  }
  return Number(value)
}

const add = changingCommand('add', "post an account's events to a URL", 'createWebhookEndpoint')
  .argument('<account-id>', 'the account', accountIdArgument)
  .argument('<url>', 'the URL, beginning with https://', textArgument(MAX_URL_CHARACTERS))
  .option(
    '--events, --types <types>',
    'the types of events to post, separated by commas; all types by default',
    listArgument(EVENT_KINDS, 1),
  )
  .action(async (accountId: number, url: string, options, command: Command) => {
    const added = await withDatabase(async (pool, config) => {
      const endpoint = { accountId, url: checkUrl(url, config), types: options.types }
      const keyring = await openKeyring(pool, config)
      return await audited(pool, command, {
        accountId,
        change: (db) => addEndpoint(db, endpoint, keyring),
        entry: ({ endpointId }) => ({ subject: endpointId }),
      })
    })
    report(options, added, addedInWords)
  })

/** Warns if the service, which reads its own settings, may refuse to post to the URL. */
function checkUrl(url: string, { webhookHosts, isPrivateByEnvironment }: CommandConfig): string {
  const checked = checkEndpointUrl(url, webhookHosts)
  if (isPrivateByEnvironment && urlProblem(url, 'public') !== undefined) {
    printError(
      `HERALD_WEBHOOK_ALLOW_PRIVATE is set for this command only. Set it for the service too, such as in .env: otherwise it does not post to ${new URL(url).host}.`,
    )
  }
  return checked
}

function addedInWords({ endpointId, accountId, url, types, secret }: AddedEndpoint): string[] {
  return [
    `The endpoint ${endpointId} gets ${types === null ? 'all events' : types.join(', ')} of account ${accountId}, at ${url}.`,
    `Secret: ${secret}`,
    'The secret is shown only this once.',
  ]
}

const list = readingCommand(
  'list',
  'show the endpoints, their status and how many events wait for each; with --json also whole URLs and when secrets end',
)
  .argument('[account-id]', 'of this account only', accountIdArgument)
  .action(async (accountId: number | undefined, options) => {
    const endpoints = await withDatabase((pool) => listEndpoints(pool, accountId))
    const columns = ['ID', 'ACCOUNT', 'STATUS', 'REASON', 'SINCE', 'PENDING', 'FAILED', 'SECRETS', 'TYPES', 'URL']
    report(options, endpoints, () => table(columns, endpoints.map(listedCells)))
  })

function listedCells({ endpointId, accountId, status, url, types, ...listed }: ListedEndpoint): unknown[] {
  const { failingSince, disabledAt, disabledBecause, secrets } = listed
  const reason = disabledBecause ?? (failingSince === null ? null : 'FAILING')
  return [
    endpointId,
    accountId,
    status,
    reason,
    disabledAt ?? failingSince,
    atLeast(listed.pending, listed.morePending),
    atLeast(listed.failed, listed.moreFailed),
    secrets.length,
    types?.join(',') ?? 'all',
    shortened(url, MAX_URL_SHOWN),
  ]
}

function atLeast(count: number, isMore: boolean): string {
  return `${count}${isMore ? '+' : ''}`
}

const update = changingCommand(
  'update',
  'change the URL of an endpoint, or the types of events that it gets, from the next event on',
  'changeWebhookEndpoint',
)
  .argument(...endpoint)
  .option('--url <url>', 'this URL; events that wait for the endpoint go there too', textArgument(MAX_URL_CHARACTERS))
  .addOption(
    new Option('--events, --types <types>', 'these types, separated by commas')
      .argParser(listArgument(EVENT_KINDS, 1))
      .conflicts('allTypes'),
  )
  .option('--all-events, --all-types', 'all types, including those that later versions add')
  .action(async (endpointId: number, options, command: Command) => {
    const types = options.allTypes ? null : options.types
    if (types === undefined && options.url === undefined) command.error('error: --url, --types or --all-types is required')
    const endpoint = await withDatabase(async (pool, config) => {
      const url = options.url === undefined ? undefined : checkUrl(options.url, config)
      return await changed(pool, command, endpointId, (db) => changeEndpoint(db, endpointId, { types, url }))
    })
    report(options, endpoint, updatedInWords)
  })

type Changed = Endpoint & { missedSince?: Date | null }

/** Changes an endpoint that exists. */
async function changed<T extends Changed>(pool: Pool, command: Command, endpointId: number, change: (db: Pool) => Promise<T>): Promise<T> {
  const { accountId } = await findEndpoint(pool, endpointId)
  const before = (db: Pool) => findEndpoint(db, endpointId)
  const entry = ({ missedSince, ...after }: T) => ({ after })
  return await audited(pool, command, { accountId, subject: endpointId, before, change, entry })
}

function updatedInWords({ endpointId, url, types }: Endpoint): string {
  return `The endpoint ${endpointId}, at ${url}, gets ${types === null ? 'all events' : types.join(', ')} from now on.`
}

const rotate = confirmedCommand(
  'rotate',
  'replace the secret of an endpoint; for 24 hours, events are signed with both',
  'rotateWebhookSecret',
)
  .argument(...endpoint)
  .action(async (endpointId: number, options, command: Command) => {
    const rotated = await withDatabase(async (pool, config) => {
      const found = await findEndpoint(pool, endpointId)
      await confirm(options, `replace the secret of 1 endpoint, ${described(found)}; for 24 hours, events are signed with both secrets`)
      const keyring = await openKeyring(pool, config)
      const change = (db: Pool) => rotateSecret(db, endpointId, keyring)
      return await audited(pool, command, { accountId: found.accountId, subject: endpointId, change })
    })
    report(options, rotated, rotatedInWords)
  })

function rotatedInWords({ endpointId, url, secret, earlierSecretsEndAt }: Rotated): string[] {
  const earlier = earlierSecretsEndAt === null ? '' : ` Events are also signed with the old one until ${earlierSecretsEndAt.toISOString()}.`
  return [`The endpoint ${endpointId}, at ${url}, has a new secret.`, `Secret: ${secret}`, `The secret is shown only this once.${earlier}`]
}

const test = changingCommand('test', 'post a test event to an endpoint, and show the result', 'testWebhookEndpoint')
  .argument(...endpoint)
  .action(async (endpointId: number, options, command: Command) => {
    const outcome = await withDatabase(async (pool) => {
      const { accountId } = await findEndpoint(pool, endpointId)
      const record = recorder(command, { accountId, subject: endpointId })
      return await awaitTest(pool, await testEndpoint(pool, endpointId, record))
    })
    report(options, outcome, testedInWords)
    if (!isSuccess(outcome.status)) process.exitCode = 1
  })

function testedInWords(outcome: TestOutcome): string[] {
  const { endpointId, durationMs, response } = outcome
  const verb = isSuccess(outcome.status) ? 'accepted' : 'did not accept'
  const firstLine = firstLineOf(response)
  const said = firstLine === null ? [] : [`Response: ${firstLine}`]
  return [`The endpoint ${endpointId} ${verb} the test event: ${resultOf(outcome)}, after ${durationMs} ms.`, ...said]
}

function resultOf({ status, error }: Pick<Attempt, 'status' | 'error'>): string {
  return status === null ? (firstLineOf(error) ?? 'no response') : `status ${status}`
}

/** Returns the first line of a response or an error, shortened for a table. */
function firstLineOf(text: string | null): string | null {
  const line = text
    ?.trimStart()
    .split(/[\r\n]/, 1)[0]
    ?.trim()
  return line ? shortened(line, MAX_RESPONSE_CHARACTERS) : null
}

function shortened(text: string, maxCharacters: number): string {
  const characters = [...text]
  return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters).join('')}…` : text
}

const attempts = readingCommand('attempts', 'show the attempts to post events to an endpoint, newest first')
  .argument(...endpoint)
  .option('--event <event-id>', 'of this event only', textArgument(100))
  .option('--failed', 'only failed attempts')
  .option('--limit <number>', 'maximum number of attempts', limitArgument, 50)
  .action(async (endpointId: number, options) => {
    const filter = { eventId: options.event, failedOnly: options.failed, limit: options.limit }
    const listed = await withDatabase((pool) => listAttempts(pool, endpointId, filter))
    const columns = ['TIME', 'EVENT', 'TYPE', 'ATTEMPT', 'RESULT', 'MS', 'RESPONSE']
    const rows = listed.map((attempt) => [
      attempt.attemptedAt,
      attempt.eventId,
      attempt.type,
      attempt.attempt,
      resultOf(attempt),
      attempt.durationMs,
      firstLineOf(attempt.response),
    ])
    report(options, listed, () => table(columns, rows))
  })

const enable = changingCommand('enable', 'post events to a disabled endpoint again', 'changeWebhookEndpoint')
  .argument(...endpoint)
  .action(async (endpointId: number, options, command: Command) => {
    const enabled = await withDatabase((pool) => changed(pool, command, endpointId, (db) => enableEndpoint(db, endpointId)))
    report(options, enabled, enabledInWords)
  })

function enabledInWords({ endpointId, missedSince }: Enabled): string[] {
  if (missedSince === null) return [`The endpoint ${endpointId} was active already.`]
  return [
    `The endpoint ${endpointId} is active again. To post the events that it missed, run`,
    `  herald webhook replay ${endpointId} --since ${missedSince.toISOString()}`,
  ]
}

const disable = changingCommand('disable', 'post no more events to an endpoint until it is enabled', 'changeWebhookEndpoint')
  .argument(...endpoint)
  .action(async (endpointId: number, options, command: Command) => {
    const disabled = await withDatabase((pool) => changed(pool, command, endpointId, (db) => disableEndpoint(db, endpointId)))
    report(options, disabled, () => `The endpoint ${endpointId} is disabled.`)
  })

const remove = confirmedCommand('remove', 'remove an endpoint for good, with the events that wait for it', 'deleteWebhookEndpoint')
  .argument(...endpoint)
  .action(async (endpointId: number, options, command: Command) => {
    const removed = await withDatabase(async (pool) => {
      const found = await findEndpoint(pool, endpointId)
      const { pending, morePending, failed, moreFailed } = await countDeliveries(pool, found)
      const lost = `with ${atLeast(pending, morePending)} pending and ${atLeast(failed, moreFailed)} failed ${failed === 1 ? 'event' : 'events'}`
      await confirm(options, `remove 1 endpoint for good, ${described(found)}, ${lost}`)
      return await removeEndpoint(pool, endpointId, { record: recorder(command, { accountId: found.accountId, subject: endpointId }) })
    })
    report(options, removed, () => `The endpoint ${endpointId} is removed.`)
  })

export const webhookCommand = new Command('webhook')
  .description("endpoints that an account's events are posted to")
  .addCommand(add)
  .addCommand(list)
  .addCommand(update)
  .addCommand(rotate)
  .addCommand(test)
  .addCommand(attempts)
  .addCommand(replayCommand)
  .addCommand(enable)
  .addCommand(disable)
  .addCommand(remove)
