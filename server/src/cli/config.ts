import { readSettings } from '../config.ts'
import { keyFilePath } from '../encryption/key-file.ts'
import { loadEnvFile, readingCommand, report } from './command.ts'
import { table } from './terminal.ts'

type Source = 'environment' | '.env' | 'default' | 'not a setting'

export const configCommand = readingCommand('config', 'show every setting, its value, and where the value comes from').action((options) => {
  const inEnvironment = new Set(Object.keys(process.env))
  loadEnvFile()
  const { config, settings } = readSettings(process.env)
  /** Defaults that depend on other settings. */
  const paths: Record<string, string> = { HERALD_DATA_DIR: config.dataDir, HERALD_ENCRYPTION_KEY_FILE: keyFilePath(config) }
  const known = settings.map(({ name, value, isSet }) => {
    const given = inEnvironment.has(name) ? 'environment' : '.env'
    return { name, value: paths[name] ?? value, source: (isSet ? given : 'default') as Source }
  })
  // Their values may be secrets: a misspelt HERALD_DATABASE_URL is among them.
  const unknown = config.unknownVariables.map((name) => ({ name, value: null, source: 'not a setting' as Source }))
  const rows = [...known, ...unknown].map(({ name, value, source }) => [name, value, source])
  report(options, [...known, ...unknown], () => table(['SETTING', 'VALUE', 'FROM'], rows))
})
