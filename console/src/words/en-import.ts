import { type Group, memberCount, nameOf } from './en-groups.ts'
import { count, isolated, number } from './numbers.ts'

// The words of the import of a group.

const SEPARATORS: Record<string, string> = { ',': 'commas', ';': 'semicolons', '\t': 'tabs' }

/** Of a guess, only the first digits are worth something. */
const roughly = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })

const lineCount = (lines: number, isExact: boolean) => (isExact ? count(lines, 'line') : `about ${roughly.format(lines)} lines`)

export const open = 'Import CSV'
export const choose = 'Choose a CSV file'
export const drop = 'or drop it here'
export const hint = 'UTF-8 (in Excel: “CSV UTF-8”), one recipient per line, each with a number such as +48500100200.'
export const empty = (name: string) => `${name} is empty. Choose a file with one recipient per line.`
export const unreadableHeader = (name: string, reason: string) =>
  `The first line of ${name} can’t be read: ${reason}. Save the file as CSV in UTF-8.`
export const unreadable = 'The file can’t be read: it was changed, moved or removed. Choose it again.'
export const fileNote = (lines: number, isExact: boolean, separator: string) =>
  `${lineCount(lines, isExact)} · separated by ${SEPARATORS[separator]}`
export const other = 'Choose another file'
export const into = 'Into'
export const newGroup = 'A new group'
export const option = (group: Group) => `${nameOf(group)} (${group.segmentId}), ${memberCount(group.members)}`
export const hasHeader = 'The first line names the columns'
export const unnamed = (position: number) => `column ${position}`
export const attribute = (name: string) => `Attribute “${isolated(name)}”`
export const noPhone = 'Choose the column with the phone numbers.'
export const preview = (lines: number) =>
  lines === 0 ? 'The file has only a header' : lines === 1 ? 'The first line' : `The first ${lines} lines`
export const line = 'Line'
export const rejected = 'rejected'
export const otherCount = (fields: number, columns: number) => `it has ${count(fields, 'field')}, and the first line has ${columns}`
export const notNumber = 'not an international number'
export const start = (lines: number, isExact: boolean) => `Import ${lineCount(lines, isExact)}`
export const sureTitle = (name: string) => `Import into ${name}?`
export const sureNow = 'Import'
export const sure = (value: number) => `The group has ${memberCount(value)}. Those in the file are replaced; all others stay.`
export const heading = (is: 'running' | 'done' | 'failed', name: string) =>
  ({ running: `${name} is being imported`, done: `${name} was imported`, failed: `${name} was not imported` })[is]
export const percent = (value: number) => `${value}%.`
export const writing = 'Herald has the file and is importing it.'
export const back = 'Back to the columns'
export const openGroup = 'Open the group'
export const imported = (value: number) => `${count(value, 'recipient')} imported.`
export const rejectedLines = (value: number, isMore: boolean) =>
  isMore ? `${number.format(value)} or more lines were rejected.` : `${count(value, 'line was', 'lines were')} rejected.`
export const lineAt = (line: number, reason: string) => `Line ${number.format(line)}: ${reason}`
export const nothing = 'Nothing was changed. Check which column has the phone numbers, with their country codes.'
export const download = 'Download the rejected lines'
