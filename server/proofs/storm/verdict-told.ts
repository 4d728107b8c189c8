import { eventBody } from '../../src/events/pages.ts'
import { assertInOrder, countRepeated, findMisarrived, type Theirs } from '../crash/webhook-checks.ts'
import type { Arrival } from '../crash/webhook-sink.ts'
import { findDisordered, findMisplaced } from '../log.ts'
import { explainsRepeat, isDatabase, isWebhooks } from './causes.ts'
import type { Attempt, Evidence } from './evidence.ts'
import { type Comparison, countBy, least } from './line.ts'

// What was counted and told, against what has changed.

export function judgeCounters({ counted }: Evidence): Comparison {
  return {
    promise: 'counters against rows',
    figures: `${counted.compared} counters of reports, each worked out anew`,
    compared: counted.compared,
    wrong: counted.faults,
  }
}

/** How many messages of a campaign have which status: by its counters, by what the API shows of it, and by what the API shows of its messages. */
export function judgeStatusCounts({ campaignsCounted, campaigns, messages }: Evidence): Comparison {
  const ofCampaign = Map.groupBy(messages, ({ campaignId }) => campaignId)
  const misshown = campaigns.flatMap(({ id, shown: { recipients, counts } }) => {
    const own = ofCampaign.get(id) ?? []
    const there = countBy(own, ({ shown }) => shown.status)
    const wrong = [...new Set([...Object.keys(counts), ...there.keys()])].filter(
      (status) => (counts[status] ?? 0) !== (there.get(status) ?? 0),
    )
    return [
      ...wrong.map(
        (status) => `campaign ${id} shows ${counts[status] ?? 0} messages that are ${status}, and has ${there.get(status) ?? 0}`,
      ),
      ...(recipients === own.length ? [] : [`campaign ${id} shows ${recipients} recipients, and has ${own.length} messages`]),
    ]
  })
  return {
    promise: 'status counts of campaigns against their messages',
    figures: `${campaignsCounted.compared} counts, each held against the rows and against what the API shows`,
    compared: least([campaignsCounted.compared, campaigns.length]),
    wrong: [...campaignsCounted.faults, ...misshown],
  }
}

export function judgeChanges({ changesTold, log }: Evidence): Comparison {
  const { compared, faults } = changesTold
  return { promise: 'events against changes', figures: `${compared} changes, ${log.length} events`, compared, wrong: faults }
}

/** Every page has a place, every position has one event, and of a message the log tells in the order in which it happened. */
export function judgeLog({ pages, heads, log, told }: Evidence): Comparison {
  const logs = told.map(({ accountId }) => log.filter((event) => event.accountId === accountId))
  return {
    promise: 'the log has each position once, in order',
    figures: `${pages.length} pages of ${heads.length} accounts, ${log.length} events`,
    compared: least([pages.length, heads.length, ...logs.map((own) => own.length)]),
    wrong: [...findMisplaced(pages, heads), ...logs.flatMap(findDisordered)],
  }
}

/** Read all the while, it has the log of its account: nothing missed, nothing twice, in its order. */
export function judgeFeed({ told, log }: Evidence): Comparison {
  const feeds = told.map(({ accountId, followed }) => ({ accountId, followed, own: log.filter((event) => event.accountId === accountId) }))
  return {
    promise: 'the feed against the log',
    figures: feeds.map(({ own, followed }) => `${own.length} events, ${followed.length} read`).join('; '),
    compared: least(feeds.map(({ own }) => own.length)),
    wrong: feeds.flatMap(({ accountId, own, followed }) => misread(own, followed).map((fault) => `account ${accountId}: ${fault}`)),
  }
}

function misread(log: Evidence['log'], followed: unknown[]): string[] {
  const [had, should] = [followed.map((event) => JSON.stringify(event)), log.map((event) => JSON.stringify(JSON.parse(eventBody(event))))]
  const place = should.findIndex((event, n) => event !== had[n])
  const wrong = place < 0 ? [] : [`event ${place + 1} is ${log[place]?.eventId}, and the reader had ${had[place] ?? 'none'}`]
  if (had.length > should.length) wrong.push(`the reader had ${had.length - should.length} more than there are`)
  return wrong
}

