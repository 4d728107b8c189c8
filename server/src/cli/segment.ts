import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Command, InvalidArgumentError } from 'commander'
import { requireAccount } from '../accounts/accounts.ts'
import type { Pool } from '../db/pool.ts'
import { noSuch, OperatorError } from '../errors.ts'
import {
  findGroup,
  type Group,
  listGroups,
  MAX_GROUP_NAME_CHARACTERS,
  MAX_GROUP_NUMBER,
  type Member,
  removeGroup,
  removeMember,
} from '../groups/groups.ts'
import { type ImportProgress, type ImportResult, importGroup } from '../groups/import.ts'
import { readMembers } from '../groups/list.ts'
import { audited, recorder } from './audited.ts'
import { accountIdArgument, asOperatorError, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand, STANDARD } from './confirm.ts'
import { printPages } from './pages.ts'
import { phoneArgument } from './phone.ts'
import { printError, quantity, statusLine, table } from './terminal.ts'

const MAX_REJECTED_SHOWN = 20
const READ_BYTES = 256 * 1024
const SHOW_EVERY_MS = 100
const NOTHING_IMPORTED = 'Nothing was imported: no line of the file has a valid recipient.'

function groupArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) > MAX_GROUP_NUMBER) {
    throw new InvalidArgumentError(`A group number is a whole number from 1 to ${MAX_GROUP_NUMBER}, as campaigns use it.`)
  }
  return Number(value)
}

const account = ['<account-id>', 'the account', accountIdArgument] as const
const group = ['<group>', 'the number of the group', groupArgument] as const

const importFile = confirmedCommand(
  'import',
  'import recipients from a CSV file into a group; members with the same number are replaced',
  'importSegment',
)
  .argument(...account)
  .argument('<group>', 'the number of the group, which is created if it does not exist and a line can be imported', groupArgument)
  .argument('<file>', 'a CSV file with a header that has a column "phone"; - reads standard input')
  .option('--name <name>', 'the name of the group', textArgument(MAX_GROUP_NAME_CHARACTERS))
  .action(async (accountId: number, number: number, path: string, options, command: Command) => {
    const { source, bytes } = await openSource(path)
    const result = await withDatabase(async (pool) => {
      const effect = await replacedMembers(pool, accountId, number)
      // With "-", standard input is the file, so the operator can't reply there.
      if (effect !== undefined) await confirm(options, effect, path === '-' ? { ...STANDARD, input: undefined } : STANDARD)
      const progress = showProgress(bytes)
      const record = recorder(command, { accountId, subject: number })
      return await importGroup(pool, { accountId, number, name: options.name, source, onProgress: progress.show, record })
        .finally(progress.clear)
        .catch((error) => asOperatorError(error))
    })
    report(options, result, importedInWords)
    if (result.imported > 0) return
    // Without --json, the result says so itself.
    if (options.json) printError(NOTHING_IMPORTED)
    process.exitCode = 1
  })

function named({ group: number, name }: Group): string {
  return name === null ? `group ${number}` : `group ${number} (${name})`
}

/** Describes the effect on existing members. Returns undefined if the group is new or empty. */
async function replacedMembers(pool: Pool, accountId: number, number: number): Promise<string | undefined> {
  const found = await findGroup(pool, { accountId, number })
  if (found === undefined || found.members === 0) return undefined
  const members = quantity(found.members, 'member')
  return `import into ${named(found)} of account ${accountId}, which has ${members} now: members in the file are replaced, all others stay`
}

/** `bytes`: the size of the source, if it is known. */
async function openSource(path: string): Promise<{ source: AsyncIterable<Uint8Array>; bytes: number | undefined }> {
  if (path === '-') return { source: process.stdin, bytes: undefined }
  const file = await stat(path).catch((error) => unreadable(path, error))
  if (file.isDirectory()) throw new OperatorError(`${path} is a directory, not a file.`)
  return { source: readAll(path), bytes: file.isFile() ? file.size : undefined }
}

async function* readAll(path: string): AsyncGenerator<Uint8Array> {
  const chunks = createReadStream(path, { highWaterMark: READ_BYTES })[Symbol.asyncIterator]()
  for (;;) {
    const next = await chunks.next().catch((error) => unreadable(path, error))
    if (next.done) return
    yield next.value
  }
}

function unreadable(path: string, { code, message }: NodeJS.ErrnoException): never {
  throw code === 'ENOENT' ? noSuch(`There is no file ${path}.`) : new OperatorError(`The file ${path} can't be read: ${message}.`)
}

function showProgress(bytes: number | undefined): { show: (progress: ImportProgress) => void; clear: () => void } {
  const { show, clear } = statusLine()
  const startedAt = performance.now()
  let shownAt = 0
  return {
    show: (progress) => {
      const now = performance.now()
      if (progress.phase === 'reading' && now - shownAt < SHOW_EVERY_MS) return
      shownAt = now
      show(progressLine(progress, { elapsedMs: now - startedAt, bytes }))
    },
    clear,
  }
}

export function progressLine({ phase, rows, bytes }: ImportProgress, of: { elapsedMs: number; bytes: number | undefined }): string {
  if (phase === 'writing') return `${quantity(rows, 'row')} read, writing to the group ...`
  const perSecond = `${Math.round((rows * 1000) / Math.max(of.elapsedMs, 1)).toLocaleString('en')} a second`
  const percent = of.bytes ? `, ${Math.min(100, Math.floor((bytes * 100) / of.bytes))} %` : ''
  return `${quantity(rows, 'row')} read, ${perSecond}${percent}`
}

