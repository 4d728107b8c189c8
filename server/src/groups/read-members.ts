import type { Executor } from '../db/pool.ts'
import type { GroupKey } from './groups.ts'

export type Member = {
  phone: string
  consents: number[]
  controlGroup: boolean
  status: 'active' | 'inactive'
  timeZone?: string
  attributes?: Record<string, string>
}
export type MemberRow = Omit<Member, 'timeZone' | 'attributes'> & { timeZone: string | null; attributes: Record<string, string> | null }

export const MEMBER = `phone, consents, control_group as "controlGroup", case when active then 'active' else 'inactive' end as status,
  time_zone as "timeZone", attributes`

export function toMember({ timeZone, attributes, ...member }: MemberRow): Member {
  return { ...member, ...(timeZone !== null && { timeZone }), ...(attributes !== null && { attributes }) }
}

// A member has up to 64 KiB of attributes, so a page takes at most 32 MiB.
const PAGE_ROWS = 500

/** For operators: reads the members of a group in the order of their numbers, a page at a time, since a group can have millions. */
export async function* readMembers(db: Executor, { accountId, number }: GroupKey): AsyncGenerator<Member[], void, undefined> {
  for (let last = ''; ; ) {
    const { rows } = await db.query<MemberRow>(
      `select ${MEMBER} from group_members where account_id = $1 and group_number = $2 and phone > $3 order by phone limit $4`,
      [accountId, number, last, PAGE_ROWS],
    )
    if (rows.length > 0) yield rows.map(toMember)
    if (rows.length < PAGE_ROWS) return
    last = rows.at(-1)?.phone ?? ''
  }
}
