import type { Evidence } from './evidence.ts'
import type { Comparison, Line } from './line.ts'
import { judgeAccepted, judgeAnswers, judgeAvailability, judgeCampaigns, judgeGivenUp, judgeKeys } from './verdict-asked.ts'
import { judgeAccounts, judgeContents } from './verdict-contents.ts'
import { judgeEnds, judgeLedger, judgeNetwork, judgeRepeats, judgeSms } from './verdict-network.ts'
import { judgeReplies } from './verdict-replies.ts'
import { judgeComplaints, judgeDiscretion, judgeLeases, judgeLeft, judgeProcesses, judgeUpsets, judgeWalk } from './verdict-rest.ts'
import { judgeSteps } from './verdict-steps.ts'
import {
  judgeAgain,
  judgeArrivals,
  judgeChanges,
  judgeCounters,
  judgeFeed,
  judgeLog,
  judgeOrder,
  judgeStatusCounts,
} from './verdict-told.ts'

// The verdict: `judge(await gatherEvidence(…))` gives a line for each promise, and `isClean(lines)` says whether all of them were kept. Judges
// take plain data alone, and know nothing of how it came about.

const JUDGES: readonly ((evidence: Evidence) => Comparison)[] = [
  judgeUpsets,
  judgeAnswers,
  judgeAvailability,
  judgeAccepted,
  judgeCampaigns,
  judgeContents,
  judgeAccounts,
  judgeEnds,
  judgeSteps,
  judgeNetwork,
  judgeReplies,
  judgeRepeats,
  judgeSms,
  judgeLeases,
  judgeCounters,
  judgeStatusCounts,
  judgeChanges,
  judgeLog,
  judgeFeed,
  judgeArrivals,
  judgeAgain,
  judgeOrder,
  judgeKeys,
  judgeGivenUp,
  judgeLedger,
  judgeLeft,
  judgeWalk,
  judgeProcesses,
  judgeComplaints,
  judgeDiscretion,
]

export function judge(evidence: Evidence): Line[] {
  return JUDGES.map((judgeOne) => {
    const { compared, wrong, ...line } = judgeOne(evidence)
    return { ...line, wrong: compared > 0 || wrong.length > 0 ? wrong : ['there was nothing to compare'] }
  })
}

export function isClean(lines: readonly Line[]): boolean {
  return lines.every(({ wrong }) => wrong.length === 0)
}

const MOST_EXAMPLES = 5

export function describe(lines: readonly Line[]): string {
  const width = Math.max(...lines.map(({ promise }) => promise.length))
  return lines
    .flatMap(({ promise, figures, wrong }) => [
      `${wrong.length === 0 ? 'ok   ' : 'WRONG'}  ${promise.padEnd(width)}  ${figures}`,
      ...wrong.slice(0, MOST_EXAMPLES).map((fault) => `         ${fault}`),
      ...(wrong.length > MOST_EXAMPLES ? [`         and ${wrong.length - MOST_EXAMPLES} more`] : []),
    ])
    .join('\n')
}
