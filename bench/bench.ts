import { parseArgs } from 'node:util'
import { measureAccept } from './accept.ts'
import { measureCampaign } from './campaign.ts'
import { measureGrowth } from './growth.ts'
import { measureLatency } from './latency.ts'
import { describeMachine, isKept, type Line, tableOf } from './lines.ts'
import { measureThrough } from './through.ts'

// What Herald promises of its speed, measured: `npm run bench`. Each figure stands beside a limit of the same run on the same machine, so that
// their ratio means the same elsewhere. `--quick` shows in two minutes that it works and judges nothing; `--only` names parts.

const PARTS = ['accept', 'through', 'campaign', 'growth', 'latency'] as const
type Part = (typeof PARTS)[number]

const { quick, only } = readArguments()

function readArguments(): { quick: boolean; only: Set<Part> } {
  try {
    const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } })
    const only = values.only?.split(',') ?? [...PARTS]
    const unknown = only.filter((name) => !PARTS.some((part) => part === name))
    if (unknown.length > 0) throw new Error(`--only takes some of ${PARTS.join(',')}; there is no part ${unknown.join(', ')}.`)
    return { quick: values.quick, only: new Set(only as Part[]) }
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\nnpm run bench -- [--quick] [--only ${PARTS.join(',')}]\n`)
    process.exit(2)
  }
}

const lines: Line[] = []
try {
  await measureAll()
} finally {
  // What was measured is shown, whatever became of the rest.
  const settings = { quick, parts: [...only] }
  process.stdout.write(`${tableOf(lines)}\n\n${JSON.stringify({ machine: describeMachine(), settings, lines })}\n`)
}
if (quick) process.stdout.write('\nA quick run: far too short to judge by.\n')
const hasMissed = lines.some((line) => isKept(line) === false)
process.exit(!quick && hasMissed ? 1 : 0)

async function measureAll(): Promise<void> {
  // Where a part that gives another its rate is not asked for, it is measured in short.
  let accept = 0
  let through = 0
  if (only.has('accept') || only.has('latency')) {
    const measured = await measureAccept({ quick: quick || !only.has('accept') })
    accept = measured.perSecond
    if (only.has('accept')) lines.push(...measured.lines)
  }
  if (only.has('through') || only.has('latency') || only.has('campaign')) {
    const measured = await measureThrough({ quick: quick || !only.has('through') })
    through = measured.perSecond
    if (only.has('through')) lines.push(...measured.lines)
  }
  if (only.has('campaign')) lines.push(...(await measureCampaign({ quick, through })))
  if (only.has('latency')) lines.push(...(await measureLatency({ accept, through, quick })))
  if (only.has('growth')) lines.push(...(await measureGrowth({ quick })))
}
