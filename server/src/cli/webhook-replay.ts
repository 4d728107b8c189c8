import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Endpoint, findEndpoint } from '../webhooks/endpoints.ts'
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
import { recorder } from './audited.ts'
import { report, textArgument, timeArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { quantity, statusLine } from './terminal.ts'

function endpointIdArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) >= 2 ** 31) {
    throw new InvalidArgumentError('An endpoint id is a whole number, as "herald webhook list" shows it.')
  }
  return Number(value)
}

export const endpoint = ['<endpoint-id>', 'its id', endpointIdArgument] as const

export function described({ endpointId, accountId, url }: Endpoint): string {
  return `${endpointId} of account ${accountId}, at ${url}`
}

export const replayCommand = confirmedCommand('replay', 'post events again: one event, failed events or all events', 'replayWebhookEvents')
  .argument(...endpoint)
  .addOption(new Option('--event <event-id>', 'this event').argParser(textArgument(100)).conflicts(['failedSince', 'since']))
  .addOption(
    new Option('--failed-since <time>', 'events since this time that were attempted and never accepted')
      .argParser(timeArgument)
      .conflicts('since'),
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
      const selection = { event, failedSince, since }
      const count = await countReplay(pool, endpointId, selection)
      const found = await findEndpoint(pool, endpointId)
      if (count.events > 0) await confirm(options, countedInWords(found, count))
      const record = recorder(command, { accountId: found.accountId, subject: endpointId, after: selection })
      if (event !== undefined) return await replayEvent(pool, endpointId, event, record)
      const replaySince = failedSince !== undefined ? replayFailed : replayAll
      const replaying = () => replaySince(pool, endpointId, failedSince ?? since, { onProgress, record })
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
