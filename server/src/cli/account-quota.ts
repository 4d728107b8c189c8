import { type Command, InvalidArgumentError } from 'commander'
import { QUOTAS, type Quota, type Quotas, readQuotas, setQuotas } from '../accounts/quotas.ts'
import type { Executor } from '../db/pool.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, report, withDatabase } from './command.ts'
import { table } from './terminal.ts'

const UNITS: Record<string, number> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }

type Given = Partial<Record<Quota, number | 'default'>>

function countArgument(value: string): number | 'default' {
  if (value === 'default') return value
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It must be a whole number of at most 15 digits, or "default".')
  return Number(value)
}

function bytesArgument(value: string): number | 'default' {
  if (value === 'default') return value
  const [, digits, unit] = /^(\d{1,15})(|[KMGT]iB)$/.exec(value) ?? []
  const bytes = Number(digits) * (UNITS[unit ?? ''] ?? Number.NaN)
  if (!Number.isSafeInteger(bytes))
    throw new InvalidArgumentError('It must be a number of bytes, such as 50GiB (KiB, MiB, GiB, TiB), or "default".')
  return bytes
}

function inWords(quotas: Quotas): string[] {
  const rows = (Object.keys(QUOTAS) as Quota[]).map((name) => {
    const { quota, isDefault, ...rest } = quotas[name]
    return [name, quota, isDefault ? 'default' : 'set', 'used' in rest ? rest.used : undefined]
  })
  return table(['QUOTA', 'VALUE', 'FROM', 'USED'], rows)
}

export const quotaCommand = changingCommand('quota', 'show the quotas of an account and what it has used, or set quotas', 'setQuotas')
  .argument('<account-id>', 'its id', accountIdArgument)
  .option('--messages-per-day <number>', 'messages outside campaigns in a day (UTC), or "default"', countArgument)
  .option('--templates <number>', 'number of templates, or "default"', countArgument)
  .option('--stored-bytes <bytes>', 'bytes of stored data, such as 50GiB, or "default"', bytesArgument)
  .option('--exports <number>', 'concurrent exports on a node, or "default"', countArgument)
  .action(async (accountId: number, options: Given & { json?: boolean }, command: Command) => {
    const { json: _, ...given } = options
    const quotas = Object.fromEntries(Object.entries(given).map(([quota, value]) => [quota, value === 'default' ? null : value]))
    const before = (db: Executor) => readQuotas(db, accountId)
    const change = (db: Executor) => setQuotas(db, accountId, quotas)
    const isReading = Object.keys(quotas).length === 0
    const found = await withDatabase((pool) => (isReading ? before(pool) : audited(pool, command, { accountId, before, change })))
    report(options, found, inWords)
  })
