import { OperatorError } from '../errors.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { lengthOf } from '../text-length.ts'
import { readTimeZone, TIME_ZONE } from '../time-zones.ts'

// Turns a line of a group's file into a row for COPY, and has the rules for the values of a member.

const MAX_COLUMNS = 100
const MAX_NAME_CHARACTERS = 200
export const MAX_CONSENT = 2 ** 31 - 1
const SHOWN_CHARACTERS = 40
// Files have few distinct lists of consents. Beyond these limits, a list is parsed each time.
const MAX_CACHED_CONSENTS = 1_000
const MAX_CACHED_LENGTH = 100

const YES_NO = new Map(Object.entries({ true: 't', 1: 't', yes: 't', false: 'f', 0: 'f', no: 'f', '': 'f' }))
const STATUSES = new Map(Object.entries({ active: 't', inactive: 'f', '': 't' }))

/** The index of each column in a record; attributes have their names as JSON keys. */
export type Columns = {
  count: number
  phone: number
  consents: number | undefined
  controlGroup: number | undefined
  status: number | undefined
  timeZone: number | undefined
  attributes: { index: number; key: string }[]
}

/** Throws an OperatorError if the header is not valid. */
export function readHeader(header: string[]): Columns {
  const names = header.map((name) => name.trim())
  if (names.length > MAX_COLUMNS) throw new OperatorError(`The header has ${names.length} columns; at most ${MAX_COLUMNS} are allowed.`)
  const indexes = new Map<string, number>()
  names.forEach((name, index) => {
    const key = name.toLowerCase()
    if (name === '') throw new OperatorError(`Column ${index + 1} of the header has no name.`)
    if (name.includes('\0') || lengthOf(name) > MAX_NAME_CHARACTERS) {
      throw new OperatorError(`The name of column ${index + 1} is longer than ${MAX_NAME_CHARACTERS} characters, or has a null character.`)
    }
    if (indexes.has(key)) throw new OperatorError(`The header has two columns named ${shown(name)}.`)
    indexes.set(key, index)
  })
  const phone = indexes.get('phone')
  if (phone === undefined) throw new OperatorError('The header has no column "phone"; the first line of the file must name the columns.')
  const known = {
    phone,
    consents: indexes.get('consents'),
    controlGroup: indexes.get('controlgroup'),
    status: indexes.get('status'),
    timeZone: indexes.get('timezone'),
  }
  const attributes = names
    .map((name, index) => ({ index, key: `${JSON.stringify(name)}:` }))
    .filter(({ index }) => !Object.values(known).includes(index))
  return { count: names.length, ...known, attributes }
}

/** Returns a row for COPY without its line number, or the problem of the line, which quotes at most 40 of its characters. */
export function readMember(fields: string[], columns: Columns): { row: string } | { problem: string } {
  if (fields.length !== columns.count) return { problem: `it has ${fieldCount(fields.length)}, and the header has ${columns.count}` }
  const written = (fields[columns.phone] as string).trim()
  const phone = normalisePhoneNumber(written)
  if (phone === undefined) return { problem: wrongPhone(written) }
  const consents = readConsents(fieldAt(fields, columns.consents))
  if (consents === undefined) return wrongValue('consents', fieldAt(fields, columns.consents), 'whole numbers separated by ";"')
  const controlGroup = YES_NO.get(fieldAt(fields, columns.controlGroup).toLowerCase())
  if (controlGroup === undefined) return wrongValue('controlGroup', fieldAt(fields, columns.controlGroup), 'true or false')
  const active = STATUSES.get(fieldAt(fields, columns.status).toLowerCase())
  if (active === undefined) return wrongValue('status', fieldAt(fields, columns.status), 'active or inactive')
  const timeZone = readTimeZone(fieldAt(fields, columns.timeZone))
  if (timeZone === undefined) return wrongValue('timeZone', fieldAt(fields, columns.timeZone), TIME_ZONE)
  const attributes = readAttributes(fields, columns)
  if (attributes === undefined) return { problem: 'it has a null character' }
  return { row: `${phone}\t${consents}\t${controlGroup}\t${active}\t${timeZone ?? '\\N'}\t${attributes}` }
}

export function wrongPhone(written: string): string {
  return written === '' ? 'it has no phone number' : `${shown(written)} is not a possible international phone number`
}

function fieldAt(fields: string[], index: number | undefined): string {
  return index === undefined ? '' : (fields[index] as string).trim()
}

function fieldCount(count: number): string {
  return count === 1 ? '1 field' : `${count} fields`
}

export function wrongValue(column: string, value: string, expected: string): { problem: string } {
  return { problem: `${column} is ${shown(value)}, and must be ${expected}` }
}

/** Returns a copy: a substring keeps its whole text in memory, which would be a block of the file for each rejected line. */
function shown(text: string): string {
  const characters = [...text.slice(0, 2 * SHOWN_CHARACTERS)].slice(0, SHOWN_CHARACTERS).join('')
  return `"${Buffer.from(characters.replace(/\p{C}/gu, '\uFFFD')).toString()}"`
}

const consentsByText = new Map<string, string>()

/** In PostgreSQL's array syntax; undefined if the text is not a list of consents. */
function readConsents(text: string): string | undefined {
  if (text === '') return '{}'
  const cached = consentsByText.get(text)
  if (cached !== undefined) return cached
  const consents = text.split(';').map((consent) => consent.trim())
  if (!consents.every((consent) => /^\d{1,10}$/.test(consent) && Number(consent) <= MAX_CONSENT)) return undefined
  const array = `{${[...new Set(consents.map(Number))]}}`
  if (consentsByText.size < MAX_CACHED_CONSENTS && text.length <= MAX_CACHED_LENGTH) consentsByText.set(Buffer.from(text).toString(), array)
  return array
}

/**
 * Omits empty fields. `\N` is null for COPY, so a backslash must be doubled; JSON has escaped every other character that COPY treats
 * specially.
 */
function readAttributes(fields: string[], { attributes }: Columns): string | undefined {
  let json = ''
  for (const { index, key } of attributes) {
    const value = fields[index] as string
    if (value !== '') json += `${json === '' ? '{' : ','}${key}${JSON.stringify(value)}`
  }
  if (json === '') return '\\N'
  if (!json.includes('\\')) return `${json}}`
  // PostgreSQL would store JSON with an escaped NUL, but cannot read it.
  if (attributes.some(({ index }) => fields[index]?.includes('\0'))) return undefined
  return `${json.replaceAll('\\', '\\\\')}}`
}
