import { eventBody } from '../../src/events/feed.ts'
import { assertInOrder, countRepeated, findMisarrived, type Theirs } from '../crash/webhook-checks.ts'
import type { Evidence } from './evidence.ts'
import type { Line } from './line.ts'

// What was counted and told, against what has changed.

export function judgeCounters({ counted, campaignsCounted }: Evidence): Line {
  const wrong = [...counted.faults, ...campaignsCounted.faults]
  if (counted.compared === 0 && wrong.length === 0) wrong.push('nothing was counted')
  const figures = `${counted.compared} counters of reports and ${campaignsCounted.compared} of campaigns, each worked out anew`
  return { promise: 'counters against rows', figures, wrong }
}

export function judgeChanges({ changesTold, log }: Evidence): Line {
  const wrong = [...changesTold.faults]
  if (changesTold.compared === 0 && wrong.length === 0) wrong.push('nothing was told')
  return { promise: 'events against changes', figures: `${changesTold.compared} changes, ${log.length} events`, wrong }
}

/** Read all the while, it has the log: nothing missed, nothing twice, in its order. */
export function judgeFeed({ told: { followed }, log }: Evidence): Line {
  const [had, should] = [followed.map((event) => JSON.stringify(event)), log.map((event) => JSON.stringify(JSON.parse(eventBody(event))))]
  const place = should.findIndex((event, n) => event !== had[n])
  const wrong = place < 0 ? [] : [`event ${place + 1} is ${log[place]?.eventId}, and the reader had ${had[place] ?? 'none'}`]
  if (had.length > should.length) wrong.push(`the reader had ${had.length - should.length} more than there are`)
  return { promise: 'the feed against the log', figures: `${log.length} events, ${followed.length} read`, wrong }
}

function theirsOf({ told: { endpoints }, log, unanswered }: Evidence): (Theirs & { path: string })[] {
  return endpoints.map(({ path, kinds, arrivals }) => ({
    path,
    arrivals,
    expected: log.filter(({ kind }) => kinds === undefined || kinds.includes(kind)),
    unanswered: unanswered.filter((one) => one.path === path).map(({ eventId }) => eventId),
  }))
}

export function judgeArrivals(evidence: Evidence): Line {
  const all = theirsOf(evidence)
  const figures = all.map((theirs) => {
    const { again, refused, ofEvents } = countRepeated(theirs)
    return `${theirs.path} ${ofEvents} wanted, ${theirs.arrivals.length} requests (${refused} refused, ${again} again after they were taken)`
  })
  const wrong = all.flatMap((theirs) =>
    Object.entries(findMisarrived(theirs)).flatMap(([fault, ids]) => ids.map((id) => `${theirs.path}: ${id} is ${fault}`)),
  )
  return { promise: 'endpoints against the log', figures: figures.join('; '), wrong }
}

/** Of messages whose events were taken whenever they came: a freeze can use up an endpoint's 15 s, and then the event comes later. */
export function judgeOrder(evidence: Evidence): Line {
  const wrong: string[] = []
  let compared = 0
  for (const theirs of theirsOf(evidence)) {
    try {
      compared += assertInOrder(theirs)
    } catch (error) {
      wrong.push(`${theirs.path}: ${(error as Error).message}`)
    }
  }
  return {
    promise: 'the events of a message in their order',
    figures: `${compared} messages whose events were all taken at the first try`,
    wrong,
  }
}