export function importedInWords({ group, imported, unchanged, repeated, rejectedLines, rejected }: ImportResult): string[] {
  const lines =
    imported === 0
      ? [NOTHING_IMPORTED]
      : [
          `${quantity(imported, 'recipient of the file is', 'recipients of the file are')} in group ${group} now; ${unchanged.toLocaleString('en')} ${unchanged === 1 ? 'is' : 'are'} unchanged.`,
        ]
  if (repeated > 0)
    lines.push(`${quantity(repeated, 'line has', 'lines have')} a number that appears again further down; the last one counts.`)
  if (rejectedLines > 0) lines.push(`${quantity(rejectedLines, 'line was', 'lines were')} rejected:`)
  for (const { line, reason } of rejected.slice(0, MAX_REJECTED_SHOWN)) lines.push(`  line ${line}: ${reason}`)
  if (rejectedLines > MAX_REJECTED_SHOWN) lines.push(`  and more; --json lists the first ${rejected.length.toLocaleString('en')}.`)
  return lines
}

const list = readingCommand('list', "show an account's groups")
  .argument(...account)
  .action(async (accountId: number, options) => {
    const groups = await withDatabase((pool) => listGroups(pool, accountId))
    report(options, groups, () =>
      table(
        ['GROUP', 'NAME', 'MEMBERS', 'CREATED', 'UPDATED'],
        groups.map((group) => [group.group, group.name, group.members, group.createdAt, group.updatedAt]),
      ),
    )
  })

async function requireGroup(pool: Pool, accountId: number, number: number): Promise<Group> {
  const found = await findGroup(pool, { accountId, number })
  if (found === undefined) await requireAccount(pool, accountId)
  return found ?? noSuchGroup(accountId, number)
}

function noSuchGroup(accountId: number, number: number): never {
  throw noSuch(`Account ${accountId} has no group ${number}; see "herald segment list ${accountId}".`)
}

const show = readingCommand('show', 'show a group')
  .argument(...account)
  .argument(...group)
  .action(async (accountId: number, number: number, options) => {
    const found = await withDatabase((pool) => requireGroup(pool, accountId, number))
    report(
      options,
      found,
      () =>
        `${named(found).replace('g', 'G')} has ${quantity(found.members, 'member')}, and was last changed at ${found.updatedAt.toISOString()}.`,
    )
  })

// Attributes can be longer than a line, so they come last.
const MEMBERS = {
  columns: ['PHONE', 'STATUS', 'CONTROL', 'ZONE', 'CONSENTS', 'ATTRIBUTES'],
  widths: [16, 8, 7, 20, 12],
  cells: ({ phone, status, controlGroup, timeZone, consents, attributes }: Member) => [
    phone,
    status,
    controlGroup ? 'yes' : 'no',
    timeZone ?? '-',
    consents.join(';') || '-',
    attributes === undefined ? '-' : JSON.stringify(attributes),
  ],
}

const members = readingCommand('members', 'show the members of a group')
  .argument(...account)
  .argument(...group)
  .action(async (accountId: number, number: number, options) => {
    await withDatabase(async (pool) => {
      await requireGroup(pool, accountId, number)
      await printPages(readMembers(pool, { accountId, number }), options, MEMBERS)
    })
  })

const remove = confirmedCommand(
  'remove',
  'remove a group with all its members, or one member; campaigns that have started still send to them',
  'deleteSegment',
  'deleteSegmentMember',
)
  .argument(...account)
  .argument(...group)
  .argument('[phone]', 'the number of the member to remove; without it, the whole group is removed', phoneArgument)
  .action(async (accountId: number, number: number, phone: string | undefined, options, command: Command) => {
    await withDatabase(async (pool) => {
      const found = await requireGroup(pool, accountId, number)
      if (phone === undefined) return await removeAll({ pool, command, options }, accountId, found)
      await confirm(options, `remove ${phone} from ${named(found)} of account ${accountId}`)
      const change = async (db: Pool) => {
        const removed = await removeMember(db, { accountId, number }, phone)
        if (removed === undefined) noSuchGroup(accountId, number)
        return removed ?? noMember(phone, found, accountId)
      }
      const entry = (before: object) => ({ before, after: null })
      await audited(pool, command, { action: 'deleteSegmentMember', accountId, subject: `${number} ${phone}`, change, entry })
      report(options, { group: number, phone }, () => `${phone} was removed from ${named(found)}.`)
    })
  })

function noMember(phone: string, group: Group, accountId: number): never {
  throw noSuch(`${phone} is not a member of ${named(group)} of account ${accountId}.`)
}

type Removal = { pool: Pool; command: Command; options: { yes?: boolean; json?: boolean } }

async function removeAll({ pool, command, options }: Removal, accountId: number, found: Group): Promise<void> {
  await confirm(options, `remove ${named(found)} of account ${accountId} with its ${quantity(found.members, 'member')} for good`)
  const record = recorder(command, { action: 'deleteSegment', accountId, subject: found.group })
  const removed = (await removeGroup(pool, { accountId, number: found.group }, record)) ?? noSuchGroup(accountId, found.group)
  report(options, removed, () => `${named(removed).replace('g', 'G')} and its ${quantity(removed.members, 'member')} were removed.`)
}

/** `group` is the older name of the command. */
export const segmentCommand = new Command('segment')
  .alias('group')
  .description('groups of recipients, which campaigns are sent to')
  .addCommand(list)
  .addCommand(show)
  .addCommand(members)
  .addCommand(importFile)
  .addCommand(remove)
