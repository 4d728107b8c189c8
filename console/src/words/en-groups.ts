import { count, isolated, number } from './numbers.ts'

// The words of the groups and their members.

export type Group = { segmentId: number; name?: string; members: number }

const FOR_GOOD = 'This can’t be undone. Campaigns that have started still send to them.'

export const memberCount = (value: number) => count(value, 'member')
export const nameOf = ({ segmentId, name = `Group ${segmentId}` }: Pick<Group, 'segmentId' | 'name'>) => isolated(name)
export const total = (groups: Group[]) =>
  `${count(groups.length, 'group')}, ${memberCount(groups.reduce((sum, group) => sum + group.members, 0))} in all`
export const none = 'No group yet'
export const noneHint = 'Campaigns are sent to groups. An admin makes one from a CSV file.'
export const group = 'Group'
export const members = 'Members'
export const changed = 'Changed'
export const facts = (id: number, value: number) => `Group ${id} · ${memberCount(value)}`
export const noGroup = (id: number) => `There is no group ${id} in this account`
export const add = 'Create a group'
export const name = 'Name'
export const rename = 'Rename'
export const deleteGroup = 'Delete'
export const deleteTitle = (name: string) => `Delete ${name}?`
export const deleteBody = (value: number) => `This deletes the group and ${memberCount(value)}. ${FOR_GOOD}`
export const deleteScheduled = (value: number) =>
  `${count(value, 'scheduled campaign names', 'scheduled campaigns name')} this group, and will not reach these members.`
export const choose = 'Select'
export const chooseMember = (phone: string) => `Select ${phone}`

/** What a column of a file can have. */
export const columns = {
  phone: 'Phone number',
  consents: 'Consents',
  controlGroup: 'Control group',
  status: 'Status',
  timeZone: 'Time zone',
  none: 'Leave out',
}
export const statuses = { active: 'active', inactive: 'inactive' }
export const attributes = 'Attributes'
export const noMembers = 'The group has no members'
export const noMembersHint = 'Import a CSV file, or add members by hand.'
export const notMember = (phone: string) => `${phone} is not a member`
export const addMembers = 'Add members'
export const numbers = 'Phone numbers'
export const numbersHint = 'With the country code, one per line.'
export const added = (value: number) => `${memberCount(value)} added.`
export const remove = (value: number) => `Remove ${memberCount(value)}`
export const removeBody = (value: number, all: number) =>
  `This removes ${number.format(value)} of ${memberCount(all)}, with their consents and attributes. ${FOR_GOOD}`
export const removed = (value: number) => `${memberCount(value)} removed.`
