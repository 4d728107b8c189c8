import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { OperatorError } from '../errors.ts'
import { changingCommand } from './command.ts'
import { asText } from './terminal.ts'

/** Creates a command that sends, cancels, erases, revokes or replaces something. Its action must call `confirm` first, with the effect. */
export function confirmedCommand(name: string, description: string, ...actions: [string, ...string[]]): Command {
  return changingCommand(name, description, ...actions).option('--yes', 'do not ask for confirmation; required in scripts')
}

type Input = NodeJS.ReadableStream & { isTTY?: boolean }
type Output = NodeJS.WritableStream & { isTTY?: boolean }
/** `input`: undefined if the command itself reads standard input. */
type Dialogue = { input: Input | undefined; output: Output }

export const STANDARD: Dialogue = { input: process.stdin, output: process.stderr }

/**
 * Returns if the operator agrees, and throws otherwise. `effect` completes the sentence "This will …", with numbers. The numbers may change before
 * the operator agrees: no lock is held meanwhile. Everything goes to standard error, so that standard output has only the result.
 */
export async function confirm({ yes }: { yes?: boolean }, effect: string, { input, output }: Dialogue = STANDARD): Promise<void> {
  const isInteractive = input?.isTTY === true && output.isTTY === true
  if (!yes && !isInteractive) throw new OperatorError(`This would ${effect}. Nothing has changed; repeat the command with --yes to do it.`)
  output.write(asText(`This will ${effect}.`))
  if (yes || input === undefined) return
  output.write('Continue? [y/N] ')
  if (!/^y(es)?$/i.test((await readLine(input)).trim())) throw new OperatorError('Nothing has changed.')
}

/** Returns an empty line if the input ends. The terminal keeps its own line editing, so Ctrl-C is a signal and ends the command. */
async function readLine(input: Input): Promise<string> {
  const lines = createInterface({ input, terminal: false })
  try {
    for await (const line of lines) return line
    return ''
  } finally {
    lines.close()
  }
}
