import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { InvalidArgumentError, Option } from 'commander'
import { requireAccount } from '../accounts/accounts.ts'
import { copyAudit } from '../audit/export.ts'
import { type AuditEntry, type AuditFilters, listAudit } from '../audit/list.ts'
import { createExportPool, type Pool } from '../db/pool.ts'
import { wrongUsage } from '../errors.ts'
import { MAX_LIMIT } from '../http/paging.ts'
import { printable } from '../printable.ts'
import { openCopy } from '../reports/exports/copy.ts'
import { momentsInOrder } from '../schemas.ts'
import { startOf } from '../time.ts'
import { accountIdArgument, readingCommand, textArgument, withDatabase } from './command.ts'
import { ignoreClosedPipe, printPages } from './pages.ts'

function momentArgument(value: string): string {
  if (startOf(value) === undefined)
    throw new InvalidArgumentError('It must be a day, or a time with its zone, such as 2026-01-31T08:00:00Z.')
  return value
}

type Options = {
  json?: boolean
  csv?: boolean
  account?: number
  action?: string
  actor?: string
  subject?: string
  from?: string
  to?: string
}

export const auditCommand = readingCommand('audit', 'show who changed what, the newest first; with --json or --csv also before and after')
  .addOption(new Option('--csv', 'print CSV, as RFC 4180 defines it').conflicts('json'))
  .option('--account <account-id>', 'changes of this account only', accountIdArgument)
  .option('--action <action>', 'changes of this kind only, such as suspendAccount', textArgument(100))
  .option('--actor <name>', 'changes by this e-mail address, token name or user of the operating system only', textArgument(254))
  .option('--subject <subject>', 'changes of this id, name or phone number only', textArgument(254))
  .option('--from <time>', 'at this time or later, or from this day (UTC) on', momentArgument)
  .option('--to <time>', 'before this time, or until the end of this day (UTC)', momentArgument)
  .action(async (options: Options) => {
    const { json = false, csv = false, account, action, actor, subject, from, to } = options
    if (momentsInOrder('from', 'to')(options).length > 0) throw wrongUsage('--to must not be before --from.')
    const given = { action, actor, subject, from, to }
    const filters: AuditFilters = Object.fromEntries(Object.entries(given).filter(([, text]) => text !== undefined))
    if (account !== undefined) filters.accountIds = [account]
    await withDatabase(async (pool) => {
      if (account !== undefined) await requireAccount(pool, account)
      await (csv ? printCsv(pool, filters) : printPages(readPages(pool, filters), { json }, ENTRIES))
    })
  })

async function* readPages(pool: Pool, filters: AuditFilters): AsyncGenerator<AuditEntry[]> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Awaited<ReturnType<typeof listAudit>> = await listAudit(pool, { ...filters, limit: MAX_LIMIT, ...(cursor && { cursor }) })
    if (page.items.length > 0) yield page.items
    cursor = page.nextCursor
  }
}

// Names and ids can be any length, so they come last.
const ENTRIES = {
  columns: ['TIME', 'ACCOUNT', 'ACTION', 'BY', 'ACTOR', 'SUBJECT'],
  widths: [24, 7, 22, 7, 24],
  cells: ({ at, accountId, action, actor, subject }: AuditEntry) => [
    at.toISOString(),
    String(accountId ?? '-'),
    action,
    actor.kind,
    actor.name,
    subject || '-',
  ],
}

/** Prints the log as one statement reads it, however long it is. */
async function printCsv(pool: Pool, filters: AuditFilters): Promise<void> {
  const connections = createExportPool(pool)
  const client = await connections.connect()
  client.on('error', () => {})
  try {
    const { body } = openCopy(client, copyAudit(filters))
    await pipeline(Readable.from(printableRows(body.setEncoding('utf8'))), process.stdout, { end: false }).catch(ignoreClosedPipe)
  } finally {
    // Also ends a statement whose reader has closed the pipe.
    client.release(true)
    await connections.end()
  }
}

/** Each chunk has whole rows. Names are texts of people, so they may have characters that control a terminal. */
async function* printableRows(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const rows of chunks) yield rows.split('\r\n').map(printable).join('\r\n')
}
