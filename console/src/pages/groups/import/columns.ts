import type { CsvRecord } from '../../../../../server/src/groups/csv-records.ts'
import * as importWords from '../../../words/en-import.ts'
import type { FileHead } from './file-head.ts'

/** What a column has. The names are those of the API; all other columns are attributes. */
const KNOWN = ['phone', 'consents', 'controlGroup', 'status', 'timeZone'] as const
/** A column of the use `none` is left out. */
export const USES = [...KNOWN, 'attribute', 'none'] as const
export type Use = (typeof USES)[number]

const isKnown = (use: Use) => KNOWN.some((known) => known === use)

export type Column = { name: string; use: Use }
export type Columns = { hasHeader: boolean; columns: Column[] }

const MAX_NAME_CHARACTERS = 200
const PHONE_NAMES = /^(tel|mobile|msisdn|cell|gsm|handy|number|numer|recipient)|phone|telefon|komórk/i

/** Digits as people write a number, also without the code of the country. */
const DIGITS = /^\+?\d[\d ().-]{5,}$/

/** What Herald takes for a number: digits with the code of the country. Herald knows more about the numbers of each country. */
export const isNumber = (text: string) => /^\+?[1-9]([ ().-]*\d){5,14}[ ().-]*$/.test(text.trim())

/** A date and an order may have as many digits as a short number. */
const isLikelyPhone = (text = '') => isNumber(text) && (text.includes('+') || text.replace(/\D/g, '').length > 8)

export const fieldsOf = (record: CsvRecord | undefined) => (record !== undefined && 'fields' in record ? record.fields : [])

/** What the columns of a file probably have. A person can change it. */
export function guessColumns({ records }: FileHead): Columns {
  const hasHeader = !fieldsOf(records[0]).some((text) => DIGITS.test(text.trim()))
  return { hasHeader, columns: columnsOf(records, hasHeader) }
}

export function columnsOf(records: CsvRecord[], hasHeader: boolean): Column[] {
  const columns = fieldsOf(records[0]).map((text, index): Column => {
    const name = (hasHeader && clean(text)) || importWords.unnamed(index + 1)
    return { name, use: KNOWN.find((use) => use.toLowerCase() === name.toLowerCase()) ?? 'attribute' }
  })
  if (columns.some(({ use }) => use === 'phone')) return columns
  const likely = columns.map((_, index) => records.filter((record) => isLikelyPhone(fieldsOf(record)[index])).length)
  const isNamed = columns.map(({ name }) => PHONE_NAMES.test(name))
  const most = Math.max(...likely)
  // The column whose name says so, or whose values look most like numbers.
  const phone = [
    columns.findIndex((_, index) => isNamed[index] && likely[index]),
    2 * most >= records.length - 1 && most > 0 ? likely.indexOf(most) : -1,
    isNamed.indexOf(true),
  ].find((index) => index !== -1)
  return phone === undefined ? columns : withUse(columns, phone, 'phone')
}

/** Only one column can have the numbers, and so on; any number of them are attributes, or left out. */
export function withUse(columns: Column[], index: number, use: Use): Column[] {
  return columns.map((column, each) => {
    if (each === index) return { ...column, use }
    return isKnown(use) && column.use === use ? { ...column, use: 'attribute' } : column
  })
}

/** The line that says to Herald what the columns have, in place of the header. */
export function headerOf(columns: Column[], separator: string): string {
  return `${namesOf(columns).map(quoted).join(separator)}\n`
}

/** The names under which Herald keeps the columns: different ones, and no attribute has a name that means something else. */
export function namesOf(columns: Column[]): string[] {
  const taken = new Set<string>(KNOWN.map((use) => use.toLowerCase()))
  return columns.map(({ name, use }) => {
    if (isKnown(use)) return use
    let unique = name
    for (let n = 2; taken.has(unique.toLowerCase()); n += 1) unique = `${name} ${n}`
    taken.add(unique.toLowerCase())
    return unique
  })
}

/** In one line, since a header of several lines would change the number of each line behind it. */
const clean = (name: string) => [...name.replaceAll('\0', '').replace(/\s+/g, ' ').trim()].slice(0, MAX_NAME_CHARACTERS - 4).join('')
export const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

/** Why the import will reject a line, as far as the columns show. Only Herald knows the numbers of each country. */
export function problemOf(record: CsvRecord, columns: Column[]): string | undefined {
  if ('problem' in record) return record.problem
  const { length } = record.fields
  return length === columns.length ? undefined : importWords.otherCount(length, columns.length)
}
