import { setTimeout as sleep } from 'node:timers/promises'
import { noSuchAccount, requireAccount } from '../accounts/accounts.ts'
import { timeOf } from '../db/partitions.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { webhookSecretContext } from '../db/secrets.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { noSuch, OperatorError } from '../errors.ts'
import { recordEvent, utcText } from '../events/changes.ts'
import type { EventKind } from '../events/kinds.ts'
import { readHead } from '../events/pages.ts'
import { newSecret } from './sign.ts'

export type Endpoint = {
  endpointId: number
  accountId: number
  url: string
  /** The kinds of events it receives; null means all, including kinds that later versions add. */
  events: EventKind[] | null
  status: 'ACTIVE' | 'DISABLED'
  failingSince: Date | null
  disabledAt: Date | null
  disabledBecause: 'FAILING' | 'OPERATOR' | null
  createdAt: Date
}

/** `url`: as returned by `checkEndpointUrl`. */
type NewEndpoint = { accountId: number; url: string; kinds?: readonly EventKind[] | undefined }
export type AddedEndpoint = Pick<Endpoint, 'endpointId' | 'accountId' | 'url' | 'events' | 'status' | 'createdAt'> & { secret: string }

/** Counting stops at COUNTED_UP_TO; `moreWaiting` and `moreFailed` say whether there are more. */
export type ListedEndpoint = Endpoint & {
  /** Deliveries to post, now or later. */
  waiting: number
  moreWaiting: boolean
  /** Deliveries that failed permanently; a replay posts them again. */
  failed: number
  moreFailed: boolean
  /** Never includes the secrets themselves. The one without an end is the newest. */
  secrets: { createdAt: string; endsAt: string | null }[]
}

export const COUNTED_UP_TO = 10_000
// How long a replaced secret keeps signing beside the new one.
const OVERLAP_HOURS = 24
// Each secret signs each call, which takes 48 characters of a header. Many servers accept no more than 8 KiB of headers.
const MAX_SECRETS = 10
// Per account. The router inserts a delivery of each event for each endpoint.
const MAX_ENDPOINTS = 20
const CHUNK_ROWS = 5_000
const RETRY_REMOVAL_MS = 20

const ENDPOINT = `id as "endpointId", account_id as "accountId", url, kinds as events, status, failing_since as "failingSince",
  disabled_at as "disabledAt", disabled_because as "disabledBecause", created_at as "createdAt"`

/**
 * Locks the account's row, so that of two concurrent calls with the same URL the second finds the first's endpoint. The lock does not block
 * inserts of messages and campaigns that refer to the account. The secret is shown only once.
 */
