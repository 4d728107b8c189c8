import { Command, InvalidArgumentError, Option } from 'commander'
import { openKeyring } from '../db/secrets.ts'
import { EVENT_KINDS } from '../events/schemas.ts'
import { parseTimestamp } from '../time.ts'
import { type Attempt, awaitTest, listAttempts, type TestOutcome } from '../webhooks/attempts.ts'
import {
  type AddedEndpoint,
  addEndpoint,
  countDeliveries,
  disableEndpoint,
  type Enabled,
  type Endpoint,
  enableEndpoint,
  findEndpoint,
  type ListedEndpoint,
  listEndpoints,
  type Rotated,
  removeEndpoint,
  rotateSecret,
  testEndpoint,
  updateEndpoint,
} from '../webhooks/endpoints.ts'
import {
  countReplay,
  type ReplayCount,
  type ReplayProgress,
  type ReplayResult,
  replayAll,
  replayEvent,
  replayFailed,
} from '../webhooks/replay.ts'
import { isSuccess } from '../webhooks/schedule.ts'
import { checkEndpointUrl } from '../webhooks/url.ts'
import { accountIdArgument, listArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { counted, statusLine, table } from './terminal.ts'

const MAX_URL_CHARACTERS = 4_000
const MOST_ATTEMPTS = 10_000
const ANSWER_CHARACTERS = 60

function endpointIdArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) >= 2 ** 31) {
    throw new InvalidArgumentError('An endpoint id is a whole number, as "herald webhook list" shows it.')
  }
  return Number(value)
}

function timeArgument(value: string): Date {
  const time = parseTimestamp(value)
  if (time === undefined) throw new InvalidArgumentError('It must be a time with its zone, such as 2026-01-31T08:00:00Z.')
  return time
}

function limitArgument(value: string): number {
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > MOST_ATTEMPTS) {
    throw new InvalidArgumentError(`It is a whole number from 1 to ${MOST_ATTEMPTS}.`)
  }
  return Number(value)
}

const endpoint = ['<endpoint-id>', 'its id', endpointIdArgument] as const

const add = reportingCommand('add', "post an account's events to a URL")
  .argument('<account-id>', 'the account', accountIdArgument)
  .argument('<url>', 'where to, beginning with https://', textArgument(MAX_URL_CHARACTERS))
  .option(
    '--events <kinds>',
    'the kinds of events that it wants, separated by commas; all, where this is left out',
    listArgument(EVENT_KINDS, 1),
  )
  .action(async (accountId: number, url: string, options) => {
    const added = await withDatabase(async (pool, config) => {
      const endpoint = { accountId, url: checkEndpointUrl(url, config.webhookAllowPrivate), kinds: options.events }
      return await addEndpoint(pool, endpoint, await openKeyring(pool, config))
    })
    report(options, added, addedInWords)
  })

function addedInWords({ endpointId, accountId, url, events, secret }: AddedEndpoint): string[] {
  return [
    `The endpoint ${endpointId} gets ${events === null ? 'all events' : events.join(', ')} of account ${accountId}, at ${url}.`,
    `Secret: ${secret}`,
    'The secret is shown only this once.',
  ]
}

const list = reportingCommand('list', 'show the endpoints, how much waits for each and how they do')
  .argument('[account-id]', 'of this account only', accountIdArgument)
  .action(async (accountId: number | undefined, options) => {
    const endpoints = await withDatabase((pool) => listEndpoints(pool, accountId))
    const columns = ['ID', 'ACCOUNT', 'STATUS', 'BECAUSE', 'SINCE', 'WAITING', 'FAILED', 'SECRET ENDS', 'EVENTS', 'URL']
    report(options, endpoints, () => table(columns, endpoints.map(listedCells)))
  })

