import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Part } from './part.ts'
import { FEATURE_PARTS, PARTS, STANDARD_PARTS } from './parts.ts'
import { heraldOf, type Server, serversOf, simulatorOf } from './setup/checkouts.ts'

export type Options = { quick: boolean; parts: Part[]; servers: Server[]; delayMs: number }

const HELP = `npm run bench -- [PART]... [--quick] [--server DIRECTORY]... [--simulator DIRECTORY]... [--delay-ms N]

Measures the speed of Herald, each figure beside a limit of the same run, and prints a table of Markdown and the same as JSON. Progress goes to
the error stream. Without a part, it runs the standard parts in about 65 minutes. The machine should have nothing else to do.

  --list                 shows the parts
  --quick                a short run of each part: shows that it works, and checks no target
  --server DIRECTORY     the checkout whose service is measured; this one by default. Repeat it to compare several in turns: the first is the
                         base of the ratios, and the targets are checked for the last
  --simulator DIRECTORY  the checkout of the simulated network; this one by default. Repeat it to give each server its own
  --delay-ms N           the network's delay between the steps of a message (20). At 0, DELIVERED and READ come together and cost less
  --help                 shows this

Exit status: 0 all targets are met; 1 a target is missed or a part failed, and what was measured is printed; 2 wrong options; 130 interrupted.
`

function listOf(parts: Part[]): string {
  const width = Math.max(...PARTS.map(({ name }) => name.length))
  const lines = parts.map(({ name, measures, minutes, minutesEach }) => {
    const more =
      minutesEach === undefined
        ? ', this checkout alone'
        : minutesEach === 0
          ? ', the last --server'
          : `, +${minutesEach} for each further --server`
    return `  ${name.padEnd(width)}  ${measures} (${minutes} min${more})\n`
  })
  return lines.join('')
}

function list(): string {
  return `Standard parts:\n${listOf(STANDARD_PARTS)}\nParts for one feature each:\n${listOf(FEATURE_PARTS)}`
}

/** Exits after --help and --list, and after wrong options. */
export function readOptions(args: string[]): Options {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        server: { type: 'string', multiple: true, default: [] },
        simulator: { type: 'string', multiple: true, default: [] },
        'delay-ms': { type: 'string', default: '20' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help || values.list) {
      process.stdout.write(values.help ? HELP : list())
      process.exit(0)
    }
    const servers = serversOf(values.server, values.simulator)
    for (const server of servers) requireCheckout(server)
    return { quick: values.quick, parts: partsOf(positionals), servers, delayMs: millisecondsOf(values['delay-ms']) }
  } catch (error) {
    // Node adds how to write a positional that begins with a dash, which no part does.
    const [message] = (error as Error).message.split(' To specify a positional')
    process.stderr.write(`${message}\n\nnpm run bench -- --help shows the options, and --list the parts.\n`)
    process.exit(2)
  }
}

/** In the order of the table, each once. */
function partsOf(names: string[]): Part[] {
  const unknown = names.find((name) => !PARTS.some((part) => part.name === name))
  if (unknown !== undefined) {
    throw new Error(`There is no part "${unknown}". The parts are ${PARTS.map(({ name }) => name).join(', ')}.`)
  }
  return names.length === 0 ? STANDARD_PARTS : PARTS.filter(({ name }) => names.includes(name))
}

function requireCheckout({ checkout, simulator }: Server): void {
  for (const program of [heraldOf(checkout), simulatorOf(simulator)]) {
    if (!existsSync(program))
      throw new Error(`There is no ${program}: --server and --simulator name the directory of a checkout of Herald.`)
  }
}

function millisecondsOf(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new Error(`--delay-ms must be a whole number of milliseconds, at most 99999, not "${text}".`)
  return Number(text)
}
