import type { Executor } from '../db/pool.ts'
import { type ListDefinition, MAX_LIMIT, type PageQuery, readPage, withinPageBytes } from '../http/paging.ts'
import { phoneNumberInQuery } from '../phone-numbers.ts'
import { GROUP, type Group, type GroupKey, MEMBER, type Member, type MemberRow } from './groups.ts'

export type Segment = { segmentId: number; name?: string; members: number; createdAt: Date; updatedAt: Date }

export function toSegment({ group, name, ...others }: Group): Segment {
  return { segmentId: group, ...(name !== null && { name }), ...others }
}

export const SEGMENT_LIST: ListDefinition<'segmentId'> = {
  fields: { segmentId: { column: 'number', type: 'bigint' } },
  id: 'segmentId',
  defaultSort: 'segmentId',
}

export async function listSegments(db: Executor, accountId: number, query: PageQuery) {
  const page = readPage(SEGMENT_LIST, query, 3)
  const { rows } = await db.query<Group>(
    `select ${GROUP} from groups where account_id = $1 and ${page.condition} order by ${page.orderBy} limit $2`,
    [accountId, page.fetch, ...page.values],
  )
  return page.toBody(rows.map(toSegment))
}

function toMember({ timeZone, attributes, ...member }: MemberRow): Member {
  return { ...member, ...(timeZone !== null && { timeZone }), ...(attributes !== null && { attributes }) }
}

export const MEMBER_LIST: ListDefinition<'phone'> = {
  fields: { phone: { column: 'phone', type: 'text' } },
  id: 'phone',
  defaultSort: 'phone',
}

type MemberQuery = PageQuery & { phone?: string }

export async function listMembers(db: Executor, { accountId, number }: GroupKey, query: MemberQuery) {
  const page = readPage(MEMBER_LIST, query, 4, number)
  const values = [accountId, number, page.fetch, ...page.values]
  const isWanted = query.phone === undefined ? 'true' : `phone = $${values.push(phoneNumberInQuery(query.phone))}`
  const { rows } = await db.query<MemberRow & { found: number; bytesBefore: number | null }>(
    withinPageBytes(
      `select ${MEMBER} from group_members where account_id = $1 and group_number = $2 and ${isWanted} and ${page.condition}
       order by ${page.orderBy} limit $3`,
      `200 + coalesce(octet_length(attributes::text), 0) + 11 * cardinality(consents)`,
    ),
    values,
  )
  return page.toBody(
    rows.map(({ found, bytesBefore, ...member }) => toMember(member)),
    rows[0]?.found,
  )
}

/** For operators: reads all members of a group page by page, since there can be millions. */
export async function* readMembers(db: Executor, group: GroupKey): AsyncGenerator<Member[], void, undefined> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { items, nextCursor }: Awaited<ReturnType<typeof listMembers>> = await listMembers(db, group, {
      limit: MAX_LIMIT,
      ...(cursor !== '' && { cursor }),
    })
    if (items.length > 0) yield items
    cursor = nextCursor
  }
}
