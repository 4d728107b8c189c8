import { setTimeout as sleep } from 'node:timers/promises'
import { noSuchAccount, requireAccount } from '../accounts/accounts.ts'
import { timeOf } from '../db/partitions.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { webhookSecretPlace } from '../db/secrets.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { OperatorError } from '../errors.ts'
import { recordEvent, utcText } from '../events/changes.ts'
import { readHead } from '../events/pages.ts'
import type { EventKind } from '../events/schemas.ts'
import { newSecret } from './sign.ts'

export type Endpoint = {
  endpointId: number
  accountId: number
  url: string
  /** The kinds of events that it wants; null: all of them, also those that later versions bring. */
  events: EventKind[] | null
  status: 'ACTIVE' | 'DISABLED'
  failingSince: Date | null
  disabledAt: Date | null
  disabledBecause: 'FAILING' | 'OPERATOR' | null
  createdAt: Date
}

/** `url`: as `checkEndpointUrl` gives it. */
export type NewEndpoint = { accountId: number; url: string; kinds?: readonly EventKind[] | undefined }
export type AddedEndpoint = Pick<Endpoint, 'endpointId' | 'accountId' | 'url' | 'events' | 'status' | 'createdAt'> & { secret: string }

/** Counts end at COUNTED_UP_TO: where there are more, `moreWaiting` and `moreFailed` say so. */
export type ListedEndpoint = Endpoint & {
  /** To be posted, now or again later. */
  waiting: number
  moreWaiting: boolean
  /** Of which all tries have failed; a replay sends them again. */
  failed: number
  moreFailed: boolean
  /** Never what they are. The one with no end is the one that the last rotation made. */
  secrets: { createdAt: string; endsAt: string | null }[]
}

export const COUNTED_UP_TO = 10_000
// What a replaced secret signs on for beside the new one.
const OVERLAP_HOURS = 24
// Each of them signs each call, with 48 characters of a header. Servers take 8 KiB of headers, many no more.
const MOST_SECRETS = 10
// Of an account: each event is written down for each of them.
const MOST_ENDPOINTS = 20
const PORTION_ROWS = 5_000
const LOOK_AGAIN_MS = 20

const ENDPOINT = `id as "endpointId", account_id as "accountId", url, kinds as events, status, failing_since as "failingSince",
  disabled_at as "disabledAt", disabled_because as "disabledBecause", created_at as "createdAt"`

/**
 * Of two with the same URL at once, the second is told about the first: adding locks the account's row, though not against the messages
 * and campaigns that refer to it. The secret is shown this once.
 */
export async function addEndpoint(pool: Pool, { accountId, url, kinds }: NewEndpoint, keyring: Keyring): Promise<AddedEndpoint> {
  return await transaction(pool, async (tx) => {
    const { rowCount } = await tx.query('select from accounts where id = $1 for no key update', [accountId])
    if (rowCount === 0) noSuchAccount(accountId)
    const { rows: taken } = await tx.query<{ id: number }>('select id from webhook_endpoints where account_id = $1 and url = $2', [
      accountId,
      url,
    ])
    if (taken[0] !== undefined) {
      throw new OperatorError(`The endpoint ${taken[0].id} of account ${accountId} has this URL already; remove that one first.`)
    }
    const { rowCount: endpoints } = await tx.query('select from webhook_endpoints where account_id = $1', [accountId])
    if ((endpoints ?? 0) >= MOST_ENDPOINTS) {
      throw new OperatorError(`Account ${accountId} has ${MOST_ENDPOINTS} endpoints already, which is the most; remove one first.`)
    }
    const { rows } = await tx.query<Omit<AddedEndpoint, 'secret'>>(
      `insert into webhook_endpoints (account_id, url, kinds) values ($1, $2, $3)
       returning id as "endpointId", account_id as "accountId", url, kinds as events, status, created_at as "createdAt"`,
      [accountId, url, kinds ?? null],
    )
    const added = rows[0] as Omit<AddedEndpoint, 'secret'>
    return { ...added, secret: await addSecret(tx, added.endpointId, keyring) }
  })
}

