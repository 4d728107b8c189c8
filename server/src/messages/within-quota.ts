import { type AccountUsage, quotaExceeded, readUsage } from '../accounts/quotas.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import type { ApiError } from '../errors.ts'
import type { Outcome, Submission } from './accept.ts'
import { bytesOf } from './submitted-values.ts'

// Keeps accounts within their quotas. A node accepts one batch at a time, so each batch sees everything that the node accepted before: on one node
// quotas are exact. A batch does not see concurrent batches of other nodes, so each further node can exceed a quota by one batch.

/** How long an account with plenty of room is not checked again. A check in every batch made PostgreSQL work 26 % longer. */
const ROOMY_FOR_MS = 5_000
/** More than all nodes together accept in that time: one node accepts 6,000 messages a second. */
const PLENTY = { messages: 500_000, bytes: 50 * 2 ** 30 }

/** Accepts a batch. A submission without room is refused, unless the same request was accepted before. */
type Accept = (batch: Submission[]) => Promise<Outcome[]>

/** Makes a function that accepts the submissions that fit into the quotas of their accounts, in order. */
export function createQuotaKeeper(pool: Pool, accept: Accept): (batch: Submission[]) => Promise<Outcome[]> {
  const roomy = new Map<number, { version: string | undefined; until: number }>()

  /** An account whose quotas have changed has another version, and is checked again. */
  function isRoomy({ accountId, accountVersion }: Submission): boolean {
    const known = roomy.get(accountId)
    return known !== undefined && known.version === accountVersion && known.until > performance.now()
  }

  async function readQuotas(batch: Submission[]): Promise<Map<number, AccountUsage>> {
    const until = performance.now() + ROOMY_FOR_MS
    const versions = new Map(batch.map(({ accountId, accountVersion }) => [accountId, accountVersion]))
    const usages = await readUsage(pool, [...versions.keys()])
    for (const [accountId, { messages, bytes }] of usages) {
      const isPlenty = messages.quota - messages.used > PLENTY.messages && bytes.quota - bytes.used > PLENTY.bytes
      if (isPlenty) roomy.set(accountId, { version: versions.get(accountId), until })
      else roomy.delete(accountId)
    }
    return usages
  }

  return async (batch) => {
    if (batch.every(isRoomy)) return await accept(batch)
    return await acceptWithin(batch, await readQuotas(batch), accept)
  }
}

/**
 * Accepts as many submissions as fit, and tries the rest again with the room that is left: a request that was accepted before, or is refused for
 * another reason, takes no room. Each iteration ends at least one request of every account, so there are at most as many iterations as requests.
 */
async function acceptWithin(batch: Submission[], usages: Map<number, AccountUsage>, accept: Accept): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let waiting = [...batch.keys()]; waiting.length > 0; ) {
    const fitting = fittingOf(waiting, batch, usages)
    const current = waiting.filter((index) => fitting.has(index))
    const results = await acceptSafely(
      accept,
      current.map((index) => ({ ...(batch[index] as Submission), hasRoom: fitting.get(index) === true })),
    )
    current.forEach((index, place) => {
      const outcome = results[place] as Outcome
      const submission = batch[index] as Submission
      if (outcome.is === 'accepted') use(usages, submission)
      outcomes[index] =
        outcome.is === 'no-room' ? { is: 'refused', error: beyondQuota(usages.get(submission.accountId), submission) } : outcome
    })
    waiting = waiting.filter((index) => !fitting.has(index))
  }
  return outcomes
}

/**
 * If the database refuses the batch because of one submission, each submission is run alone. The error becomes an outcome: the batcher would
 * run the batch again after a throw, with submissions that were accepted before. If the database is unavailable, this throws: the batcher then
 * runs nothing again, and fails all waiting submissions.
 */
async function acceptSafely(accept: Accept, batch: Submission[]): Promise<Outcome[]> {
  try {
    return await accept(batch)
  } catch (error) {
    if (isUnavailable(error)) throw error
    if (batch.length === 1) return [{ is: 'refused', error }]
    const outcomes: Outcome[] = []
    for (const submission of batch) outcomes.push(...(await acceptSafely(accept, [submission])))
    return outcomes
  }
}

/** Returns which waiting submissions to run now, and whether they have room. If a submission has no room, later ones of its account have none. */
function fittingOf(waiting: number[], batch: Submission[], usages: Map<number, AccountUsage>): Map<number, boolean> {
  const left = structuredClone(usages)
  const fitting = new Map<number, boolean>()
  const fullAfter = new Map<number, 'some' | 'none'>()
  for (const index of waiting) {
    const submission = batch[index] as Submission
    const { accountId } = submission
    if (!fullAfter.has(accountId) && exceeded(left.get(accountId), submission) !== undefined) {
      const hasFitting = [...fitting.keys()].some((other) => batch[other]?.accountId === accountId)
      fullAfter.set(accountId, hasFitting ? 'some' : 'none')
    }
    if (!fullAfter.has(accountId)) {
      fitting.set(index, true)
      use(left, submission)
    } else if (fullAfter.get(accountId) === 'none') fitting.set(index, false)
  }
  return fitting
}

function exceeded(usage: AccountUsage | undefined, submission: Submission): 'messagesPerDay' | 'storedBytes' | undefined {
  if (usage === undefined) return undefined
  const { messages, bytes } = usage
  const { length } = submission.recipients
  if (messages.used + length > messages.quota) return 'messagesPerDay'
  return bytes.used + length * bytesOf(submission) > bytes.quota ? 'storedBytes' : undefined
}

function use(usages: Map<number, AccountUsage>, submission: Submission): void {
  const usage = usages.get(submission.accountId)
  if (usage === undefined) return
  usage.messages.used += submission.recipients.length
  usage.bytes.used += submission.recipients.length * bytesOf(submission)
}

function beyondQuota(usage: AccountUsage | undefined, submission: Submission): ApiError {
  const { messages, bytes, secondsToMidnight } = usage as AccountUsage
  if (exceeded(usage, submission) === 'storedBytes') return quotaExceeded('storedBytes', bytes.quota, bytes.used)
  return quotaExceeded('messagesPerDay', messages.quota, messages.used, { retryAfterSeconds: secondsToMidnight })
}
