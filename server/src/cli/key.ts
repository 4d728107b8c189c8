import { Command } from 'commander'
import { type Credentials, createKey, listKeys, revokeKey, rotateKey } from '../accounts/keys.ts'
import { accountIdArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

function inWords({ integrationKey, secret }: Credentials): string {
  return `Integration key: ${integrationKey}\nSecret: ${secret}\nThe secret is shown only this once.`
}

const key = ['<key>', 'the integration key, hk_…', textArgument(100)] as const

const create = reportingCommand('create', 'make an integration key with its secret')
  .argument('<account-id>', 'the account it belongs to', accountIdArgument)
  .action(async (accountId: number, options) => {
    report(options, await withDatabase((pool) => createKey(pool, accountId)), inWords)
  })

const rotate = reportingCommand('rotate', 'give a key a new secret; the old one ends at once')
  .argument(...key)
  .action(async (integrationKey: string, options) => {
    report(options, await withDatabase((pool) => rotateKey(pool, integrationKey)), inWords)
  })

const revoke = reportingCommand('revoke', 'end a key for good')
  .argument(...key)
  .action(async (integrationKey: string, options) => {
    report(options, await withDatabase((pool) => revokeKey(pool, integrationKey)), (info) => `${info.integrationKey} is revoked.`)
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
