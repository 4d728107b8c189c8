import { parseArgs } from 'node:util'

export const PARTS = ['accept', 'through', 'campaign', 'latency', 'memory', 'growth', 'attacks'] as const
export type Part = (typeof PARTS)[number]
export type Options = { quick: boolean; only: Set<Part>; servers: string[] }

const HELP = `npm run bench -- [--quick] [--only PART,PART] [--server DIRECTORY]

Measures what Herald promises of its speed, each figure beside a limit of the same run, and prints a table of Markdown and the same as JSON.
Progress goes to the error stream. Takes some 33 minutes; the machine should have nothing else to do.

  accept    requests accepted a second, against a bare route of Fastify          4 minutes
  through   messages a second from acceptance to READ, and the CPU time of each  2 minutes
  campaign  100,000 recipients, from the start to all READ                       2 to 3 minutes
  latency   acceptance and hand-over to the carrier, at a fifth of the top rate  2 to 3 minutes
  memory    what each process keeps of an hour's worth of messages               5 to 6 minutes
  growth    accepting and claiming beside 5 million messages, and of a million   8 minutes
  attacks   another account's response times and the memory, under attack        8 minutes

  --only PART,PART    only these
  --server DIRECTORY  for attacks: the checkout whose service is measured; repeat it to compare several
  --quick             everything in short, in some minutes: shows that it works, and checks no target
  --help              this

Status: 0 all marks are kept; 1 one is missed or a part has failed, what there is of the table is printed; 2 wrong options; 130 broken off.
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
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      process.stdout.write(HELP)
      process.exit(0)
    }
    return { quick: values.quick, only: new Set(values.only.split(',').map(partOf)), servers: values.server }
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
