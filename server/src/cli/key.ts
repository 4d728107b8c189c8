import { Command } from 'commander'
import { type Credentials, countLiveKeys, createKey, findKey, listKeys, type OwnedKey, revokeKey, rotateKey } from '../accounts/keys.ts'
import { accountIdArgument, report, reportingCommand, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { quantity, table } from './terminal.ts'

function inWords({ integrationKey, secret }: Credentials): string[] {
  return [`Integration key: ${integrationKey}`, `Secret: ${secret}`, 'The secret is shown only this once.']
}

function described({ integrationKey, accountId, accountName, createdAt }: OwnedKey): string {
  return `${integrationKey} of account ${accountId} (${accountName}), created at ${createdAt.toISOString()}`
}

const key = ['<key>', 'the integration key, hk_…', textArgument(100)] as const

const create = reportingCommand('create', 'create an integration key with its secret')
  .argument('<account-id>', 'the account it belongs to', accountIdArgument)
  .action(async (accountId: number, options) => {
    report(options, await withDatabase((pool) => createKey(pool, accountId)), inWords)
  })

const rotate = confirmedCommand('rotate', 'replace the secret of a key; the old secret stops working at once')
  .argument(...key)
  .action(async (integrationKey: string, options) => {
    const credentials = await withDatabase(async (pool) => {
      const found = await findKey(pool, integrationKey)
      // A revoked key is refused without asking.
      if (found.revokedAt === null)
        await confirm(options, `replace the secret of 1 key, ${described(found)}; the old secret stops working at once`)
      return await rotateKey(pool, integrationKey)
    })
    report(options, credentials, inWords)
  })

const revoke = confirmedCommand('revoke', 'revoke a key for good')
  .argument(...key)
  .action(async (integrationKey: string, options) => {
    const revoked = await withDatabase(async (pool) => {
      const found = await findKey(pool, integrationKey)
      // Revoking a revoked key changes nothing.
      if (found.revokedAt === null) {
        const others = quantity((await countLiveKeys(pool, found.accountId)) - 1, 'other live key')
        await confirm(options, `revoke 1 key for good, ${described(found)}; the account keeps ${others}`)
      }
      return await revokeKey(pool, integrationKey)
    })
    report(options, revoked, (info) => `${info.integrationKey} is revoked.`)
  })

const list = reportingCommand('list', "show an account's keys, without their secrets")
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const keys = await withDatabase((pool) => listKeys(pool, accountId))
    const rows = keys.map((info) => [info.integrationKey, info.createdAt, info.rotatedAt, info.revokedAt])
    report(options, keys, () => table(['KEY', 'CREATED', 'ROTATED', 'REVOKED'], rows))
  })

export const keyCommand = new Command('key')
  .description('integration keys and their secrets')
  .addCommand(create)
  .addCommand(rotate)
  .addCommand(revoke)
  .addCommand(list)
