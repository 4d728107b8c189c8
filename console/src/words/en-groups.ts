import { count, isolated, number } from './numbers.ts'

const SEPARATORS: Record<string, string> = { ',': 'commas', ';': 'semicolons', '\t': 'tabs' }

/** Of a guess, only the first digits are worth something. */
const roughly = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })

const lineCount = (lines: number, isExact: boolean) => (isExact ? count(lines, 'line') : `about ${roughly.format(lines)} lines`)

type Group = { segmentId: number; name?: string; members: number }

const members = (value: number) => count(value, 'member')
const nameOf = ({ segmentId, name = `Group ${segmentId}` }: Pick<Group, 'segmentId' | 'name'>) => isolated(name)
const FOR_GOOD = 'This can’t be undone. Campaigns that have started still send to them.'

/** The words of the page. */
export const groups = {
  total: (groups: Group[]) => `${count(groups.length, 'group')}, ${members(groups.reduce((sum, group) => sum + group.members, 0))} in all`,
  none: 'No group yet',
  noneHint: 'Campaigns are sent to groups. An admin makes one from a CSV file.',
  group: 'Group',
  members: 'Members',
  changed: 'Changed',
  nameOf,
  facts: (id: number, value: number) => `Group ${id} · ${members(value)}`,
  noGroup: (id: number) => `There is no group ${id} in this account`,
  add: 'Create a group',
  name: 'Name',
  rename: 'Rename',
  delete: 'Delete',
  deleteTitle: (name: string) => `Delete ${name}?`,
  deleteBody: (value: number) => `This deletes the group and ${members(value)}. ${FOR_GOOD}`,
  choose: 'Select',
  chooseMember: (phone: string) => `Select ${phone}`,
  /** What a column of a file can have. */
  columns: {
    phone: 'Phone number',
    consents: 'Consents',
    controlGroup: 'Control group',
    status: 'Status',
    timeZone: 'Time zone',
    none: 'Leave out',
  },
  statuses: { active: 'active', inactive: 'inactive' },
  attributes: 'Attributes',
  noMembers: 'The group has no members',
  noMembersHint: 'Import a CSV file, or add members by hand.',
  notMember: (phone: string) => `${phone} is not a member`,
  addMembers: 'Add members',
  numbers: 'Phone numbers',
  numbersHint: 'With the country code, one a line.',
  added: (value: number) => `${members(value)} added.`,
  remove: (value: number) => `Remove ${members(value)}`,
  removeBody: (value: number, all: number) =>
    `This removes ${number.format(value)} of ${members(all)}, with their consents and attributes. ${FOR_GOOD}`,
  removed: (value: number) => `${members(value)} removed.`,
  import: {
    open: 'Import CSV',
    choose: 'Choose a CSV file',
    drop: 'or drop it here',
    hint: 'UTF-8 (in Excel: “CSV UTF-8”), one recipient a line, with a number such as +48500100200.',
    empty: (name: string) => `${name} is empty. Choose a file with one recipient a line.`,
    unreadableHeader: (name: string, reason: string) =>
      `The first line of ${name} can’t be read: ${reason}. Save the file as CSV in UTF-8.`,
    unreadable: 'The file can’t be read: it was changed, moved or removed. Choose it again.',
    fileNote: (lines: number, isExact: boolean, separator: string) =>
      `${lineCount(lines, isExact)} · separated by ${SEPARATORS[separator]}`,
    other: 'Choose another file',
    into: 'Into',
    newGroup: 'A new group',
    option: (group: Group) => `${nameOf(group)} (${group.segmentId}), ${members(group.members)}`,
    hasHeader: 'The first line names the columns',
    unnamed: (position: number) => `column ${position}`,
    attribute: (name: string) => `Attribute “${isolated(name)}”`,
    noPhone: 'Choose the column with the phone numbers.',
    preview: (lines: number) => (lines === 0 ? 'The file has only a header' : lines === 1 ? 'The first line' : `The first ${lines} lines`),
    line: 'Line',
    rejected: 'rejected',
    otherCount: (fields: number, columns: number) => `it has ${count(fields, 'field')}, and the first line has ${columns}`,
    notNumber: 'not an international number',
    start: (lines: number, isExact: boolean) => `Import ${lineCount(lines, isExact)}`,
    sureTitle: (name: string) => `Import into ${name}?`,
    sureNow: 'Import',
    sure: (value: number) => `The group has ${members(value)}. Those in the file are replaced; all others stay.`,
    heading: (is: 'running' | 'done' | 'failed', name: string) =>
      ({ running: `${name} is being imported`, done: `${name} was imported`, failed: `${name} was not imported` })[is],
    percent: (value: number) => `${value}%.`,
    writing: 'Herald has the file, and imports it.',
    back: 'Back to the columns',
    openGroup: 'Open the group',
    imported: (value: number) => `${count(value, 'recipient is', 'recipients are')} in the group now.`,
    rejectedLines: (value: number, isMore: boolean) =>
      isMore ? `${number.format(value)} or more lines were rejected.` : `${count(value, 'line was', 'lines were')} rejected.`,
    lineAt: (line: number, reason: string) => `Line ${number.format(line)}: ${reason}`,
    nothing: 'Nothing was changed. Check which column has the phone numbers, with their country codes.',
    nameFailed: 'The group has no name yet. Open it, and rename it.',
    download: 'Download the rejected lines',
  },
}