/** A new secret for an endpoint that this transaction has made or locked. */
async function addSecret(tx: Executor, endpointId: number, keyring: Keyring): Promise<string> {
  const secret = newSecret()
  const { keyId, value } = keyring.encrypt(webhookSecretPlace(endpointId), Buffer.from(secret))
  // By the clock and not the transaction's begin, which may be long before the lock.
  await tx.query('insert into webhook_secrets (endpoint_id, key_id, value, created_at) values ($1, $2, $3, clock_timestamp())', [
    endpointId,
    keyId,
    value,
  ])
  return secret
}

/** For operators, who know no accounts: whose it is says its row. */
export async function findEndpoint(db: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await db.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1`, [endpointId])
  return rows[0] ?? noSuchEndpoint(endpointId)
}

/** Within a transaction: until its end the endpoint is not removed, so that what is written for it is not left behind. */
export async function holdActiveEndpoint(tx: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 for key share`, [endpointId])
  const endpoint = rows[0] ?? noSuchEndpoint(endpointId)
  if (endpoint.status === 'DISABLED') {
    throw new OperatorError(`The endpoint ${endpointId} is disabled; "herald webhook enable ${endpointId}" comes first.`)
  }
  return endpoint
}

function noSuchEndpoint(endpointId: number): never {
  throw new OperatorError(`There is no webhook endpoint ${endpointId}; "herald webhook list" shows those there are.`)
}

/** Of one account, or of all. */
export async function listEndpoints(db: Executor, accountId?: number): Promise<ListedEndpoint[]> {
  if (accountId !== undefined) await requireAccount(db, accountId)
  const { rows } = await db.query<Endpoint & Pick<ListedEndpoint, 'secrets'>>(
    `select ${ENDPOINT}, (
       select coalesce(json_agg(json_build_object('createdAt', ${utcText('s.created_at')}, 'endsAt', ${utcText('s.ends_at')}) order by s.created_at desc), '[]')
       from webhook_secrets s where s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
     ) as secrets
     from webhook_endpoints e where $1::int is null or account_id = $1 order by account_id, id`,
    [accountId ?? null],
  )
  const listed: ListedEndpoint[] = []
  // One by one: a statement over all of them would have to read 20,000 rows for each within its 3.5 s.
  for (const { secrets, ...endpoint } of rows) listed.push({ ...endpoint, ...(await countDeliveries(db, endpoint)), secrets })
  return listed
}

type Counts = Pick<ListedEndpoint, 'waiting' | 'moreWaiting' | 'failed' | 'moreFailed'>

/** Reads 10,000 of each kind at the most, however many there are. */
export async function countDeliveries(db: Executor, { endpointId, accountId }: Endpoint): Promise<Counts> {
  const { rows } = await db.query<{ waiting: number; failed: number }>({
    name: 'count-webhook-deliveries',
    text: `select (
        select count(*) from (
          select from webhook_deliveries where endpoint_id = $1 and account_id = $2 and due_at is not null order by due_at, position limit $3
        ) as due
      ) as waiting, (
        select count(*) from (
          select from webhook_deliveries where endpoint_id = $1 and account_id = $2 and due_at is null order by position limit $3
        ) as failed
      ) as failed`,
    values: [endpointId, accountId, COUNTED_UP_TO + 1],
  })
  const { waiting, failed } = rows[0] as { waiting: number; failed: number }
  return {
    waiting: Math.min(waiting, COUNTED_UP_TO),
    moreWaiting: waiting > COUNTED_UP_TO,
    failed: Math.min(failed, COUNTED_UP_TO),
    moreFailed: failed > COUNTED_UP_TO,
  }
}

/** `earlierSecretsEndAt`: null where there was no earlier secret, as after its encryption key was lost. */
export type Rotated = { endpointId: number; accountId: number; url: string; secret: string; earlierSecretsEndAt: Date | null }

/**
 * A new secret, shown this once; those before sign on beside it for a day, so that the receiver has time to take over. Of two rotations at
 * once one comes after the other, since both lock the endpoint: the secret of the first then signs for a day too.
 */