function listedCells({ endpointId, accountId, status, url, events, ...listed }: ListedEndpoint): unknown[] {
  const { failingSince, disabledAt, disabledBecause, secrets } = listed
  const because = disabledBecause ?? (failingSince === null ? null : 'FAILING')
  const ends = secrets.flatMap(({ endsAt }) => endsAt ?? []).join(', ') || null
  return [
    endpointId,
    accountId,
    status,
    because,
    disabledAt ?? failingSince,
    atLeast(listed.waiting, listed.moreWaiting),
    atLeast(listed.failed, listed.moreFailed),
    ends,
    events?.join(',') ?? 'all',
    url,
  ]
}

function atLeast(count: number, isMore: boolean): string {
  return `${count}${isMore ? '+' : ''}`
}

const update = reportingCommand('update', 'change the kinds of events that an endpoint wants, from the next event on')
  .argument(...endpoint)
  .addOption(
    new Option('--events <kinds>', 'these kinds, separated by commas').argParser(listArgument(EVENT_KINDS, 1)).conflicts('allEvents'),
  )
  .option('--all-events', 'all kinds, also those that later versions bring')
  .action(async (endpointId: number, options, command: Command) => {
    if (options.events === undefined && options.allEvents === undefined) {
      command.error('error: one of --events and --all-events must say which events it is to get')
    }
    report(options, await withDatabase((pool) => updateEndpoint(pool, endpointId, options.events ?? null)), updatedInWords)
  })

function updatedInWords({ endpointId, events }: Endpoint): string {
  return `The endpoint ${endpointId} gets ${events === null ? 'all events' : events.join(', ')} from now on.`
}

function described({ endpointId, accountId, url }: Endpoint): string {
  return `${endpointId} of account ${accountId}, at ${url}`
}

const rotate = confirmedCommand('rotate', 'give an endpoint a new secret; the old one signs beside it for 24 hours')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const rotated = await withDatabase(async (pool, config) => {
      const found = described(await findEndpoint(pool, endpointId))
      await confirm(options, `replace the secret of 1 endpoint, ${found}; the old secret signs beside the new one for 24 hours`)
      return await rotateSecret(pool, endpointId, await openKeyring(pool, config))
    })
    report(options, rotated, rotatedInWords)
  })

function rotatedInWords({ endpointId, url, secret, earlierSecretsEndAt }: Rotated): string[] {
  const earlier = earlierSecretsEndAt === null ? '' : ` The old one signs beside it until ${earlierSecretsEndAt.toISOString()}.`
  return [`The endpoint ${endpointId}, at ${url}, has a new secret.`, `Secret: ${secret}`, `The secret is shown only this once.${earlier}`]
}

const test = reportingCommand('test', 'post an event to an endpoint, and show what comes of it')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const outcome = await withDatabase(async (pool) => await awaitTest(pool, await testEndpoint(pool, endpointId)))
    report(options, outcome, testedInWords)
    if (!isSuccess(outcome.status)) process.exitCode = 1
  })

function testedInWords(outcome: TestOutcome): string[] {
  const { endpointId, durationMs, answer } = outcome
  const did = isSuccess(outcome.status) ? 'took' : 'did not take'
  const firstLine = shown(answer)
  const said = firstLine === null ? [] : [`It answered: ${firstLine}`]
  return [`The endpoint ${endpointId} ${did} the test: ${resultOf(outcome)}, after ${durationMs} ms.`, ...said]
}

function resultOf({ status, error }: Pick<Attempt, 'status' | 'error'>): string {
  return status === null ? (shown(error) ?? 'no answer') : `status ${status}`
}

/** The first line of the receiver's response, shortened for a table. */
function shown(text: string | null): string | null {
  const line = text
    ?.trimStart()
    .split(/[\r\n]/, 1)[0]
    ?.trim()
  if (!line) return null
  const characters = [...line]
  return characters.length > ANSWER_CHARACTERS ? `${characters.slice(0, ANSWER_CHARACTERS).join('')}…` : line
}

