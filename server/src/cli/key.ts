import { Command } from 'commander'
import {
  type Credentials,
  countLiveKeys,
  createKey,
  findKey,
  listKeys,
  type OwnedKey,
  type Restrictions,
  revokeKey,
  rotateKey,
  updateKey,
} from '../accounts/keys.ts'
import type { Pool } from '../db/pool.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { restrictionsInWords, restrictionsOf, withRestrictions } from './key-options.ts'
import { quantity, table } from './terminal.ts'

function inWords({ integrationKey, secret, ...restrictions }: Credentials & Partial<Restrictions>): string[] {
  const restricted = restrictionsInWords(restrictions).join('; ')
  return [
    `Integration key: ${integrationKey}`,
    `Secret: ${secret}`,
    ...(restricted === '' ? [] : [`Restricted to ${restricted}`]),
    'The secret is shown only this once.',
  ]
}

function described({ integrationKey, accountId, accountName, createdAt }: OwnedKey): string {
  return `${integrationKey} of account ${accountId} (${accountName}), created at ${createdAt.toISOString()}`
}

const key = ['<key>', 'the integration key, hk_…', textArgument(100)] as const

const create = withRestrictions(changingCommand('create', 'create an integration key with its secret', 'createKey'), { none: false })
  .argument('<account-id>', 'the account it belongs to', accountIdArgument)
  .action(async (accountId: number, options, command: Command) => {
    const created = await withDatabase((pool) =>
      audited(pool, command, {
        accountId,
        change: (db) => createKey(db, accountId, restrictionsOf(options)),
        entry: ({ integrationKey }) => ({ subject: integrationKey }),
      }),
    )
    report(options, created, inWords)
  })

/** Changes a key that exists. */
async function changed<T>(
  pool: Pool,
  command: Command,
  { accountId, integrationKey }: OwnedKey,
  change: (db: Pool) => Promise<T>,
): Promise<T> {
  const before = async (db: Pool) => {
    const { accountId: _, accountName, ...info } = await findKey(db, integrationKey)
    return info
  }
  return await audited(pool, command, { accountId, subject: integrationKey, before, change })
}

const update = withRestrictions(confirmedCommand('update', 'change what a key is restricted to; its secret stays', 'changeKey'), {
  none: true,
})
  .argument(...key)
  .action(async (integrationKey: string, options, command: Command) => {
    const change = restrictionsOf(options)
    if (Object.keys(change).length === 0) command.error('error: --scope, --expires or --address is required')
    const updated = await withDatabase(async (pool) => {
      const found = await findKey(pool, integrationKey)
      const effect = `restrict 1 key, ${described(found)}, to ${restrictionsInWords(change).join('; ')}; other requests with it are refused at once`
      // A revoked key is refused without asking.
      if (found.revokedAt === null) await confirm(options, effect)
      return await changed(pool, command, found, (db) => updateKey(db, integrationKey, change))
    })
    report(options, updated, (info) => `${info.integrationKey} has ${restrictionsInWords(info).join('; ')}.`)
  })

const rotate = confirmedCommand('rotate', 'replace the secret of a key; the old secret stops working at once', 'rotateKey')
  .argument(...key)
  .action(async (integrationKey: string, options, command: Command) => {
    const credentials = await withDatabase(async (pool) => {
      const found = await findKey(pool, integrationKey)
      // A revoked key is refused without asking.
      if (found.revokedAt === null)
        await confirm(options, `replace the secret of 1 key, ${described(found)}; the old secret stops working at once`)
      return await changed(pool, command, found, (db) => rotateKey(db, integrationKey))
    })
    report(options, credentials, inWords)
  })

const revoke = confirmedCommand('revoke', 'revoke a key for good', 'revokeKey')
  .argument(...key)
  .action(async (integrationKey: string, options, command: Command) => {
    const revoked = await withDatabase(async (pool) => {
      const found = await findKey(pool, integrationKey)
      // Revoking a revoked key changes nothing.
      if (found.revokedAt === null) {
        const others = quantity((await countLiveKeys(pool, found.accountId)) - 1, 'other live key')
        await confirm(options, `revoke 1 key for good, ${described(found)}; the account keeps ${others}`)
      }
      return await changed(pool, command, found, (db) => revokeKey(db, integrationKey))
    })
    report(options, revoked, (info) => `${info.integrationKey} is revoked.`)
  })

const list = readingCommand('list', "show an account's keys, without their secrets")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const keys = await withDatabase((pool) => listKeys(pool, accountId))
    const rows = keys.map(({ integrationKey, scopes, expiresAt, addresses, lastUsedAt, createdAt, rotatedAt, revokedAt }) => {
      const restrictions = [scopes?.join(',') ?? 'all', expiresAt ?? 'never', addresses?.join(',') ?? 'any']
      return [integrationKey, ...restrictions, lastUsedAt ?? 'never', createdAt, rotatedAt, revokedAt]
    })
    report(options, keys, () => table(['KEY', 'SCOPES', 'EXPIRES', 'ADDRESSES', 'LAST USED', 'CREATED', 'ROTATED', 'REVOKED'], rows))
  })

export const keyCommand = new Command('key')
  .description('integration keys and their secrets')
  .addCommand(create)
  .addCommand(update)
  .addCommand(rotate)
  .addCommand(revoke)
  .addCommand(list)
