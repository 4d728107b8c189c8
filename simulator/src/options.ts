import { parseArgs } from 'node:util'

/** An operator's mistake: a message for stderr, without a stack. */
export class StartError extends Error {}

export type Options = {
  dataDir: string
  host: string
  /** Undefined: the last port, or a free one. 0: a free one. */
  port: number | undefined
  smppPort: number | undefined
  delayMs: number
  stopWithStdin: boolean
}

export const HELP = `herald-simulator: stands in for Google's RBM API and for an SMPP 3.4 SMSC.

  --data-dir DIR      where it keeps its state and writes carriers.json (required)
  --host HOST         the address it listens on (127.0.0.1)
  --port N            the port of the RBM API (default: the port of the last start, or a free one; 0: a free one)
  --smpp-port N       the port of the SMSC (same default)
  --delay-ms N        the time between the steps of a message (500; 0: no delay)
  --stop-with-stdin   exit when standard input ends
  --help              print this help
`

/** Returns undefined for --help. */
export function parseOptions(args: string[]): Options | undefined {
  const values = readArguments(args)
  if (values.help) return undefined
  if (!values['data-dir']) throw new StartError('--data-dir is required: the directory for the simulator’s state.')
  return {
    dataDir: values['data-dir'],
    host: values.host || '127.0.0.1',
    port: wholeNumber('--port', values.port, 65_535),
    smppPort: wholeNumber('--smpp-port', values['smpp-port'], 65_535),
    delayMs: wholeNumber('--delay-ms', values['delay-ms'], 86_400_000) ?? 500,
    stopWithStdin: values['stop-with-stdin'] ?? false,
  }
}

function readArguments(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        'data-dir': { type: 'string' },
        host: { type: 'string' },
        port: { type: 'string' },
        'smpp-port': { type: 'string' },
        'delay-ms': { type: 'string' },
        'stop-with-stdin': { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    throw new StartError(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))
  }
}

function wholeNumber(name: string, value: string | undefined, max: number): number | undefined {
  if (value === undefined) return undefined
  if (!/^\d{1,9}$/.test(value) || Number(value) > max) throw new StartError(`${name} must be a whole number from 0 to ${max}.`)
  return Number(value)
}
