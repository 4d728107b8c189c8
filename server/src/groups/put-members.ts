import { refuseBeyondQuota } from '../accounts/quotas.ts'
import { countUsage } from '../accounts/usage.ts'
import { accountTransaction, columns, type Pool } from '../db/pool.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { readTimeZone, TIME_ZONE } from '../time-zones.ts'
import { changeGroup, findGroup, type GroupKey } from './groups.ts'
import { memberBytes } from './member-bytes.ts'
import { MAX_CONSENT, wrongPhone, wrongValue } from './members.ts'

/** A member as a caller sends it. The types of its fields have been checked, their values have not. */
type MemberInput = {
  phone: string
  consents?: number[]
  controlGroup?: boolean
  status?: string
  timeZone?: string
  attributes?: Record<string, string>
}

/** The values to write. Undefined: a new member gets the default, and an existing member keeps its value. An empty `timeZone` removes it. */
type Change = {
  phone: string
  consents: string | undefined
  controlGroup: boolean | undefined
  active: boolean | undefined
  timeZone: string | undefined
  attributes: string | undefined
}

type Rejection = { index: number; reason: string }
/** `isChanged`: a member is new, or has other values than before. */
type Result = { added: number; updated: number; isChanged: boolean; rejected: Rejection[] }

/**
 * Adds new members to a group and updates existing ones, in one transaction. Returns undefined if there is no such group. If a number occurs
 * several times, the later item updates the earlier one.
 */
export async function putMembers(pool: Pool, group: GroupKey, members: MemberInput[]): Promise<Result | undefined> {
  const changes = new Map<string, Change>()
  const rejected: Rejection[] = []
  for (const [index, member] of members.entries()) {
    const change = readChange(member)
    if ('problem' in change) rejected.push({ index, reason: change.problem })
    else changes.set(change.phone, merged(changes.get(change.phone), change))
  }
  const accepted = members.length - rejected.length
  return await accountTransaction(pool, group.accountId, async (tx) => {
    if (changes.size === 0) return (await findGroup(tx, group)) && { added: 0, updated: 0, isChanged: false, rejected }
    const generation = await changeGroup(tx, group)
    if (generation === undefined) return undefined
    const lists = columns([...changes.values()], 'phone', 'consents', 'controlGroup', 'active', 'timeZone', 'attributes')
    const { rows } = await tx.query<Put>(PUT_MEMBERS, [group.accountId, group.number, generation, ...lists])
    const { added, isChanged, bytes } = rows[0] as Put
    await refuseBeyondQuota(tx, group.accountId, { storedBytes: bytes })
    return { added, updated: accepted - added, isChanged, rejected }
  })
}

const STATUSES = new Map([
  ['active', true],
  ['inactive', false],
])

function readChange({ phone: written, consents, controlGroup, status, timeZone, attributes }: MemberInput): Change | { problem: string } {
  const phone = normalisePhoneNumber(written.trim())
  if (phone === undefined) return { problem: wrongPhone(written) }
  const wrong = consents?.find((consent) => consent < 0 || consent > MAX_CONSENT)
  if (wrong !== undefined) return wrongValue('consents', String(wrong), `whole numbers from 0 to ${MAX_CONSENT}`)
  const active = status === undefined ? undefined : STATUSES.get(status)
  if (status !== undefined && active === undefined) return wrongValue('status', status, 'active or inactive')
  const zone = timeZone === undefined ? undefined : readTimeZone(timeZone)
  if (timeZone !== undefined && zone === undefined) return wrongValue('timeZone', timeZone, TIME_ZONE)
  if (attributes !== undefined && Object.keys(attributes).some((name) => name.trim() === '')) return { problem: 'an attribute has no name' }
  return {
    phone,
    consents: consents && `{${[...new Set(consents)]}}`,
    controlGroup,
    active,
    timeZone: zone === null ? '' : zone,
    attributes: attributes && JSON.stringify(attributes),
  }
}

function merged(earlier: Change | undefined, later: Change): Change {
  const given = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== undefined))
  return { ...(earlier ?? later), ...given }
}

type Put = { added: number; isChanged: boolean; bytes: number }

const VALUES = '(m.consents, m.control_group, m.active, m.time_zone, m.attributes)::text'

/** The lock of the group keeps other transactions from adding a member between the update and the insert. */
const PUT_MEMBERS = `
  with given as materialized (
    select phone, consents::int[], control_group, active, time_zone, nullif(attributes, '{}')::json as attributes,
      attributes is not null as has_attributes
    from unnest($4::text[], $5::text[], $6::bool[], $7::bool[], $8::text[], $9::text[])
      as given (phone, consents, control_group, active, time_zone, attributes)
  ), old as materialized (
    select m.phone, ${VALUES} as values, ${memberBytes('m')} as bytes
    from group_members m join given g on m.phone = g.phone where m.account_id = $1 and m.group_number = $2
  ), updated as (
    update group_members m set
      consents = coalesce(g.consents, m.consents),
      control_group = coalesce(g.control_group, m.control_group),
      active = coalesce(g.active, m.active),
      time_zone = nullif(coalesce(g.time_zone, m.time_zone), ''),
      attributes = case when g.has_attributes then g.attributes else m.attributes end
    from given g where m.account_id = $1 and m.group_number = $2 and m.phone = g.phone
    returning m.*
  ), added as (
    insert into group_members (account_id, group_number, phone, consents, control_group, active, time_zone, attributes, generation)
    select $1, $2, phone, coalesce(consents, '{}'), coalesce(control_group, false), coalesce(active, true), nullif(time_zone, ''), attributes, $3
    from given where phone not in (select phone from updated)
    returning *
  ), more as (
    select coalesce(sum(${memberBytes('new')}), 0) - coalesce((select sum(bytes) from old), 0) as bytes
    from (select * from updated union all select * from added) as new
  ), counted as (
    update groups set members = members + (select count(*) from added), bytes = bytes + (select bytes from more)
    where account_id = $1 and number = $2
  ), used as (${countUsage({ account: '$1::int', from: 'more', contentBytes: 'sum(bytes)' })}
  )
  select (select count(*)::int from added) as added, bytes::bigint, exists (
    select from (select * from updated union all select * from added) as m left join old on old.phone = m.phone
    where old.values is distinct from ${VALUES}
  ) as "isChanged" from more`
