import { Command, InvalidArgumentError, Option } from 'commander'
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
import {
  countReplay,
  type ReplayCount,
  type ReplayProgress,
  type ReplayResult,
  replayAll,
  replayEvent,
  replayFailed,
} from '../webhooks/replay.ts'
import { withReplayLease } from '../webhooks/replay-lease.ts'
import { isSuccess } from '../webhooks/schedule.ts'
import { awaitTest, type TestOutcome, testEndpoint } from '../webhooks/test-endpoint.ts'
import { checkEndpointUrl, urlProblem } from '../webhooks/url.ts'
import {
  accountIdArgument,
  type CommandConfig,
  listArgument,
  report,
  reportingCommand,
  textArgument,
  timeArgument,
  withDatabase,
} from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { printError, quantity, statusLine, table } from './terminal.ts'

const MAX_URL_CHARACTERS = 4_000
const MAX_ATTEMPTS_LISTED = 10_000
const MAX_RESPONSE_CHARACTERS = 60
const MAX_URL_SHOWN = 80

function endpointIdArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) >= 2 ** 31) {
    throw new InvalidArgumentError('An endpoint id is a whole number, as "herald webhook list" shows it.')
  }
  return Number(value)
}

function limitArgument(value: string): number {
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > MAX_ATTEMPTS_LISTED) {
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_ATTEMPTS_LISTED}.`)
  }
  return Number(value)
}

const endpoint = ['<endpoint-id>', 'its id', endpointIdArgument] as const

const add = reportingCommand('add', "post an account's events to a URL")
  .argument('<account-id>', 'the account', accountIdArgument)
  .argument('<url>', 'the URL, beginning with https://', textArgument(MAX_URL_CHARACTERS))
  .option(
    '--events, --types <types>',
    'the types of events to post, separated by commas; all types by default',
    listArgument(EVENT_KINDS, 1),
  )
  .action(async (accountId: number, url: string, options) => {
    const added = await withDatabase(async (pool, config) => {
      const endpoint = { accountId, url: checkUrl(url, config), types: options.types }
      return await addEndpoint(pool, endpoint, await openKeyring(pool, config))
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

const list = reportingCommand(
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

const update = reportingCommand('update', 'change the URL of an endpoint, or the types of events that it gets, from the next event on')
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
    const changed = await withDatabase((pool, config) =>
      changeEndpoint(pool, endpointId, { types, url: options.url === undefined ? undefined : checkUrl(options.url, config) }),
    )
    report(options, changed, updatedInWords)
  })

function updatedInWords({ endpointId, url, types }: Endpoint): string {
  return `The endpoint ${endpointId}, at ${url}, gets ${types === null ? 'all events' : types.join(', ')} from now on.`
}

function described({ endpointId, accountId, url }: Endpoint): string {
  return `${endpointId} of account ${accountId}, at ${url}`
}

const rotate = confirmedCommand('rotate', 'replace the secret of an endpoint; for 24 hours, events are signed with both')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const rotated = await withDatabase(async (pool, config) => {
      const found = described(await findEndpoint(pool, endpointId))
      await confirm(options, `replace the secret of 1 endpoint, ${found}; for 24 hours, events are signed with both secrets`)
      return await rotateSecret(pool, endpointId, await openKeyring(pool, config))
    })
    report(options, rotated, rotatedInWords)
  })

function rotatedInWords({ endpointId, url, secret, earlierSecretsEndAt }: Rotated): string[] {
  const earlier = earlierSecretsEndAt === null ? '' : ` Events are also signed with the old one until ${earlierSecretsEndAt.toISOString()}.`
  return [`The endpoint ${endpointId}, at ${url}, has a new secret.`, `Secret: ${secret}`, `The secret is shown only this once.${earlier}`]
}

const test = reportingCommand('test', 'post a test event to an endpoint, and show the result')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const outcome = await withDatabase(async (pool) => await awaitTest(pool, await testEndpoint(pool, endpointId)))
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

const attempts = reportingCommand('attempts', 'show the attempts to post events to an endpoint, newest first')
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

const replay = confirmedCommand('replay', 'post events again: one event, failed events or all events')
  .argument(...endpoint)
  .addOption(new Option('--event <event-id>', 'this event').argParser(textArgument(100)).conflicts(['failedSince', 'since']))
  .addOption(
    new Option('--failed-since <time>', 'events since this time whose every attempt failed').argParser(timeArgument).conflicts('since'),
  )
  .addOption(new Option('--since <time>', 'all events since this time, of the kinds that the endpoint gets').argParser(timeArgument))
  .action(async (endpointId: number, options, command: Command) => {
    const { event, failedSince, since } = options
    if (event === undefined && failedSince === undefined && since === undefined) {
      command.error('error: --event, --failed-since or --since is required')
    }
    const status = statusLine()
    const onProgress = ({ replayed, share }: ReplayProgress) =>
      status.show(`${quantity(replayed, 'event')} to be posted again, ${Math.floor(share * 100)} %`)
    const result = await withDatabase(async (pool) => {
      const count = await countReplay(pool, endpointId, { event, failedSince, since })
      if (count.events > 0) await confirm(options, countedInWords(await findEndpoint(pool, endpointId), count))
      if (event !== undefined) return await replayEvent(pool, endpointId, event)
      const replaySince = failedSince !== undefined ? replayFailed : replayAll
      const replaying = () => replaySince(pool, endpointId, failedSince ?? since, { onProgress })
      return await withReplayLease(pool, endpointId, replaying).finally(status.clear)
    })
    report(options, result, replayedInWords)
  })

function countedInWords(endpoint: Endpoint, { events, isMore }: ReplayCount): string {
  return `post ${isMore ? 'at least' : 'about'} ${quantity(events, 'event')} again to the endpoint ${described(endpoint)}`
}

function replayedInWords({ endpointId, replayed, alreadyDue }: ReplayResult): string {
  const others = alreadyDue === 0 ? '' : ` ${quantity(alreadyDue, 'event was', 'events were')} waiting to be posted already.`
  return `${quantity(replayed, 'event')} will be posted again to the endpoint ${endpointId}.${others}`
}

const enable = reportingCommand('enable', 'post events to a disabled endpoint again')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    report(options, await withDatabase((pool) => enableEndpoint(pool, endpointId)), enabledInWords)
  })

function enabledInWords({ endpointId, missedSince }: Enabled): string[] {
  if (missedSince === null) return [`The endpoint ${endpointId} was active already.`]
  return [
    `The endpoint ${endpointId} is active again. To post the events that it missed, run`,
    `  herald webhook replay ${endpointId} --since ${missedSince.toISOString()}`,
  ]
}

const disable = reportingCommand('disable', 'post no more events to an endpoint until it is enabled')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    report(options, await withDatabase((pool) => disableEndpoint(pool, endpointId)), () => `The endpoint ${endpointId} is disabled.`)
  })

const remove = confirmedCommand('remove', 'remove an endpoint for good, with the events that wait for it')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const removed = await withDatabase(async (pool) => {
      const found = await findEndpoint(pool, endpointId)
      const { pending, morePending, failed, moreFailed } = await countDeliveries(pool, found)
      const lost = `with ${atLeast(pending, morePending)} pending and ${atLeast(failed, moreFailed)} failed events`
      await confirm(options, `remove 1 endpoint for good, ${described(found)}, ${lost}`)
      return await removeEndpoint(pool, endpointId)
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
  .addCommand(replay)
  .addCommand(enable)
  .addCommand(disable)
  .addCommand(remove)
