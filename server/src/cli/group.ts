import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Command, InvalidArgumentError } from 'commander'
import type { Pool } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'
import { findGroup, listGroups, MAX_GROUP_NAME_CHARACTERS, MAX_GROUP_NUMBER } from '../groups/groups.ts'
import { type ImportProgress, type ImportResult, importGroup } from '../groups/import.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand, STANDARD } from './confirm.ts'
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

const importFile = confirmedCommand('import', 'import recipients from a CSV file into a group; members with the same number are replaced')
  .argument('<account-id>', 'the account', accountIdArgument)
  .argument('<group>', 'the number of the group, which is created if it does not exist', groupArgument)
  .argument('<file>', 'a CSV file with a header that has a column "phone"; - reads standard input')
  .option('--name <name>', 'the name of the group', textArgument(MAX_GROUP_NAME_CHARACTERS))
  .action(async (accountId: number, number: number, path: string, options) => {
    const { source, bytes } = await openSource(path)
    const result = await withDatabase(async (pool) => {
      const effect = await replacedMembers(pool, accountId, number)
      // With "-", standard input is the file, so the operator can't reply there.
      if (effect !== undefined) await confirm(options, effect, path === '-' ? { ...STANDARD, input: undefined } : STANDARD)
      const progress = showProgress(bytes)
      return await importGroup(pool, { accountId, number, name: options.name, source, onProgress: progress.show }).finally(progress.clear)
    })
    report(options, result, inWords)
    if (result.imported > 0) return
    // Without --json, the result says so itself.
    if (options.json) printError(NOTHING_IMPORTED)
    process.exitCode = 1
  })

/** Describes the effect on existing members. Returns undefined if the group is new or empty. */
async function replacedMembers(pool: Pool, accountId: number, number: number): Promise<string | undefined> {
  const group = await findGroup(pool, accountId, number)
  if (group === undefined || group.members === 0) return undefined
  const named = group.name === null ? '' : ` (${group.name})`
  const members = quantity(group.members, 'member')
  return `import into group ${number}${named} of account ${accountId}, which has ${members} now: members in the file are replaced, all others stay`
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
  throw new OperatorError(code === 'ENOENT' ? `There is no file ${path}.` : `The file ${path} can't be read: ${message}.`)
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

function inWords({ group, imported, unchanged, repeated, rejectedLines, rejected }: ImportResult): string[] {
  const lines =
    imported === 0
      ? [NOTHING_IMPORTED]
      : [
          `${imported.toLocaleString('en')} recipients of the file are in group ${group} now; ${unchanged.toLocaleString('en')} of them are unchanged.`,
        ]
  if (repeated > 0)
    lines.push(`${quantity(repeated, 'line has', 'lines have')} a number that appears again further down; the last one counts.`)
  if (rejectedLines > 0) lines.push(`${quantity(rejectedLines, 'line was', 'lines were')} rejected:`)
  for (const { line, reason } of rejected.slice(0, MAX_REJECTED_SHOWN)) lines.push(`  line ${line}: ${reason}`)
  if (rejectedLines > MAX_REJECTED_SHOWN) lines.push(`  and more; --json lists the first ${rejected.length.toLocaleString('en')}.`)
  return lines
}

const list = reportingCommand('list', "show an account's groups")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const groups = await withDatabase((pool) => listGroups(pool, accountId))
    report(options, groups, () =>
      table(
        ['GROUP', 'NAME', 'MEMBERS', 'CREATED', 'UPDATED'],
        groups.map((group) => [group.group, group.name, group.members, group.createdAt, group.updatedAt]),
      ),
    )
  })

export const groupCommand = new Command('group').description('groups of recipients').addCommand(importFile).addCommand(list)
