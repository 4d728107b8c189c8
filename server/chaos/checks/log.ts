import { eventBody } from '../../src/events/pages.ts'
import { MESSAGE_KINDS } from '../../test/support/emitted.ts'
import type { History } from '../history/history.ts'
import type { Head, Logged, Page } from '../history/log.ts'
import { type Check, duplicates, least } from './result.ts'

// The log of events: its positions, its order, and the feed that was read all the while.

const ofAccounts = ({ received, log }: History) =>
  received.map(({ accountId, feed }) => ({ accountId, feed, own: log.filter((event) => event.accountId === accountId) }))

/** Every page has a position, every position has one event, and the events of a message are in the order of its steps. */
export const checkLog: Check = (history) => {
  const { pages, heads } = history
  const logs = ofAccounts(history).map(({ own }) => own)
  return {
    compared: least([pages.length, heads.length, ...logs.map((own) => own.length)]),
    wrong: [...wrongPages(pages, heads), ...logs.flatMap(wrongOrder)],
  }
}

function wrongPages(pages: readonly Page[], heads: readonly Head[]): string[] {
  const wrong = pages
    .filter(({ eventCount, stored }) => eventCount !== stored || stored === 0)
    .map(({ pageId, eventCount, stored }) => `page ${pageId} says that it has ${eventCount} events, and has ${stored}`)
  const twice = duplicates(pages, ({ accountId, pageId }) => `page ${pageId} of account ${accountId}`)
  wrong.push(...twice.map(([page, count]) => `${page} exists ${count} times`))
  const headOf = new Map(heads.map(({ accountId, lastPosition }) => [accountId, lastPosition]))
  const byAccount = Map.groupBy(pages, ({ accountId }) => accountId)
  const positionOf = ({ lastPosition }: Page) => lastPosition ?? Number.POSITIVE_INFINITY
  for (const accountId of new Set([...headOf.keys(), ...byAccount.keys()])) {
    let reached = 0
    const inOrder = (byAccount.get(accountId) ?? []).toSorted((one, other) => (positionOf(one) < positionOf(other) ? -1 : 1))
    for (const { pageId, eventCount, lastPosition } of inOrder) {
      const page = `page ${pageId} of account ${accountId}`
      if (lastPosition === null) wrong.push(`${page} has no position`)
      else {
        const first = lastPosition - eventCount + 1
        if (first !== reached + 1) wrong.push(`${page} begins at ${first}, and the one before ends at ${reached}`)
        reached = lastPosition
      }
    }
    const head = headOf.get(accountId) ?? 0
    if (head !== reached) wrong.push(`the log of account ${accountId} ends at ${reached}, and its head is ${head}`)
  }
  return wrong
}

/** Messages whose events are not in the order of the steps, and ids that two events have. */
function wrongOrder(log: readonly Logged[]): string[] {
  const inOrder = log.toSorted((one, other) => one.position - other.position)
  const ofMessages = Map.groupBy(
    inOrder.filter(({ kind }) => MESSAGE_KINDS.includes(kind)),
    ({ subjectId }) => subjectId,
  )
  const disordered = [...ofMessages].filter(([, steps]) =>
    steps.some(({ kind }, n) => n > 0 && MESSAGE_KINDS.indexOf(kind) <= MESSAGE_KINDS.indexOf((steps[n - 1] as Logged).kind)),
  )
  return [
    ...disordered.map(([id, steps]) => `the log has for ${id}, in this order: ${steps.map(({ kind }) => kind).join(', ')}`),
    ...duplicates(log, ({ eventId }) => eventId).map(([eventId, count]) => `${count} events have the id ${eventId}`),
  ]
}

/** The reader of the feed got the log: nothing missing, nothing twice, in its order. */
export const checkFeed: Check = (history) => {
  const feeds = ofAccounts(history)
  return {
    compared: least(feeds.map(({ own }) => own.length)),
    wrong: feeds.flatMap(({ accountId, own, feed }) => wrongFeed(own, feed).map((sentence) => `account ${accountId}: ${sentence}`)),
  }
}

function wrongFeed(log: History['log'], feed: unknown[]): string[] {
  const [got, should] = [feed.map((event) => JSON.stringify(event)), log.map((event) => JSON.stringify(JSON.parse(eventBody(event))))]
  const index = should.findIndex((event, n) => event !== got[n])
  const wrong = index < 0 ? [] : [`event ${index + 1} is ${log[index]?.eventId}, and the reader got ${got[index] ?? 'none'}`]
  if (got.length > should.length) wrong.push(`the reader got ${got.length - should.length} more events than exist`)
  return wrong
}
