import { Command } from 'commander'
import { type Rotation, type RotationProgress, rotateKeys } from '../db/rotate-keys.ts'
import { openKeyring, readKeyStatus } from '../db/secrets.ts'
import { keyFilePath, newKeyLine, readKeys } from '../encryption/key-file.ts'
import { recorder } from './audited.ts'
import { changingCommand, declareUnaudited, readingCommand, report, withDatabase } from './command.ts'
import { print, quantity, statusLine, table } from './terminal.ts'

const createKey = declareUnaudited(new Command('create-key'))
  .description('print a new key, as a line of a key file')
  .action(() => {
    print(newKeyLine())
  })

const status = readingCommand('status', 'show how many secrets in the database are encrypted with which key').action(async (options) => {
  const found = await withDatabase(async (pool, config) => {
    const keyFile = keyFilePath(config)
    const inFile = readKeys(keyFile).map(({ id }) => id)
    return { keyFile, keys: await readKeyStatus(pool, inFile) }
  })
  const rows = found.keys.map(({ keyId, use, values }) => [keyId, use, values])
  report(options, found, () => [`Key file: ${found.keyFile}`, ...table(['KEY', 'USE', 'VALUES'], rows)])
})

const rotate = changingCommand(
  'rotate',
  'encrypt all secrets in the database with the first key of the key file',
  'rotateEncryption',
).action(async (options, command: Command) => {
  const progress = statusLine()
  const rotated = await withDatabase(async (pool, config) => {
    const keyring = await openKeyring(pool, config)
    const onProgress = (made: RotationProgress) => progress.show(progressLine(made))
    const rotation = await rotateKeys(pool, keyring, { onProgress, record: recorder(command, {}) }).finally(progress.clear)
    return { ...rotation, keyFile: keyring.keyFile }
  })
  report(options, rotated, rotatedInWords)
})

function rotatedInWords({ keyId, reencrypted, unusedKeyIds, keyFile }: Rotation & { keyFile: string }): string[] {
  const lines = [`${quantity(reencrypted, 'value was', 'values were')} re-encrypted; all are encrypted with the key ${keyId}.`]
  if (unusedKeyIds.length > 0)
    lines.push(`No longer used: ${unusedKeyIds.join(', ')}. Remove them from ${keyFile} on every node, but keep them for older backups.`)
  return lines
}

function progressLine({ reencrypted, remaining }: RotationProgress): string {
  return `${quantity(reencrypted, 'value')} re-encrypted, ${remaining} remaining`
}

export const encryptionCommand = new Command('encryption')
  .description('keys that encrypt the secrets in the database')
  .addCommand(createKey)
  .addCommand(status)
  .addCommand(rotate)
