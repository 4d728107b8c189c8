import type { History } from '../history/history.ts'
import type { Scripted } from '../history/scripted.ts'
import { checkAccounts, checkContents } from './contents.ts'
import { checkFeed, checkLog } from './log.ts'
import { checkEnds, checkLedger, checkNetwork, checkRepeats, checkSms } from './network.ts'
import * as processes from './processes.ts'
import { checkReplies } from './replies.ts'
import * as requests from './requests.ts'
import type { Check, Result } from './result.ts'
import { SCRIPTED_CHECKS } from './scripted.ts'
import { checkSteps } from './steps.ts'
import { checkArrivals, checkOrder, checkRepeatedEvents } from './webhooks.ts'

/** One for each promise. */
export const CHECKS = {
  'the required faults were injected': processes.checkFaults,
  'callers get only documented responses': requests.checkResponses,
  'every request has a response, unless a fault explains it': requests.checkAvailability,
  'accepted requests equal messages': requests.checkAccepted,
  'a campaign has one message for each recipient': requests.checkCampaigns,
  'contents are as requested on phones, in the API and in events': checkContents,
  'nothing of one account is at another': checkAccounts,
  'every message has an allowed final status': checkEnds,
  'columns equal timelines, events and the API': checkSteps,
  'the API shows what the network did': checkNetwork,
  'replies are stored once, and taps send once': checkReplies,
  'no message is twice on a phone': checkRepeats,
  'no SMS is submitted twice, and unknown outcomes are explained': checkSms,
  'results are stored by the holder of the lease': processes.checkLeases,
  'rows keep the rules of their tables': ({ rules }) => rules,
  'counters equal rows': ({ counters }) => counters,
  'status counts of campaigns equal their messages': (history) => checkStatusCounts(history),
  'every change is emitted once': ({ emitted }) => emitted,
  'the log has each position once, in order': checkLog,
  'the feed equals the log': checkFeed,
  'endpoints get the log': checkArrivals,
  'an event comes again only if a fault explains it': checkRepeatedEvents,
  'the events of a message come in order': checkOrder,
  'keys return their first response': requests.checkKeys,
  'an abandoned key has one message at most': requests.checkAbandonedKeys,
  'the network loses nothing itself': checkLedger,
  'nothing remains to be done': processes.checkRemaining,
  'the walk of expiries skips no open message': processes.checkExpiryWalk,
  'no process ended by itself, all respond': processes.checkProcesses,
  'logs have no error that a fault does not explain': processes.checkLogErrors,
  'logs have no number, text or secret': processes.checkLogSecrets,
} satisfies Record<string, Check>

/** By the counters, by what the API shows of the campaign, and by what it shows of the messages. */
const checkStatusCounts: Check = ({ statusCounts, campaigns, messages }) => {
  const ofCampaign = Map.groupBy(messages, ({ campaignId }) => campaignId)
  const wrong = campaigns.flatMap(({ id, shown: { recipients, counts } }) => {
    const own = ofCampaign.get(id) ?? []
    const stored = Map.groupBy(own, ({ shown }) => shown.status)
    const statuses = new Set([...Object.keys(counts), ...stored.keys()])
    const different = [...statuses].filter((status) => (counts[status] ?? 0) !== (stored.get(status)?.length ?? 0))
    return [
      ...different.map((status) => `campaign ${id} shows ${counts[status] ?? 0} ${status}, and has ${stored.get(status)?.length ?? 0}`),
      ...(recipients === own.length ? [] : [`campaign ${id} shows ${recipients} recipients, and has ${own.length} messages`]),
    ]
  })
  return { compared: Math.min(statusCounts.compared, campaigns.length), wrong: [...statusCounts.wrong, ...wrong] }
}

/** A check with nothing to compare has failed. */
export function runChecks(history: History): Result[] {
  const scripted = (Object.keys(history.scripted) as (keyof Scripted)[]).flatMap((record) => Object.entries(SCRIPTED_CHECKS[record]))
  return [...Object.entries<Check>(CHECKS), ...scripted].map(([check, run]) => {
    const outcome = run(history)
    const isEmpty = outcome.compared === 0 && outcome.wrong.length === 0
    return { check, ...outcome, ...(isEmpty && { wrong: ['there was nothing to compare'] }) }
  })
}

export function isClean(results: readonly Result[]): boolean {
  return results.every(({ wrong }) => wrong.length === 0)
}

const MAX_EXAMPLES = 5

export function describeResults(results: readonly Result[]): string {
  const width = Math.max(...results.map(({ check }) => check.length))
  return results
    .flatMap(({ check, compared, wrong, note }) => [
      `${wrong.length === 0 ? 'ok    ' : 'FAILED'}  ${check.padEnd(width)}  ${compared} compared${note ? `; ${note}` : ''}`,
      ...wrong.slice(0, MAX_EXAMPLES).map((sentence) => `          ${sentence}`),
      ...(wrong.length > MAX_EXAMPLES ? [`          and ${wrong.length - MAX_EXAMPLES} more`] : []),
    ])
    .join('\n')
}
