import { parseArgs } from 'node:util'
import { type Server, serversOf } from './checkouts.ts'

export const PARTS = [
  'accept',
  'kannel',
  'through',
  'history',
  'low-load',
  'campaign',
  'latency',
  'scaling',
  'memory',
  'growth',
  'attacks',
] as const
export type Part = (typeof PARTS)[number]
/** `checkouts`: as they were named. `servers`: the same with their networks, or this checkout where none was named. */
export type Options = { quick: boolean; only: Set<Part>; checkouts: string[]; servers: Server[]; delayMs: number }

const HELP = `npm run bench -- [--quick] [--only PART,PART] [--server DIRECTORY]... [--simulator DIRECTORY]... [--delay-ms N]

Measures what Herald promises of its speed, each figure beside a limit of the same run, and prints a table of Markdown and the same as JSON.
Progress goes to the error stream. Takes about 65 minutes; the machine should have nothing else to do.

  accept    requests accepted a second, against a bare route of Fastify           4 minutes
  kannel    requests accepted a second, against Kannel, where it is installed     2 minutes, 1 more for each further server
  through   messages a second from acceptance to READ, and what each costs        3 minutes, 2 more for each further server
  history   the same beside 5 million messages of history, and beside none       11 minutes, 9 more for each further server
  low-load  what a message costs at 150 a second                                  3 minutes, 2 more for each further server
  campaign  what a campaign's message costs, against messages sent one by one     4 minutes, 4 more for each further server
  latency   acceptance and hand-over to the carrier, at a fifth of the top rate   5 minutes, 4 more for each further server
  scaling   cost and waits with 1, 2, 4 and 8 processes of the API and delivery  10 minutes, of the last server
  memory    what each process keeps of an hour's worth of messages                5 to 6 minutes
  growth    accepting and claiming beside 5 million messages, and of a million    8 minutes
  attacks   another account's response times and the memory, under attack         8 minutes, 8 more for each further server

  --only PART,PART       only these
  --server DIRECTORY     for all parts but accept, memory and growth: the checkout whose service is measured; this one by default. Repeat it to
                         compare several in turns: the first is the base, and the targets are those of the last
  --simulator DIRECTORY  likewise: the checkout of the simulated network; this one by default. Repeat it to give each
                         server its own
  --delay-ms N           likewise: the network's delay between the steps of a message (20). At 0, DELIVERED and READ come
                         together and cost less
  --quick                everything in short, in some minutes: shows that it works, and checks no target
  --help                 this

Status: 0 all targets are met; 1 one is missed or a part has failed, what there is of the table is printed; 2 wrong options; 130 broken off.
`

/** Ends the process where it was asked for help, or for what there is not. */
export function readOptions(args: string[]): Options {
  try {
    const { values } = parseArgs({
      args,
      options: {
        quick: { type: 'boolean', default: false },
        only: { type: 'string', default: PARTS.join() },
        server: { type: 'string', multiple: true, default: [] },
        simulator: { type: 'string', multiple: true, default: [] },
        'delay-ms': { type: 'string', default: '20' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      process.stdout.write(HELP)
      process.exit(0)
    }
    return {
      quick: values.quick,
      only: new Set(values.only.split(',').map(partOf)),
      checkouts: values.server,
      servers: serversOf(values.server, values.simulator),
      delayMs: millisecondsOf(values['delay-ms']),
    }
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

function partOf(name: string): Part {
  const part = PARTS.find((known) => known === name)
  if (part === undefined) throw new Error(`There is no part "${name}".`)
  return part
}

function millisecondsOf(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new Error(`--delay-ms must be a whole number of milliseconds, at most 99999, not "${text}".`)
  return Number(text)
}