export async function rotateSecret(pool: Pool, endpointId: number, keyring: Keyring): Promise<Rotated> {
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 for no key update`, [endpointId])
    const { accountId, url } = rows[0] ?? noSuchEndpoint(endpointId)
    await tx.query('delete from webhook_secrets where endpoint_id = $1 and ends_at <= clock_timestamp()', [endpointId])
    const { rowCount, rows: ending } = await tx.query<{ endsAt: Date | null }>(
      'select ends_at as "endsAt" from webhook_secrets where endpoint_id = $1 order by ends_at',
      [endpointId],
    )
    if ((rowCount ?? 0) >= MOST_SECRETS) {
      const first = ending[0]?.endsAt?.toISOString()
      throw new OperatorError(`The endpoint ${endpointId} has ${MOST_SECRETS} secrets that sign; the first of them ends at ${first}.`)
    }
    // By the clock and not the transaction's begin, which may be long before the lock.
    const { rows: ended } = await tx.query<{ endsAt: Date }>(
      `update webhook_secrets set ends_at = clock_timestamp() + interval '${OVERLAP_HOURS} hours' where endpoint_id = $1 and ends_at is null
       returning ends_at as "endsAt"`,
      [endpointId],
    )
    const secret = await addSecret(tx, endpointId, keyring)
    return { endpointId, accountId, url, secret, earlierSecretsEndAt: ended[0]?.endsAt ?? null }
  })
}

// As if it had never failed: tried at once, and with five days of its own.
const WELL = 'failing_since = null, last_failed_at = null, failures = 0, paused_until = null'

/** `missedSince`: a replay of all events since then includes every event that it missed. Null where it was not disabled. */
export type Enabled = Endpoint & { missedSince: Date | null }

type Disabling = { disabledAt: Date | null; disabledPosition: number | null }

/**
 * What it had due goes on, and five new days begin; also for one that is active, and left alone for a while.
 *
 * The router moves the head of the log before it reads which endpoints are active. This statement locks the head, so it waits for a router that
 * has found the endpoint disabled, and the next statement sees the pages which that one placed. A later router finds the endpoint active. A
 * head that is missing is written, since the first router of an account inserts it unseen.
 */
export async function enableEndpoint(pool: Pool, endpointId: number): Promise<Enabled> {
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<Disabling>(
      `with before as materialized (
         select id, account_id, status, disabled_at, disabled_position from webhook_endpoints where id = $1 for no key update
       ), head as (
         insert into log_heads as h (account_id, last_position) select account_id, 0 from before where status = 'DISABLED'
         on conflict (account_id) do update set last_position = h.last_position
       )
       update webhook_endpoints e set status = 'ACTIVE', disabled_at = null, disabled_because = null, disabled_position = null, ${WELL}
       from before where e.id = before.id
       returning before.disabled_at as "disabledAt", before.disabled_position as "disabledPosition"`,
      [endpointId],
    )
    const endpoint = await findEndpoint(tx, endpointId)
    return { ...endpoint, missedSince: await findMissed(tx, endpoint.accountId, rows[0] as Disabling) }
  })
}

// The time of a page is the begin of its transaction, so pages of transactions that overlap may stand in the log in another order than that of
// their times. A transaction has a few statements, of 3.5 s at the most.
const LONGEST_OVERLAP_MS = 60_000

/** The time of the earliest page behind the position; where there is none, or the position is unknown, the time of disabling. */
async function findMissed(tx: Executor, accountId: number, { disabledAt, disabledPosition }: Disabling): Promise<Date | null> {
  if (disabledPosition === null) return disabledAt
  const { rows: next } = await tx.query<{ pageId: string }>(
    'select page_id as "pageId" from log_pages where account_id = $1 and last_position > $2 order by last_position limit 1',
    [accountId, disabledPosition],
  )
  if (next[0] === undefined) return disabledAt
  const { pageId } = next[0]
  const { rows: earlier } = await tx.query<{ pageId: string }>(
    `select page_id as "pageId" from log_pages
     where account_id = $1 and page_id >= uuid_v7_from($3) and page_id < $4 and last_position > $2 order by page_id limit 1`,
    [accountId, disabledPosition, new Date(timeOf(pageId).getTime() - LONGEST_OVERLAP_MS), pageId],
  )
  return timeOf(earlier[0]?.pageId ?? pageId)
}

/**
 * In SQL, for the statement that disables an endpoint `e`: the head of its account's log. The statement does not wait for the router, and need not:
 * a router that finds the endpoint disabled commits after this statement has, so its pages lie behind the head that this statement sees.
 * Pages of a router that found it active may lie behind, too, and are then posted twice by a replay.
 */
export const DISABLED_POSITION = 'coalesce((select h.last_position from log_heads h where h.account_id = e.account_id), 0)'

/** What it has due stays. One that is disabled already keeps the reason, the time and the position of that. */
export async function disableEndpoint(db: Executor, endpointId: number): Promise<Endpoint> {
  await db.query(
    `update webhook_endpoints e
     set status = 'DISABLED', disabled_at = now(), disabled_because = 'OPERATOR', disabled_position = ${DISABLED_POSITION}
     where e.id = $1 and e.status = 'ACTIVE'`,
    [endpointId],
  )
  return await findEndpoint(db, endpointId)
}

/** From the next event that is routed on; null: all kinds. What waits for it already is still posted. Of two at once the last one counts. */
export async function updateEndpoint(db: Executor, endpointId: number, kinds: readonly EventKind[] | null): Promise<Endpoint> {
  const { rows } = await db.query<Endpoint>(`update webhook_endpoints set kinds = $2 where id = $1 returning ${ENDPOINT}`, [
    endpointId,
    kinds,
  ])
  return rows[0] ?? noSuchEndpoint(endpointId)
}

/**
 * With all that it had still to get, and what is written down of its tries; its account's events stay in the log. It is disabled first: a
 * removal that is killed leaves no endpoint that goes on with half of its deliveries, and a second one does the rest.
 */
export async function removeEndpoint(pool: Pool, endpointId: number, portionRows = PORTION_ROWS): Promise<Endpoint> {
  const endpoint = await disableEndpoint(pool, endpointId)
  for (;;) {
    // In portions, each a transaction: whoever needs the same rows waits for one portion at the most.
    for (let removed = portionRows; removed >= portionRows; ) {
      removed = await transaction(pool, (tx) => removeRows(tx, endpoint, portionRows))
    }
    if (await transaction(pool, (tx) => removeIfEmpty(tx, endpoint, portionRows))) return endpoint
    await sleep(LOOK_AGAIN_MS)
  }
}

/**
 * So many deliveries and so many attempts; returns how many of those of which there were more. Passes by what somebody writes at this
 * moment: who waits for rows while holding others ends in a deadlock.
 */
async function removeRows(tx: Executor, { endpointId, accountId }: Endpoint, portionRows: number): Promise<number> {
  const remove = async (table: string, order: string) => {
    const { rowCount } = await tx.query(
      `delete from ${table} where ctid = any (array(
         select ctid from ${table} where endpoint_id = $1 and account_id = $2 order by ${order} limit $3 for update skip locked))`,
      [endpointId, accountId, portionRows],
    )
    return rowCount ?? 0
  }
  return Math.max(await remove('webhook_deliveries', 'position'), await remove('webhook_attempts', 'attempted_at'))
}

/** From the lock on nothing is written for it any more, by the router or a replay. False where a delivery was just being written: once more. */
async function removeIfEmpty(tx: Executor, endpoint: Endpoint, portionRows: number): Promise<boolean> {
  const { endpointId } = endpoint
  await tx.query('select from webhook_endpoints where id = $1 for update', [endpointId])
  await removeRows(tx, endpoint, portionRows)
  const { rowCount } = await tx.query('select from webhook_deliveries where endpoint_id = $1 limit 1', [endpointId])
  if ((rowCount ?? 0) > 0) return false
  await tx.query('delete from webhook_endpoints where id = $1', [endpointId])
  return true
}

/** `occurredAt`: by which its event is found again in the log, where the router puts it. */
export type EndpointTest = { endpointId: number; accountId: number; occurredAt: Date; after: number }

/** Asks for an event that goes to this endpoint alone. `after`: the log is read from there on. */
export async function testEndpoint(pool: Pool, endpointId: number): Promise<EndpointTest> {
  return await transaction(pool, async (tx) => {
    const { accountId } = await holdActiveEndpoint(tx, endpointId)
    const { rows } = await tx.query<{ occurredAt: Date }>('select now()::timestamptz(3) as "occurredAt"')
    const after = await readHead(tx, accountId)
    await tx.query('update webhook_endpoints set paused_until = null where id = $1 and paused_until > now()', [endpointId])
    await recordEvent(tx, { accountId, kind: 'webhook.test', data: { endpointId } })
    return { endpointId, accountId, after, ...(rows[0] as { occurredAt: Date }) }
  })
}
