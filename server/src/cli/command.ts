import { existsSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { type Config, loadConfig } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import type { Pool } from '../db/pool.ts'
import { watchKeyFile } from '../encryption/key-file.ts'
import { OperatorError } from '../errors.ts'
import { lengthOf } from '../text-length.ts'
import { jsonLines, type Lines, print, printError } from './terminal.ts'

/** The settings of every command: the environment, and `.env` in the working directory for what the environment leaves open. */
export function readConfig(): Config {
  if (existsSync('.env')) {
    try {
      process.loadEnvFile('.env')
    } catch {
      throw new OperatorError('The file .env in this directory can not be read.')
    }
  }
  return loadConfig(process.env)
}

/** Runs `work` on the configured database, whether the service runs or not. */
export async function withDatabase<T>(
  work: (pool: Pool, config: Config) => Promise<T>,
  role: 'command' | 'migration' = 'command',
): Promise<T> {
  const config = readConfig()
  const newKey = watchKeyFile(config)
  const opening = openDatabase(config, { role, onProgress: printError })
  // Ctrl-C leaves no embedded database running.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => void opening.then(({ close }) => close()).finally(() => process.exit(130)))
  const database = await opening
  try {
    const result = await work(database.pool, config)
    const sentence = newKey()
    if (sentence !== undefined) printError(sentence)
    return result
  } finally {
    await database.close()
    // Connections to a database that is frozen never close; they must not hold up the end.
    setTimeout(() => process.exit(), 1_000).unref()
  }
}

/** A command that prints a result: as JSON with `--json`, else in words. */
export function reportingCommand(name: string, description: string): Command {
  return new Command(name).description(description).option('--json', 'print the result as JSON')
}

export function report<T>(options: { json?: boolean }, result: T, inWords: (result: T) => Lines): void {
  print(options.json ? jsonLines(result) : inWords(result))
}

/** An account's id as an argument. */
export function accountIdArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) >= 2 ** 31) {
    throw new InvalidArgumentError('An account id is a whole number, as "herald account list" shows it.')
  }
  return Number(value)
}

/** A text as an argument: something that can be stored and is not too long. */
export function textArgument(maxLength: number): (value: string) => string {
  return (value) => {
    const length = lengthOf(value)
    if (length < 1 || length > maxLength || /[\p{Cc}\p{Cs}\uFFFD]/u.test(value)) {
      throw new InvalidArgumentError(`It must have 1 to ${maxLength} characters, in UTF-8, and no control characters.`)
    }
    return value
  }
}

/** Several of a few known words, separated by commas, and at least so many of them. */
export function listArgument<const T extends string>(known: readonly T[], atLeast: number): (value: string) => T[] {
  return (value) => {
    const words = [...new Set(value.split(',').map((word) => word.trim()))].filter(Boolean)
    const unknown = words.find((word) => !known.includes(word as T))
    if (unknown !== undefined || words.length < atLeast)
      throw new InvalidArgumentError(`Known are ${new Intl.ListFormat('en').format(known)}.`)
    return words as T[]
  }
}
