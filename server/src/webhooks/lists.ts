import type { Pool } from '../db/pool.ts'
import { findEvent } from '../events/pages.ts'
import { type ListDefinition, type PageQuery, readPage } from '../http/paging.ts'
import { ATTEMPT, type Attempt, type AttemptRow, toAttempts } from './attempts.ts'
import { ENDPOINT, type Endpoint, EXISTS, findEndpoint, type ListedEndpoint, withCounts } from './endpoints.ts'

export const ENDPOINT_LIST: ListDefinition<'createdAt' | 'endpointId'> = {
  fields: { createdAt: { column: 'created_at', type: 'timestamptz' }, endpointId: { column: 'id', type: 'bigint' } },
  id: 'endpointId',
  defaultSort: '-createdAt',
}

type EndpointPage = { items: ListedEndpoint[]; nextCursor: string | null }

export async function listOwnEndpoints(pool: Pool, accountId: number, query: PageQuery & { status?: string }): Promise<EndpointPage> {
  const page = readPage(ENDPOINT_LIST, query, 4)
  const { rows } = await pool.query<Endpoint>(
    `select ${ENDPOINT} from webhook_endpoints
     where account_id = $1 and ${EXISTS} and ($2::text is null or status = $2) and ${page.condition} order by ${page.orderBy} limit $3`,
    [accountId, query.status ?? null, page.fetch, ...page.values],
  )
  const { items, nextCursor } = page.toBody(rows)
  return { items: await withCounts(pool, items), nextCursor }
}

/** The same event can be attempted twice in a millisecond, by two processes. The expression is unique among the attempts of one time. */
const TIE = `concat_ws(':', position, attempt, duration_ms, status) collate "C"`

export const ATTEMPT_LIST: ListDefinition<'attemptedAt' | 'tie'> = {
  fields: { attemptedAt: { column: 'attempted_at', type: 'timestamptz' }, tie: { column: TIE, type: 'text', hidden: true } },
  id: 'tie',
  defaultSort: '-attemptedAt',
}

// The maximum number of rows that a page reads, in some 30 ms: the attempts that match a filter may be few among millions.
const SCANNED_ROWS = 20_000

/** `n`: its number among the rows that were read. */
type Row = AttemptRow & { tie: string; n: number; isWanted: boolean }
type AttemptQuery = PageQuery & { eventId?: string; failed?: boolean }
type AttemptPage = { items: Attempt[]; nextCursor: string | null }

/** With a filter, a page may have fewer items than its limit, or none, although a `nextCursor` follows: it has read its maximum of rows. */
export async function listOwnAttempts(
  pool: Pool,
  accountId: number,
  endpointId: number,
  query: AttemptQuery,
  scannedRows = SCANNED_ROWS,
): Promise<AttemptPage> {
  const page = readPage(ATTEMPT_LIST, query, 5, endpointId)
  await findEndpoint(pool, endpointId, accountId)
  const event = query.eventId === undefined ? undefined : await findEvent(pool, accountId, query.eventId)
  if (query.eventId !== undefined && event === undefined) return { items: [], nextCursor: null }
  const scanned = event === undefined && query.failed === undefined ? page.fetch : scannedRows
  const { rows } = await pool.query<Row>(
    `select * from (
       select ${ATTEMPT}, ${TIE} as tie, row_number() over (order by ${page.orderBy}) as n,
         ($3::bigint is null or position = $3) and ($4::bool is null or $4 <> coalesce(status between 200 and 299, false)) as "isWanted"
       from webhook_attempts where endpoint_id = $1 and account_id = $2 and ${page.condition}
       order by ${page.orderBy} limit ${scanned}
     ) as scanned
     where "isWanted" or n = ${scanned} order by n limit ${page.fetch}`,
    [endpointId, accountId, event?.position ?? null, query.failed ?? null, ...page.values],
  )
  const wanted = rows.filter(({ isWanted }) => isWanted)
  const { items, nextCursor } = page.toBody(
    wanted,
    wanted.length,
    rows.find(({ n }) => n === scanned),
  )
  return { items: await toAttempts(pool, { endpointId, accountId }, items), nextCursor }
}