export async function addEndpoint(pool: Pool, { accountId, url, kinds }: NewEndpoint, keyring: Keyring): Promise<AddedEndpoint> {
  return await transaction(pool, async (tx) => {
    const { rowCount } = await tx.query('select from accounts where id = $1 for no key update', [accountId])
    if (rowCount === 0) noSuchAccount(accountId)
    const { rows: existing } = await tx.query<{ id: number }>('select id from webhook_endpoints where account_id = $1 and url = $2', [
      accountId,
      url,
    ])
    if (existing[0] !== undefined) {
      throw new OperatorError(`Endpoint ${existing[0].id} of account ${accountId} already has this URL; remove it first.`)
    }
    const { rowCount: endpoints } = await tx.query('select from webhook_endpoints where account_id = $1', [accountId])
    if ((endpoints ?? 0) >= MAX_ENDPOINTS) {
      throw new OperatorError(`Account ${accountId} already has ${MAX_ENDPOINTS} endpoints, the maximum; remove one first.`)
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

/** Adds a secret to an endpoint that this transaction has created or locked. */
async function addSecret(tx: Executor, endpointId: number, keyring: Keyring): Promise<string> {
  const secret = newSecret()
  const { keyId, value } = keyring.encrypt(webhookSecretContext(endpointId), Buffer.from(secret))
  // The clock's time: the transaction's start may be long before the lock.
  await tx.query('insert into webhook_secrets (endpoint_id, key_id, value, created_at) values ($1, $2, $3, clock_timestamp())', [
    endpointId,
    keyId,
    value,
  ])
  return secret
}

/** Finds an endpoint without its account, for operators. */
export async function findEndpoint(db: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await db.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1`, [endpointId])
  return rows[0] ?? noSuchEndpoint(endpointId)
}

/** Locks the endpoint until the end of the transaction, so that a concurrent removal leaves no rows of it behind. */
export async function holdActiveEndpoint(tx: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 for key share`, [endpointId])
  const endpoint = rows[0] ?? noSuchEndpoint(endpointId)
  if (endpoint.status === 'DISABLED') {
    throw new OperatorError(`Endpoint ${endpointId} is disabled; run "herald webhook enable ${endpointId}" first.`)
  }
  return endpoint
}

function noSuchEndpoint(endpointId: number): never {
  throw noSuch(`There is no webhook endpoint ${endpointId}; see "herald webhook list".`)
}

/** Lists the endpoints of one account, or of all accounts. */
export async function listEndpoints(db: Executor, accountId?: number): Promise<ListedEndpoint[]> {
  if (accountId !== undefined) await requireAccount(db, accountId)
  const { rows } = await db.query<Endpoint & Pick<ListedEndpoint, 'secrets'>>(
    `select ${ENDPOINT}, (
       select coalesce(json_agg(
         json_build_object('createdAt', ${utcText('s.created_at')}, 'endsAt', ${utcText('s.ends_at')}) order by s.created_at desc
       ), '[]')
       from webhook_secrets s where s.endpoint_id = e.id and (s.ends_at is null or s.ends_at > now())
     ) as secrets
     from webhook_endpoints e where $1::int is null or account_id = $1 order by account_id, id`,
    [accountId ?? null],
  )
  const listed: ListedEndpoint[] = []
  // One statement per endpoint: a single statement would have to read up to 20,000 rows for each endpoint within 3.5 s.
  for (const { secrets, ...endpoint } of rows) listed.push({ ...endpoint, ...(await countDeliveries(db, endpoint)), secrets })
  return listed
}

type Counts = Pick<ListedEndpoint, 'waiting' | 'moreWaiting' | 'failed' | 'moreFailed'>

/** Reads at most 10,000 rows of each kind, however many there are. */
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

/** `earlierSecretsEndAt`: null if there was no earlier secret, as after the loss of its encryption key. */
export type Rotated = { endpointId: number; accountId: number; url: string; secret: string; earlierSecretsEndAt: Date | null }

/**
 * Adds a secret, shown only once. Earlier secrets keep signing for a day, so that the receiver has time to switch. Both of two concurrent
 * rotations lock the endpoint, so they run one after the other, and the secret of the first keeps signing for a day too.
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
    if ((rowCount ?? 0) >= MAX_SECRETS) {
      const first = ending[0]?.endsAt?.toISOString()
      throw new OperatorError(
        `Endpoint ${endpointId} already has ${MAX_SECRETS} active secrets, the maximum; the first one ends at ${first}.`,
      )
    }
    // The clock's time: the transaction's start may be long before the lock.
    const { rows: ended } = await tx.query<{ endsAt: Date }>(
      `update webhook_secrets set ends_at = clock_timestamp() + interval '${OVERLAP_HOURS} hours' where endpoint_id = $1 and ends_at is null
       returning ends_at as "endsAt"`,
      [endpointId],
    )
    const secret = await addSecret(tx, endpointId, keyring)
    return { endpointId, accountId, url, secret, earlierSecretsEndAt: ended[0]?.endsAt ?? null }
  })
}

// Clears all failures: its events are tried at once, and a new period of five days begins with the next failure.
const CLEAR_FAILURES = 'failing_since = null, last_failed_at = null, failures = 0, paused_until = null'

/** `missedSince`: a replay of all events since then includes every missed event. Null if the endpoint was not disabled. */
export type Enabled = Endpoint & { missedSince: Date | null }

type Disabling = { disabledAt: Date | null; disabledPosition: number | null }

/**
 * Enables an endpoint: its due deliveries continue, and its failures are cleared. On an active endpoint, it only ends a pause and clears
 * the failures.
 *
 * The router moves the head of the log before it reads which endpoints are active. This statement locks the head, so it waits for a router
 * that has found the endpoint disabled, and the next statement sees the pages which that router placed. A later router finds the endpoint
 * active. A missing head is inserted here, because the first router of an account inserts it unseen by this transaction.
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
       update webhook_endpoints e set status = 'ACTIVE', disabled_at = null, disabled_because = null, disabled_position = null, ${CLEAR_FAILURES}
       from before where e.id = before.id
       returning before.disabled_at as "disabledAt", before.disabled_position as "disabledPosition"`,
      [endpointId],
    )
    const endpoint = await findEndpoint(tx, endpointId)
    return { ...endpoint, missedSince: await findMissed(tx, endpoint.accountId, rows[0] as Disabling) }
  })
}

// A page's time is the start of its transaction, so pages of overlapping transactions may be in another order than their times. A
// transaction has a few statements, of at most 3.5 s each.
const LONGEST_OVERLAP_MS = 60_000

/** The time of the earliest page behind the position. If there is none, or the position is unknown, the time of disabling. */
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
 * SQL for a statement that disables an endpoint `e`: the head of its account's log. The statement need not wait for the router: a router
 * that finds the endpoint disabled commits after this statement, so its pages lie behind the head that this statement sees. Pages of a
 * router that found it active may lie behind it too; a replay then posts them twice.
 */
export const DISABLED_POSITION = 'coalesce((select h.last_position from log_heads h where h.account_id = e.account_id), 0)'

/** Disables an endpoint. Its due deliveries stay. An endpoint that is already disabled keeps its reason, time and position. */
export async function disableEndpoint(db: Executor, endpointId: number): Promise<Endpoint> {
  await db.query(
    `update webhook_endpoints e
     set status = 'DISABLED', disabled_at = now(), disabled_because = 'OPERATOR', disabled_position = ${DISABLED_POSITION}
     where e.id = $1 and e.status = 'ACTIVE'`,
    [endpointId],
  )
  return await findEndpoint(db, endpointId)
}

/**
 * Sets the kinds of events, from the next routed event on; null means all. Deliveries that are already waiting are still posted. Of two
 * concurrent calls the last one counts.
 */
export async function updateEndpoint(db: Executor, endpointId: number, kinds: readonly EventKind[] | null): Promise<Endpoint> {
  const { rows } = await db.query<Endpoint>(`update webhook_endpoints set kinds = $2 where id = $1 returning ${ENDPOINT}`, [
    endpointId,
    kinds,
  ])
  return rows[0] ?? noSuchEndpoint(endpointId)
}

/**
 * Removes an endpoint with its deliveries and its attempts; the account's events stay in the log. It is disabled first, so that a killed
 * removal leaves no active endpoint with half of its deliveries. Running the removal again removes the rest.
 */
export async function removeEndpoint(pool: Pool, endpointId: number, chunkRows = CHUNK_ROWS): Promise<Endpoint> {
  const endpoint = await disableEndpoint(pool, endpointId)
  for (;;) {
    // In chunks, each in its own transaction: a statement that needs the same rows waits for at most one chunk.
    for (let removed = chunkRows; removed >= chunkRows; ) {
      removed = await transaction(pool, (tx) => removeRows(tx, endpoint, chunkRows))
    }
    if (await transaction(pool, (tx) => removeIfEmpty(tx, endpoint, chunkRows))) return endpoint
    await sleep(RETRY_REMOVAL_MS)
  }
}

/**
 * Removes up to `chunkRows` deliveries and as many attempts. Returns the larger of the two counts. Skips locked rows: a transaction that waits for
 * rows while it holds locks could deadlock.
 */
async function removeRows(tx: Executor, { endpointId, accountId }: Endpoint, chunkRows: number): Promise<number> {
  const remove = async (table: string, order: string) => {
    const { rowCount } = await tx.query(
      `delete from ${table} where ctid = any (array(
         select ctid from ${table} where endpoint_id = $1 and account_id = $2 order by ${order} limit $3 for update skip locked))`,
      [endpointId, accountId, chunkRows],
    )
    return rowCount ?? 0
  }
  return Math.max(await remove('webhook_deliveries', 'position'), await remove('webhook_attempts', 'attempted_at'))
}

/**
 * Removes an endpoint that has no deliveries. Once it is locked, neither the router nor a replay writes for it. Returns false if a delivery was
 * being written just then: try again.
 */
async function removeIfEmpty(tx: Executor, endpoint: Endpoint, chunkRows: number): Promise<boolean> {
  const { endpointId } = endpoint
  await tx.query('select from webhook_endpoints where id = $1 for update', [endpointId])
  await removeRows(tx, endpoint, chunkRows)
  const { rowCount } = await tx.query('select from webhook_deliveries where endpoint_id = $1 limit 1', [endpointId])
  if ((rowCount ?? 0) > 0) return false
  await tx.query('delete from webhook_endpoints where id = $1', [endpointId])
  return true
}

/** `occurredAt` identifies the event in the log once the router has placed it. */
export type EndpointTest = { endpointId: number; accountId: number; occurredAt: Date; after: number }

/** Emits a test event for this endpoint only. `after`: the position in the log to read from. */
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