const attempts = reportingCommand('attempts', 'show the tries to post events to an endpoint, the newest first')
  .argument(...endpoint)
  .option('--event <event-id>', 'of this event only', textArgument(100))
  .option('--failed', 'only those that failed')
  .option('--limit <number>', 'how many at the most', limitArgument, 50)
  .action(async (endpointId: number, options) => {
    const filter = { eventId: options.event, failedOnly: options.failed, limit: options.limit }
    const tries = await withDatabase((pool) => listAttempts(pool, endpointId, filter))
    const columns = ['TIME', 'EVENT', 'TYPE', 'TRY', 'RESULT', 'MS', 'ANSWER']
    const rows = tries.map((tried) => [
      tried.attemptedAt,
      tried.eventId,
      tried.type,
      tried.attempt,
      resultOf(tried),
      tried.durationMs,
      shown(tried.answer),
    ])
    report(options, tries, () => table(columns, rows))
  })

const replay = confirmedCommand('replay', 'post events again: one, those that failed, or all')
  .argument(...endpoint)
  .addOption(new Option('--event <event-id>', 'this event').argParser(textArgument(100)).conflicts(['failedSince', 'since']))
  .addOption(
    new Option('--failed-since <time>', 'those since this time of which every try has failed').argParser(timeArgument).conflicts('since'),
  )
  .addOption(new Option('--since <time>', 'all since this time, of the kinds that the endpoint wants').argParser(timeArgument))
  .action(async (endpointId: number, options, command: Command) => {
    const { event, failedSince, since } = options
    if (event === undefined && failedSince === undefined && since === undefined) {
      command.error('error: one of --event, --failed-since and --since must say what to post again')
    }
    const status = statusLine()
    const onProgress = ({ replayed, share }: ReplayProgress) =>
      status.show(`${counted(replayed, 'event')} to be posted again, ${Math.floor(share * 100)} %`)
    const result = await withDatabase(async (pool) => {
      const count = await countReplay(pool, endpointId, { event, failedSince, since })
      if (count.events > 0) await confirm(options, countedInWords(await findEndpoint(pool, endpointId), count))
      if (event !== undefined) return await replayEvent(pool, endpointId, event)
      const replayed = failedSince !== undefined ? replayFailed : replayAll
      return await replayed(pool, endpointId, failedSince ?? since, { onProgress }).finally(status.clear)
    })
    report(options, result, replayedInWords)
  })

function countedInWords(endpoint: Endpoint, { events, isMore }: ReplayCount): string {
  return `post ${isMore ? 'at least' : 'about'} ${counted(events, 'event')} again to the endpoint ${described(endpoint)}`
}

function replayedInWords({ endpointId, replayed, alreadyDue }: ReplayResult): string {
  const others = alreadyDue === 0 ? '' : ` ${counted(alreadyDue, 'event was', 'events were')} on the way already.`
  return `${counted(replayed, 'event is', 'events are')} posted again to the endpoint ${endpointId}.${others}`
}

const enable = reportingCommand('enable', 'post events to an endpoint again that was disabled')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    report(options, await withDatabase((pool) => enableEndpoint(pool, endpointId)), enabledInWords)
  })

function enabledInWords({ endpointId, missedSince }: Enabled): string[] {
  if (missedSince === null) return [`The endpoint ${endpointId} is active, and was so before.`]
  return [
    `The endpoint ${endpointId} is active again. To post the events that it missed, run`,
    `  herald webhook replay ${endpointId} --since ${missedSince.toISOString()}`,
  ]
}

const disable = reportingCommand('disable', 'post nothing more to an endpoint until it is enabled')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    report(options, await withDatabase((pool) => disableEndpoint(pool, endpointId)), () => `The endpoint ${endpointId} is disabled.`)
  })

const remove = confirmedCommand('remove', 'remove an endpoint for good, with the events that wait for it')
  .argument(...endpoint)
  .action(async (endpointId: number, options) => {
    const removed = await withDatabase(async (pool) => {
      const found = await findEndpoint(pool, endpointId)
      const { waiting, moreWaiting, failed, moreFailed } = await countDeliveries(pool, found)
      const lost = `with ${atLeast(waiting, moreWaiting)} waiting and ${atLeast(failed, moreFailed)} failed events`
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
