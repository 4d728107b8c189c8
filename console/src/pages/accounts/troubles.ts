import type { Tone } from '../../kit/tone.ts'
import * as say from '../../words/en-accounts.ts'
import { shortDuration } from '../../words/numbers.ts'
import type { Account, Figures } from './accounts-types.ts'

/** Something in an account that needs a look. `page`: where. */
export type Trouble = { tone: Tone; text: string; page: 'messages' | 'webhooks' | 'health' | undefined; query?: Record<string, string> }

/** A message that could be sent waits less than a second where all is well. */
const LATE_MS = 60_000
/** So few failed messages say nothing about an account. */
const FEW_FAILED = 3
const MANY_FAILED = 0.1
const MOST_FAILED = 0.5
const MUCH_USED = 0.8

/** What needs a look in an account, the worst first. */
export function troublesOf(figures: Figures | undefined): Trouble[] {
  if (figures === undefined) return []
  const { oldestDueMs, failingEndpoints, accepted, failed, quotaUsed } = figures
  // A message may fail long after it was accepted.
  const share = failed / Math.max(accepted, failed, 1)
  const all: (Trouble | false)[] = [
    (oldestDueMs ?? 0) > LATE_MS && { tone: 'bad', text: say.lateSince(shortDuration(oldestDueMs ?? 0)), page: 'health' },
    failingEndpoints > 0 && { tone: 'bad', text: say.failingEndpoints(failingEndpoints), page: 'webhooks' },
    failed >= FEW_FAILED &&
      share >= MANY_FAILED && {
        tone: share >= MOST_FAILED ? 'bad' : 'warn',
        text: say.failedOf(failed, Math.max(accepted, failed)),
        page: 'messages',
        query: { status: 'FAILED,EXPIRED' },
      },
    quotaUsed >= MUCH_USED && { tone: quotaUsed >= 1 ? 'bad' : 'warn', text: say.quotaUsed(quotaUsed), page: undefined },
  ]
  // `bad` is before `warn`.
  return all.filter((each) => each !== false).sort((a, b) => a.tone.localeCompare(b.tone))
}

type Listed = Pick<Account, 'accountId' | 'name' | 'modules' | 'suspendedAt'>
export type Row = { account: Listed; figures: Figures | undefined; troubles: Trouble[] }

/** All accounts, by their trouble: the more is wrong, the higher. Those without trouble are in the order of their names. */
export function byTrouble(accounts: Listed[], figures: Figures[]): Row[] {
  const known = new Map(figures.map((each) => [each.accountId, each]))
  return accounts
    .map((account) => ({ account, figures: known.get(account.accountId), troubles: troublesOf(known.get(account.accountId)) }))
    .sort((a, b) => weightOf(b) - weightOf(a) || a.account.name.localeCompare(b.account.name))
}

/** What is wrong counts before any number of warnings. Of two with as many troubles, the one with more failed messages is first. */
function weightOf({ troubles, figures }: Row): number {
  const share = 1 - 1 / (1 + (figures?.failed ?? 0))
  return troubles.reduce((sum, { tone }) => sum + (tone === 'bad' ? 1_000 : 10), share)
}