type Their = Theirs & { path: string; attempts: Attempt[] }

function theirsOf({ told, log, attempts }: Evidence): Their[] {
  const byPath = Map.groupBy(attempts, ({ path }) => path)
  return told.flatMap(({ accountId, endpoints }) =>
    endpoints.map(({ path, kinds, arrivals }) => {
      const own = byPath.get(path) ?? []
      return {
        path,
        arrivals,
        expected: log.filter((event) => event.accountId === accountId && (kinds === undefined || kinds.includes(event.kind))),
        attempts: own,
        unanswered: own.filter(({ status }) => status === null).map(({ eventId }) => eventId),
      }
    }),
  )
}

export function judgeArrivals(evidence: Evidence): Comparison {
  const all = theirsOf(evidence)
  const figures = all.map(({ path, expected, arrivals }) => `${path} ${expected.length} wanted, ${arrivals.length} requests`)
  const wrong = all.flatMap((theirs) =>
    Object.entries(findMisarrived(theirs)).flatMap(([fault, ids]) => ids.map((id) => `${theirs.path}: ${id} is ${fault}`)),
  )
  return {
    promise: 'endpoints against the log',
    figures: figures.join('; '),
    compared: least(all.map(({ expected }) => expected.length)),
    wrong,
  }
}

// Calls to an endpoint at once, at most; and as many of which is being written down what came of them.
const UNDER_WAY = 2 * 64

/** At least once is what is promised; but what was taken comes again only where an upset kept that from being written down. */
export function judgeAgain(evidence: Evidence): Comparison {
  const { upsets } = evidence
  const all = theirsOf(evidence)
  const most = upsets.filter((upset) => isWebhooks(upset) || isDatabase(upset)).length * UNDER_WAY
  const counted = all.map((theirs) => ({ ...theirs, ...countRepeated(theirs) }))
  return {
    promise: 'an event comes again only where an upset explains it',
    figures: counted.map(({ path, refused, again }) => `${path} ${refused} refused, ${again} again after they were taken`).join('; '),
    compared: all.reduce((sum, { attempts }) => sum + attempts.length, 0),
    wrong: counted.flatMap(({ path, arrivals, attempts, again }) => [
      ...repeated(arrivals)
        .filter(({ takenAt, againAt }) => !upsets.some((upset) => explainsRepeat(upset, takenAt, againAt)))
        .map(
          ({ eventId, takenAt }) => `${path}: ${eventId}, taken at ${new Date(takenAt).toISOString()}, came again, and nobody was upset`,
        ),
      ...(again > most ? [`${path}: ${again} came again; under way were ${most} at the most`] : []),
      ...unseen(arrivals, attempts).map((what) => `${path}: an attempt that the endpoint has not seen: ${what}`),
    ]),
  }
}

/** `takenAt`: for the first time. `againAt`: when it came again. */
function repeated(arrivals: readonly Arrival[]): { eventId: string; takenAt: number; againAt: number }[] {
  const taken = new Map<string, number>()
  return arrivals.flatMap(({ eventId, status, at }) => {
    const takenAt = taken.get(eventId)
    if (takenAt !== undefined) return [{ eventId, takenAt, againAt: at }]
    if (status < 300) taken.set(eventId, at)
    return []
  })
}

/** Whatever was written down has happened: no more attempts with a status than requests that were answered with it. */
function unseen(arrivals: readonly Arrival[], attempts: readonly Attempt[]): string[] {
  const keyOf = ({ eventId, status }: Pick<Attempt, 'eventId' | 'status'>) => `${eventId} ${status}`
  const seen = countBy(arrivals, keyOf)
  const answered = attempts.filter(({ status }) => status !== null)
  return [...countBy(answered, keyOf)].filter(([what, count]) => count > (seen.get(what) ?? 0)).map(([what]) => what)
}

/** Of messages whose events were taken whenever they came: a freeze can use up an endpoint's 15 s, and then the event comes later. */
export function judgeOrder(evidence: Evidence): Comparison {
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
    compared,
    wrong,
  }
}
