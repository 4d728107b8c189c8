import { existsSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { type Config, loadConfig } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import type { Pool } from '../db/pool.ts'
import { watchKeyFile } from '../encryption/key-file.ts'
import { ApiError, ERRORS, type ErrorCode, OperatorError } from '../errors.ts'
import { lengthOf } from '../text-length.ts'
import { parseTimestamp } from '../time.ts'
import { jsonLines, type Lines, print, printError } from './terminal.ts'

/** `isPrivateByEnvironment`: HERALD_WEBHOOK_ALLOW_PRIVATE is true, but not by `.env`, which the service in this directory reads too. */
export type CommandConfig = Config & { isPrivateByEnvironment: boolean }

/** Reads the settings from the environment. A setting that is not set there comes from `.env` in the working directory. */
export function readConfig(): CommandConfig {
  const isPrivateByEnvironment = process.env.HERALD_WEBHOOK_ALLOW_PRIVATE === 'true'
  loadEnvFile()
  return { ...loadConfig(process.env), isPrivateByEnvironment }
}

export function loadEnvFile(): void {
  if (!existsSync('.env')) return
  try {
    process.loadEnvFile('.env')
  } catch {
    throw new OperatorError("The file .env in this directory can't be read.")
  }
}

type DatabaseOptions = {
  role?: 'command' | 'migration' | 'inspection'
  /** Called on the first Ctrl-C, for a command that then ends by itself. Without it, the command ends at once. */
  onSignal?: () => void
}

/** Runs `work` on the configured database. The service may be running or not. */
export async function withDatabase<T>(
  work: (pool: Pool, config: CommandConfig) => Promise<T>,
  { role = 'command', onSignal }: DatabaseOptions = {},
): Promise<T> {
  const config = readConfig()
  const newKey = watchKeyFile(config)
  const opening = openDatabase(config, { role, onProgress: printError })
  // Ctrl-C must leave no embedded database running.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, onSignal ?? (() => void opening.then(({ close }) => close()).finally(() => process.exit(130))))
  const database = await opening
  try {
    const result = await work(database.pool, config)
    const sentence = newKey()
    if (sentence !== undefined) printError(sentence)
    return result
  } finally {
    await database.close()
    // Connections to a frozen database never close; they must not keep the process running.
    setTimeout(() => process.exit(), 1_000).unref()
  }
}

/** What each command may record in the audit log, by the name of the operation of the admin API; nothing if it only reads. */
const ACTIONS = new WeakMap<Command, readonly string[]>()

/** Undefined if the command does not declare whether it changes anything. */
export function actionsOf(command: Command): readonly string[] | undefined {
  return ACTIONS.get(command)
}

/** Declares that a command leaves no entry in the audit log: it reads, or changes nothing that people administer. */
export function declareUnaudited(command: Command): Command {
  ACTIONS.set(command, [])
  return command
}

/** A command that prints a result: as JSON with `--json`, otherwise as text. */
export function reportingCommand(name: string, description: string): Command {
  return new Command(name).description(description).option('--json', 'print the result as JSON')
}

/** A command that changes nothing. */
export function readingCommand(name: string, description: string): Command {
  return declareUnaudited(reportingCommand(name, description))
}

/** A command that changes something. It must change it by `audited`, or give a `recorder` to the function that does. */
export function changingCommand(name: string, description: string, ...actions: [string, ...string[]]): Command {
  const command = reportingCommand(name, description)
  ACTIONS.set(command, actions)
  return command
}

export function report<T>(options: { json?: boolean }, result: T, inWords: (result: T) => Lines): void {
  print(options.json ? jsonLines(result) : inWords(result))
}

type Explain = (reason: string) => OperatorError

/** Throws a refusal of the API as an error for the operator: by the function of its code or, if its reason is a sentence, as it is. */
export function asOperatorError(error: unknown, explain: Partial<Record<ErrorCode, Explain>> = {}): never {
  if (!(error instanceof ApiError)) throw error
  const { path, reason } = error.details?.[0] ?? { path: '', reason: ERRORS[error.code].when }
  throw explain[error.code]?.(reason) ?? new OperatorError(path === '' ? reason : ERRORS[error.code].when)
}

/** Parses the id of an account. */
export function accountIdArgument(value: string): number {
  if (!/^[1-9]\d{0,9}$/.test(value) || Number(value) >= 2 ** 31) {
    throw new InvalidArgumentError('An account id is a whole number, as "herald account list" shows it.')
  }
  return Number(value)
}

// As in the admin API.
const MAX_ACCOUNTS = 1_000

/** Parses a list of account ids, separated by commas. */
export function accountIdsArgument(value: string): number[] {
  const ids = [...new Set(value.split(',').map((id) => accountIdArgument(id.trim())))]
  if (ids.length > MAX_ACCOUNTS) throw new InvalidArgumentError(`At most ${MAX_ACCOUNTS} accounts are possible.`)
  return ids
}

/** Parses a time with its zone. */
export function timeArgument(value: string): Date {
  const time = parseTimestamp(value)
  if (time === undefined) throw new InvalidArgumentError('It must be a time with its zone, such as 2026-01-31T08:00:00Z.')
  return time
}

/** Parses an id that is a whole number, such as that of a template. */
export function idArgument(value: string): number {
  if (!/^[1-9]\d{0,14}$/.test(value)) throw new InvalidArgumentError('An id is a whole number above 0.')
  return Number(value)
}

/** Returns a parser for text that can be stored and is not too long. */
export function textArgument(maxLength: number, { isMultiline = false } = {}): (value: string) => string {
  return (value) => {
    const length = lengthOf(value)
    const checked = isMultiline ? value.replace(/[\n\r\t]/g, '') : value
    if (length < 1 || length > maxLength || /[\p{Cc}\p{Cs}\uFFFD]/u.test(checked)) {
      const allowed = isMultiline ? ' but line breaks and tabs' : ''
      throw new InvalidArgumentError(`It must have 1 to ${maxLength} characters, in UTF-8, and no control characters${allowed}.`)
    }
    return value
  }
}

/** Returns a parser for a list of known words, separated by commas, with at least `atLeast` of them. */
export function listArgument<const T extends string>(known: readonly T[], atLeast: number): (value: string) => T[] {
  return (value) => {
    const words = [...new Set(value.split(',').map((word) => word.trim()))].filter(Boolean)
    const unknown = words.find((word) => !known.includes(word as T))
    if (unknown !== undefined || words.length < atLeast)
      throw new InvalidArgumentError(`Allowed values are ${new Intl.ListFormat('en').format(known)}.`)
    return words as T[]
  }
}
