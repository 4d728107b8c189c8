import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { maskEntry } from '../audit/mask.ts'
import { type Actor, hasChanged, lockSubject, type RecordChange, recordChange } from '../audit/record.ts'
import { joinablePool, joinTransaction } from '../db/joined.ts'
import { accountTransaction, type Executor, type Pool, transaction } from '../db/pool.ts'
import { actionsOf } from './command.ts'

/** What an entry says about the change. `action`: needed if the command declares several. */
type Facts = { action?: string; accountId?: number | undefined; subject?: string | number | undefined }

type Change<T> = Facts & {
  /** Reads what the change replaces. If the change leaves it as it is, there is no entry. */
  before?: (db: Pool) => Promise<unknown>
  change: (db: Pool) => Promise<T>
  /**
   * The facts that are known only after the change. `after`: the part of the result for the entry, by default all of it. `isChanged`: needed if
   * the states do not show whether something changed.
   */
  entry?: (result: T) => Facts & { before?: unknown; after?: unknown; isChanged?: boolean }
}

/**
 * Makes a change and its entry in the audit log in one transaction: both are committed, or neither is. The transaction must be short, so ask the
 * operator first. `change` gets a pool that runs everything in this transaction.
 */
export async function audited<T>(pool: Pool, command: Command, { before, change, entry, ...facts }: Change<T>): Promise<T> {
  const db = joinablePool(pool)
  const work = (tx: Executor) =>
    joinTransaction(tx, async () => {
      if (before !== undefined) await lockSubject(tx, facts)
      const replaced = await before?.(db)
      const result = await change(db)
      const { after = result, isChanged, ...more } = { before: replaced, isChanged: undefined, ...entry?.(result) }
      if (hasChanged({ before: replaced, after, isChanged })) await recorder(command, { ...facts, ...more })(tx, after)
      return result
    })
  return facts.accountId === undefined ? await transaction(pool, work) : await accountTransaction(pool, facts.accountId, work)
}

/** For a change that needs several transactions: a function to call in the one that makes it visible. `after` can be given here or there. */
export function recorder(
  command: Command,
  { action, accountId, subject, ...states }: Facts & { before?: unknown; after?: unknown },
): RecordChange {
  const entry = { action: actionFor(command, action), ...(accountId !== undefined && { accountId }) }
  return async (tx, after = states.after, before = states.before) => {
    const shown = { ...(subject !== undefined && { subject: String(subject) }), before, after }
    await recordChange(tx, theActor(), { ...entry, ...(maskEntry(shown) as object) })
  }
}

function actionFor(command: Command, action: string | undefined): string {
  const declared = actionsOf(command) ?? []
  const chosen = action ?? (declared.length === 1 ? declared[0] : undefined)
  if (chosen === undefined || !declared.includes(chosen))
    throw new Error(`the command ${command.name()} does not declare the action ${action}`)
  return chosen
}

/** The user of the operating system. In a container, its id may have no name. */
function theActor(): Actor {
  const name = () => {
    try {
      return userInfo().username
    } catch {
      return `uid ${process.getuid?.()}`
    }
  }
  return { kind: 'command', name: name(), address: hostname() }
}
