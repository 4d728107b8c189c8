import { createWriteStream, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command } from 'commander'
import type { Pool } from '../db/pool.ts'
import { installationSecret, openKeyring } from '../db/secrets.ts'
import { createErasedPeople, ERASURE_SECRET, type ErasedPeople } from '../erasure/erased.ts'
import { OperatorError } from '../errors.ts'
import { syncDirectory } from '../files.ts'
import { allowPerson, findErasures } from '../privacy/allow.ts'
import { asJson } from '../privacy/as-json.ts'
import { type Erased, erasePerson } from '../privacy/erase.ts'
import { findPerson, type Progress, type Summary, summarize, type Wanted } from '../privacy/find.ts'
import { audited, recorder } from './audited.ts'
import { accountIdArgument, readingCommand, report, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { ignoreClosedPipe } from './pages.ts'
import { phoneArgument } from './phone.ts'
import { quantity, statusLine, table } from './terminal.ts'

type Work<T> = (pool: Pool, people: ErasedPeople, onProgress: (progress: Progress) => void) => Promise<T>

/** Runs `work` with the key of the hashes, and shows how far it has read. */
async function withPeople<T>(work: Work<T>): Promise<T> {
  const { show, clear } = statusLine()
  return await withDatabase(async (pool, config) => {
    const people = createErasedPeople(await installationSecret(pool, ERASURE_SECRET, await openKeyring(pool, config)))
    return await work(pool, people, ({ place, rows }) => show(`${place}: ${quantity(rows, 'row')} read`)).finally(clear)
  })
}

const withPhone = (command: Command) =>
  command
    .argument('<phone>', 'the number, with its country code', phoneArgument)
    .option('--account <account-id>', 'one account; by default all accounts', accountIdArgument)

const show = withPhone(readingCommand('show', 'show how much is stored about a number')).action(async (phone: string, options) => {
  const wanted = { phone, accountId: options.account }
  const summary = await withPeople((pool, people, onProgress) => summarize(pool, wanted, people, onProgress))
  report(options, summary, summaryInWords)
})

function summaryInWords({ phone, rows, total, erased }: Summary): string[] {
  const found = total === 0 ? [`Nothing is stored about ${phone}.`] : table(['WHAT', 'ROWS'], Object.entries(rows))
  return [...found, ...erased.map(({ accountId, erasedAt }) => `Erased ${inAccount(accountId)} at ${erasedAt.toISOString()}.`)]
}

const inAccount = (accountId: number | null | undefined) => (accountId ? `in account ${accountId}` : 'in all accounts')

const exportCommand = withPhone(readingCommand('export', 'write everything that is stored about a number; always as JSON'))
  .option('--file <path>', 'a new file to write to, which only you can read; by default standard output')
  .action(async (phone: string, options) => {
    const wanted = { phone, accountId: options.account }
    const written = { phone, file: options.file as string | undefined, rows: 0 }
    await withPeople(async (pool, _people, onProgress) => {
      const onRows = (rows: number) => {
        written.rows += rows
      }
      const json = Readable.from(asJson(phone, findPerson(pool, wanted, onProgress), onRows))
      if (options.file === undefined) return await pipeline(json, process.stdout, { end: false }).catch(ignoreClosedPipe)
      await writeNew(options.file, json)
    })
    if (options.file !== undefined)
      report(options, written, ({ rows }) => `Wrote ${quantity(rows, 'row')} about ${phone} to ${options.file}.`)
  })

/** Writes a file that appears under its name only when it is complete, and that only its owner can read. */
async function writeNew(path: string, content: Readable): Promise<void> {
  if (existsSync(path)) throw new OperatorError(`The file ${path} already exists; name a new one.`)
  const part = `${path}.${process.pid}.part`
  // Also after Ctrl-C.
  process.once('exit', () => rmSync(part, { force: true }))
  try {
    await pipeline(content, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }))
    renameSync(part, path)
    syncDirectory(dirname(path))
  } catch (error) {
    unwritable(path, error as NodeJS.ErrnoException)
  }
}

function unwritable(path: string, error: NodeJS.ErrnoException): never {
  if (!FILE_CALLS.includes(error.syscall ?? '')) throw error
  // Without the rest of the message, which names the temporary file.
  throw new OperatorError(`The file ${path} can't be written: ${error.message.split(',')[0]}.`)
}

const FILE_CALLS = ['open', 'write', 'fsync', 'rename']

/** The admin API has an operation for one account, and one for all accounts. */
const scoped = (action: string, accountId: number | undefined) => (accountId === undefined ? `${action}Everywhere` : action)

const erase = withPhone(
  confirmedCommand(
    'erase',
    "erase everything that is stored about a number, and never write to it again; this can't be undone",
    'eraseRecipient',
    'eraseRecipientEverywhere',
  ),
).action(async (phone: string, options, command: Command) => {
  const wanted = { phone, accountId: options.account }
  const erased = await withPeople(async (pool, people, onProgress) => {
    const summary = await summarize(pool, wanted, people, onProgress)
    await confirm(options, eraseInWords(wanted, summary))
    const record = recorder(command, { action: scoped('eraseRecipient', options.account), accountId: options.account, subject: phone })
    return await erasePerson(pool, people, wanted, { onProgress, summary, record })
  })
  const total = Object.values(erased).reduce((sum, rows) => sum + rows, 0)
  report(options, { phone, accountId: options.account ?? null, erased, total }, () => erasedInWords(wanted, erased, total))
})

function eraseInWords({ phone, accountId }: Wanted, { rows, total }: Summary): string {
  const what = Object.entries(rows).map(([place, count]) => `${place} ${count.toLocaleString('en')}`)
  const listed = total === 0 ? '' : ` (${what.join(', ')})`
  return `erase ${quantity(total, 'row')} about ${phone} ${inAccount(accountId)}${listed} for good, and never write to this number again`
}

function erasedInWords({ phone, accountId }: Wanted, erased: Erased, total: number): string[] {
  const rows = Object.entries(erased)
  return [...(total === 0 ? [] : table(['WHAT', 'ROWS'], rows)), `${phone} is erased ${inAccount(accountId)}: ${quantity(total, 'row')}.`]
}

const allow = withPhone(
  confirmedCommand(
    'allow',
    'write to an erased number again, because its owner asked for it',
    'allowRecipient',
    'allowRecipientEverywhere',
  ),
).action(async (phone: string, options, command: Command) => {
  const wanted = { phone, accountId: options.account }
  await withPeople(async (pool, people) => {
    await findErasures(pool, people, wanted)
    await confirm(options, `let ${options.account ? `account ${options.account}` : 'all accounts'} write to ${phone} again`)
    await audited(pool, command, {
      action: scoped('allowRecipient', options.account),
      accountId: options.account,
      subject: phone,
      change: (db) => allowPerson(db, people, wanted),
      entry: (before) => ({ before, after: null }),
    })
  })
  report(options, { phone, accountId: options.account ?? null }, () => `${phone} can be written to again ${inAccount(options.account)}.`)
})

export const personCommand = new Command('person')
  .description('what is stored about a phone number: show, export or erase it')
  .addCommand(show)
  .addCommand(exportCommand)
  .addCommand(erase)
  .addCommand(allow)
