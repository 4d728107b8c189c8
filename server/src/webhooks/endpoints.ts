import { noSuchAccount, requireAccount } from '../accounts/accounts.ts'
import { accountTransaction, type Executor, type Pool, transaction } from '../db/pool.ts'
import { webhookSecretContext } from '../db/secrets.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { utcText } from '../events/changes.ts'
import type { EventKind } from '../events/kinds.ts'
import { Refusal } from '../refusal.ts'
import { newSecret } from './sign.ts'

export type Endpoint = {
  endpointId: number
  accountId: number
  url: string
  /** The types of events it receives; null means all, including types that later versions add. */
  types: EventKind[] | null
  status: 'ACTIVE' | 'DISABLED'
  failingSince: Date | null
  disabledAt: Date | null
  disabledBecause: 'FAILING' | 'OPERATOR' | 'CALLER' | null
  createdAt: Date
}

/** `url`: as returned by `checkEndpointUrl`. */
type NewEndpoint = { accountId: number; url: string; types?: readonly EventKind[] | null | undefined }
export type AddedEndpoint = Pick<Endpoint, 'endpointId' | 'accountId' | 'url' | 'types' | 'status' | 'createdAt'> & { secret: string }

/** Counting stops at COUNTED_UP_TO; `morePending` and `moreFailed` say whether there are more. */
export type ListedEndpoint = Endpoint & {
  /** Deliveries to post, now or later. */
  pending: number
  morePending: boolean
  /** When the oldest of the pending events happened; if there are more than COUNTED_UP_TO, of the first that are due. */
  oldestPendingAt: Date | null
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
// Retry-After of a limit that ends only when the caller deletes something.
const LIMIT_RETRY_AFTER_SECONDS = 3_600

export const ENDPOINT = `id as "endpointId", account_id as "accountId", url, kinds as types, status, failing_since as "failingSince",
  disabled_at as "disabledAt", disabled_because as "disabledBecause", created_at as "createdAt"`

/** In SQL: the endpoint exists. A removed endpoint keeps its row until its deliveries and attempts are deleted. */
export const EXISTS = 'removed_at is null'

/** The secret is shown only once. Of two concurrent calls with the same URL, the second finds the first's endpoint. */
export async function addEndpoint(pool: Pool, { accountId, url, types }: NewEndpoint, keyring: Keyring): Promise<AddedEndpoint> {
  return await accountTransaction(pool, accountId, async (tx) => {
    if ((await lockEndpoints(tx, accountId, url)) >= MAX_ENDPOINTS) {
      throw new Refusal(`Account ${accountId} already has ${MAX_ENDPOINTS} endpoints, the maximum; remove one first.`, {
        code: 'RCS_QUOTA_EXCEEDED',
        reason: `The account has ${MAX_ENDPOINTS} webhook endpoints, the maximum: delete one that you no longer need.`,
        retryAfterSeconds: LIMIT_RETRY_AFTER_SECONDS,
      })
    }
    const { rows } = await tx.query<Omit<AddedEndpoint, 'secret'>>(
      `insert into webhook_endpoints (account_id, url, kinds) values ($1, $2, $3)
       returning id as "endpointId", account_id as "accountId", url, kinds as types, status, created_at as "createdAt"`,
      [accountId, url, types ?? null],
    )
    const added = rows[0] as Omit<AddedEndpoint, 'secret'>
    return { ...added, secret: await addSecret(tx, added.endpointId, keyring) }
  })
}

/**
 * Locks the account's row, so that no other transaction adds an endpoint or changes a URL meanwhile. The lock does not block inserts of
 * messages and campaigns that refer to the account. Returns the number of endpoints. Throws if another endpoint than `except` has the URL.
 */
export async function lockEndpoints(tx: Executor, accountId: number, url: string, except = 0): Promise<number> {
  const { rowCount } = await tx.query('select from accounts where id = $1 for no key update', [accountId])
  if (rowCount === 0) noSuchAccount(accountId)
  const { rows } = await tx.query<{ id: number; url: string }>(
    `select id, url from webhook_endpoints where account_id = $1 and id <> $2 and ${EXISTS}`,
    [accountId, except],
  )
  const existing = rows.find((row) => row.url === url)
  if (existing !== undefined) {
    throw new Refusal(`Endpoint ${existing.id} of account ${accountId} already has this URL; remove it first.`, {
      code: 'RCS_WEBHOOK_ENDPOINT_EXISTS',
      path: '/url',
      reason: `is already the URL of the endpoint ${existing.id}`,
    })
  }
  return rows.length
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

/** `accountId`: absent for operators, who need not know the account. */
export async function findEndpoint(db: Executor, endpointId: number, accountId?: number): Promise<Endpoint> {
  // As bigint: an id from a path may be too large for an integer.
  const { rows } = await db.query<Endpoint>(
    `select ${ENDPOINT} from webhook_endpoints where id = $1::bigint and ($2::int is null or account_id = $2) and ${EXISTS}`,
    [endpointId, accountId ?? null],
  )
  return rows[0] ?? noSuchEndpoint(endpointId)
}

/** Locks the endpoint until the end of the transaction, so that a concurrent removal leaves no rows of it behind. */
export async function holdActiveEndpoint(tx: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 and ${EXISTS} for key share`, [
    endpointId,
  ])
  const endpoint = rows[0] ?? noSuchEndpoint(endpointId)
  if (endpoint.status === 'DISABLED') {
    throw new Refusal(`Endpoint ${endpointId} is disabled; run "herald webhook enable ${endpointId}" first.`, {
      code: 'RCS_WEBHOOK_ENDPOINT_STATE',
      reason: 'The endpoint is DISABLED: set its status to ACTIVE first.',
    })
  }
  return endpoint
}

/**
 * Lets workers post to a paused endpoint at once, and returns whether it was paused. In a transaction that also locks deliveries, call it after
 * that, as `recordAttempts` locks them in this order.
 */
export async function endPause(tx: Executor, endpointId: number): Promise<boolean> {
  const { rowCount } = await tx.query('update webhook_endpoints set paused_until = null where id = $1 and paused_until > now()', [
    endpointId,
  ])
  return rowCount === 1
}

export function noSuchEndpoint(endpointId: number): never {
  throw new Refusal(`There is no webhook endpoint ${endpointId}; see "herald webhook list".`, {
    code: 'RCS_WEBHOOK_ENDPOINT_NOT_FOUND',
    path: '/id',
    reason: 'names no webhook endpoint of this account',
  })
}

/** Lists the endpoints of one account, or of all accounts. */
export async function listEndpoints(db: Executor, accountId?: number): Promise<ListedEndpoint[]> {
  if (accountId !== undefined) await requireAccount(db, accountId)
  const { rows } = await db.query<Endpoint>(
    `select ${ENDPOINT} from webhook_endpoints where ($1::int is null or account_id = $1) and ${EXISTS} order by account_id, id`,
    [accountId ?? null],
  )
  return await withCounts(db, rows)
}

/** Adds the counts of deliveries and the times of secrets. */
export async function withCounts(db: Executor, endpoints: Endpoint[]): Promise<ListedEndpoint[]> {
  const { rows } = await db.query<{ id: number; secrets: ListedEndpoint['secrets'] }>(
    `select endpoint_id as id, json_agg(
       json_build_object('createdAt', ${utcText('created_at')}, 'endsAt', ${utcText('ends_at')}) order by created_at desc
     ) as secrets
     from webhook_secrets where endpoint_id = any ($1::int[]) and (ends_at is null or ends_at > now()) group by endpoint_id`,
    [endpoints.map(({ endpointId }) => endpointId)],
  )
  const secrets = new Map(rows.map((row) => [row.id, row.secrets]))
  const listed: ListedEndpoint[] = []
  // One statement per endpoint: a single statement would have to read up to 20,000 rows for each endpoint within 3.5 s.
  for (const endpoint of endpoints) {
    listed.push({ ...endpoint, ...(await countDeliveries(db, endpoint)), secrets: secrets.get(endpoint.endpointId) ?? [] })
  }
  return listed
}

type Counts = Pick<ListedEndpoint, 'pending' | 'morePending' | 'oldestPendingAt' | 'failed' | 'moreFailed'>

/** Reads at most 10,000 rows of each kind, however many there are, and the page of one event. */
export async function countDeliveries(db: Executor, { endpointId, accountId }: Endpoint): Promise<Counts> {
  const { rows } = await db.query<{ pending: number; oldestPendingAt: Date | null; failed: number }>({
    name: 'count-webhook-deliveries',
    text: `select pending, failed, (
        select (p.events -> (oldest - p.last_position + p.event_count - 1)::int ->> 1)::timestamptz from (
          select * from log_pages where account_id = $2 and last_position >= oldest order by last_position limit 1
        ) as p
        where oldest > p.last_position - p.event_count
      ) as "oldestPendingAt"
      from (
        select count(*) as pending, min(position) as oldest from (
          select position from webhook_deliveries where endpoint_id = $1 and account_id = $2 and due_at is not null
          order by due_at, position limit $3
        ) as due
      ) as due, (
        select count(*) as failed from (
          select from webhook_deliveries where endpoint_id = $1 and account_id = $2 and due_at is null order by position limit $3
        ) as failed
      ) as failed`,
    values: [endpointId, accountId, COUNTED_UP_TO + 1],
  })
  const { pending, oldestPendingAt, failed } = rows[0] as { pending: number; oldestPendingAt: Date | null; failed: number }
  return {
    pending: Math.min(pending, COUNTED_UP_TO),
    morePending: pending > COUNTED_UP_TO,
    oldestPendingAt,
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
    const { accountId, url } = await lockEndpoint(tx, endpointId)
    await tx.query('delete from webhook_secrets where endpoint_id = $1 and ends_at <= clock_timestamp()', [endpointId])
    const { rows: active } = await tx.query<{ endsAt: Date | null; seconds: number | null }>(
      `select ends_at as "endsAt", ceil(extract(epoch from ends_at - clock_timestamp()))::int as seconds
       from webhook_secrets where endpoint_id = $1 order by ends_at`,
      [endpointId],
    )
    if (active.length >= MAX_SECRETS) throw tooManySecrets(endpointId, active[0]?.endsAt, active[0]?.seconds)
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

function tooManySecrets(endpointId: number, firstEnd: Date | null | undefined, seconds: number | null | undefined): Refusal {
  const end = firstEnd?.toISOString()
  return new Refusal(`Endpoint ${endpointId} already has ${MAX_SECRETS} active secrets, the maximum; the first one ends at ${end}.`, {
    code: 'RCS_QUOTA_EXCEEDED',
    reason: `The endpoint has ${MAX_SECRETS} active secrets, the maximum: the first one ends at ${end}.`,
    retryAfterSeconds: Math.max(1, seconds ?? LIMIT_RETRY_AFTER_SECONDS),
  })
}

/** Locks the endpoint's row against other changes of it. The router and replays, which only need it to exist, do not wait. */
export async function lockEndpoint(tx: Executor, endpointId: number): Promise<Endpoint> {
  const { rows } = await tx.query<Endpoint>(`select ${ENDPOINT} from webhook_endpoints where id = $1 and ${EXISTS} for no key update`, [
    endpointId,
  ])
  return rows[0] ?? noSuchEndpoint(endpointId)
}
