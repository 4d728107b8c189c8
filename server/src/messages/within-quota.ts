import { quotaExceeded, SECONDS_TO_MIDNIGHT, usageOf } from '../accounts/quotas.ts'
import { ROW_BYTES } from '../accounts/usage.ts'
import { listed } from '../db/pool.ts'
import type { ApiError } from '../errors.ts'
import type { Submission } from './accept.ts'

// How accepting keeps accounts within their quotas, by three statements. The usual one checks nothing, since its accounts had plenty of
// room a moment ago: checking in every batch took 1.26 times PostgreSQL's time for batches of three. The second looks how much room there
// is. The third numbers the requests of an account that may not have room for all of them.

/** How long an account that had plenty of room is taken to have room. */
const ROOMY_FOR_MS = 1_000
/** Plenty: more than all nodes together accept in that time. One accepts 6,000 messages a second. */
const PLENTY = { messages: 100_000, bytes: 10 * 2 ** 30 }

/** Remembers which accounts had plenty of room. An account whose quotas were changed since has another version, and is looked at again. */
export function createRoom() {
  const roomy = new Map<number, { version: string | undefined; until: number }>()
  return {
    isPlenty: (batch: Submission[]): boolean => {
      const now = performance.now()
      return batch.every(({ accountId, accountVersion }) => {
        const known = roomy.get(accountId)
        return known !== undefined && known.version === accountVersion && known.until > now
      })
    },
    /** `looks`: what a statement that began at `began` saw, each an account and its usage. */
    note: (batch: Submission[], began: number, looks: (string[] | null)[]): void => {
      const versions = new Map(batch.map(({ accountId, accountVersion }) => [accountId, accountVersion]))
      for (const look of looks) {
        const [accountId = 0, quota = 0, messages = 0, bytesQuota = 0, bytes = 0] = look?.map(Number) ?? []
        const isPlenty = quota - messages > PLENTY.messages && bytesQuota - bytes > PLENTY.bytes
        if (isPlenty) roomy.set(accountId, { version: versions.get(accountId), until: began + ROOMY_FOR_MS })
        else roomy.delete(accountId)
      }
    },
  }
}

export type Exceeded = 'messages-quota' | 'bytes-quota'

/** A step `looked`: the usage of the accounts, and whether one may not have room for all of the batch. Takes the parameters from `first` on. */
export const lookAtUsage = (first: number) => `
  looked as materialized (
    select asked.account_id, own.usage,
      own.usage[2] + asked.messages > own.usage[1] or own.usage[4] + asked.bytes > own.usage[3] as is_tight
    from unnest(${listed(`$${first}::int[]`)}, ${listed(`$${first + 1}::bigint[]`)}, ${listed(`$${first + 2}::bigint[]`)}) as asked (account_id, messages, bytes),
      lateral (${usageOf('asked.account_id')}) as own
  )`

/** The parameters of `lookAtUsage`: the accounts, and the most messages and bytes that each can add. */
export function mostAsked(batch: Submission[], contents: (string | null)[], fallbacks: (string | null)[]): unknown[] {
  const asked = new Map<number, { messages: number; bytes: number }>()
  batch.forEach(({ accountId, recipients, clientReferenceId = '' }, index) => {
    const { messages, bytes } = asked.get(accountId) ?? { messages: 0, bytes: 0 }
    const characters = (contents[index]?.length ?? 0) + (fallbacks[index]?.length ?? 0) + clientReferenceId.length
    // A UTF-16 unit is at most three bytes in UTF-8.
    const own = recipients.length * (ROW_BYTES + 3 * characters)
    asked.set(accountId, { messages: messages + recipients.length, bytes: bytes + own })
  })
  const all = [...asked.values()]
  return [[...asked.keys()], all.map(({ messages }) => messages), all.map(({ bytes }) => bytes)]
}

/**
 * A step `refused`: of the requests in `fresh`, in their order, those that do not fit any more. What is used is read once for each account,
 * with its first request; without "offset 0" PostgreSQL would read it for every request.
 */
export const REFUSED = `
  refused as materialized (
    select n, case when usage[2] + messages_so_far > usage[1] then 'messages-quota' else 'bytes-quota' end as outcome,
      case when usage[2] + messages_so_far > usage[1] then array[usage[1], greatest(usage[2], least(usage[1], usage[2] + messages_so_far - messages)), ${SECONDS_TO_MIDNIGHT}]
        else usage[3:4] end as exceeded
    from (
      select *, first_value(own_usage) over so_far as usage
      from (
        select *, case when place = 1 then (${usageOf('numbered.account_id')}) end as own_usage
        from (
          select n, account_id, messages, sum(messages) over so_far as messages_so_far, sum(messages * bytes) over so_far as bytes_so_far,
            row_number() over so_far as place
          from (select n, account_id, bytes, cardinality(recipients::text[]) as messages from fresh where n = first_n) as asked
          window so_far as (partition by account_id order by n)
        ) as numbered
        offset 0
      ) as numbered
      window so_far as (partition by account_id order by n)
    ) as measured
    where usage[2] + messages_so_far > usage[1] or usage[4] + bytes_so_far > usage[3]
  )`

export const IS_NOT_REFUSED = 'and n not in (select n from refused)'
// Also refuses requests that have the key of a refused one.
export const TELL_REFUSED = `
  select n, outcome, null, null, exceeded, 1 from refused
  union all
  select f.n, r.outcome, null, null, r.exceeded, 1 from fresh f, lateral (select * from refused where refused.n = f.first_n) as r where f.n <> f.first_n
  union all`
export const TELL_LOOKED = `select 0, 'looked', null, null, array_prepend(account_id::bigint, usage), 1 from looked union all`

/** The error for a refused request. `exceeded`: the quota, what is used of it, the seconds to midnight. */
export function beyondQuota(outcome: Exceeded, exceeded: string[] | null): ApiError {
  const [quota = 0, used = 0, secondsToMidnight = 0] = exceeded?.map(Number) ?? []
  if (outcome === 'bytes-quota') return quotaExceeded('storedBytes', quota, used)
  return quotaExceeded('messagesPerDay', quota, used, { retryAfterSeconds: secondsToMidnight })
}
