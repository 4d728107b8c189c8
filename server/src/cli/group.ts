import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Command, InvalidArgumentError } from 'commander'
import { OperatorError } from '../errors.ts'
import { listGroups, MAX_GROUP_NAME_CHARACTERS, MAX_GROUP_NUMBER } from '../groups/groups.ts'
import { type ImportProgress, type ImportResult, importGroup } from '../groups/import.ts'
import { accountIdArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

const REJECTED_IN_WORDS = 20
const READ_BYTES = 256 * 1024
const SHOW_EVERY_MS = 100

function groupArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) > MAX_GROUP_NUMBER) {
    throw new InvalidArgumentError(`A group is a whole number from 1 to ${MAX_GROUP_NUMBER}, the one that campaigns name.`)
  }
  return Number(value)
}

const importFile = reportingCommand('import', 'put the recipients of a CSV file into a group; those that are in it already are replaced')
  .argument('<account-id>', 'the account', accountIdArgument)
  .argument('<group>', 'the number of the group, which is made where there is none', groupArgument)
  .argument('<file>', 'a CSV file with a header that has a column "phone"; - reads standard input')
  .option('--name <name>', 'what people call the group', textArgument(MAX_GROUP_NAME_CHARACTERS))
  .action(async (accountId: number, number: number, path: string, options) => {
    const { source, bytes } = await openSource(path)
    const progress = showProgress(bytes)
    const result = await withDatabase((pool) =>
      importGroup(pool, { accountId, number, name: options.name, source, onProgress: progress.show }).finally(progress.clear),
    )
    report(options, result, inWords)
    if (result.imported === 0) process.exitCode = 1
  })

/** `bytes`: how many there are, where that is known. */
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

/** One line on a terminal, written over and over; nothing where the error stream is none. */
function showProgress(bytes: number | undefined): { show: (progress: ImportProgress) => void; clear: () => void } {
  if (!process.stderr.isTTY) return { show: () => {}, clear: () => {} }
  const startedAt = performance.now()
  let shownAt = 0
  return {
    show: (progress) => {
      const now = performance.now()
      if (progress.phase === 'reading' && now - shownAt < SHOW_EVERY_MS) return
      shownAt = now
      process.stderr.write(`\r\u001b[K${progressLine(progress, { elapsedMs: now - startedAt, bytes })}`)
    },
    clear: () => process.stderr.write('\r\u001b[K'),
  }
}

export function progressLine({ phase, rows, bytes }: ImportProgress, of: { elapsedMs: number; bytes: number | undefined }): string {
  if (phase === 'writing') return `${counted(rows)} rows read, now they go into the group ...`
  const perSecond = `${counted(Math.round((rows * 1000) / Math.max(of.elapsedMs, 1)))} a second`
  const percent = of.bytes ? `, ${Math.min(100, Math.floor((bytes * 100) / of.bytes))} %` : ''
  return `${counted(rows)} rows read, ${perSecond}${percent}`
}

function counted(count: number): string {
  return count.toLocaleString('en')
}

function countedLines(count: number, one: string, several: string): string {
  return count === 1 ? `1 line ${one}` : `${counted(count)} lines ${several}`
}

function inWords({ group, imported, unchanged, repeated, rejectedLines, rejected }: ImportResult): string {
  const lines =
    imported === 0
      ? ['Nothing was imported.']
      : [`${counted(imported)} recipients of the file are in group ${group} now; ${counted(unchanged)} of them were so before.`]
  if (repeated > 0) lines.push(`${countedLines(repeated, 'has', 'have')} a number that stands again further down; the last one counts.`)
  if (rejectedLines > 0) lines.push(`${countedLines(rejectedLines, 'was', 'were')} rejected:`)
  for (const { line, reason } of rejected.slice(0, REJECTED_IN_WORDS)) lines.push(`  line ${line}: ${reason}`)
  if (rejectedLines > REJECTED_IN_WORDS) lines.push(`  and more; --json lists the first ${counted(rejected.length)}.`)
  return lines.join('\n')
}

const list = reportingCommand('list', "show an account's groups")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const groups = await withDatabase((pool) => listGroups(pool, accountId))
    report(options, groups, () =>
      table(
        ['GROUP', 'NAME', 'MEMBERS', 'CREATED', 'UPDATED'],
        groups.map((group) => [group.number, group.name, group.members, group.createdAt, group.updatedAt]),
      ),
    )
  })

export const groupCommand = new Command('group').description('groups of recipients').addCommand(importFile).addCommand(list)
