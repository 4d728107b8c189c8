import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { collectAndLook, type Memory } from '../../bench/measure/inspector.ts'
import { readLogErrors } from '../chaos/history/processes.ts'
import { breakOffInOrder, type Cleanup, inDirectory } from '../chaos/support/cleanup.ts'
import { wholeNumber } from '../chaos/support/options.ts'
import { say, seconds } from '../chaos/support/progress.ts'
import { createCheck } from './check.ts'
import { type Operation, operationsOf } from './document.ts'
import { createGenerator } from './generate.ts'
import { type Growth, growthOf, MAX_GROWTH_BYTES, MIN_REQUESTS, watchMemory } from './memory.ts'
import { describeFindings, tableOf } from './report.ts'
import { run, type Tally } from './run.ts'
import { type FuzzedService, startService } from './service.ts'
import { createSender } from './wire.ts'
import { learn } from './world.ts'

const HELP = `npm run fuzz -- [options]: sends generated requests to every route of a running service, /v1 and /admin/v1, with the credentials of
every role, with wrong ones and without any. It checks every response: its status and body are documented, nothing internal is in it, no other
account's data and for viewers no phone number, it comes in time, and the memory stays flat.

  --seed N        repeats the requests of a run; by default a new seed, which is printed
  --requests N    how many requests to send, by default 100000
  --only ID,ID    only these operations, by operationId; of the admin API with admin/ before it, such as admin/createKey
  --number N      only this request of the seed
  --help          prints this

The status is 0 where everything passed, 1 otherwise (then the logs are kept), and 2 where an option is wrong.
`

const LANES = 16
const DEADLINE_MS = 10_000
const ERASURE_DEADLINE_MS = 60_000
/** The heap after a collection is exact, so its bound is lower than that of the resident memory. */
const MAX_HELD_GROWTH_BYTES = 32 * 2 ** 20
const SAY_EVERY_MS = 10_000
const MIB = 2 ** 20

type Options = { seed: number; requests: number; only: string[]; number: number | undefined }
type Outcome = { tally: Tally; problems: string[] }

function readOptions(): Options {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ options: { seed: text, requests: text, only: text, number: text, help: { type: 'boolean' } } })
    if (values.help) {
      process.stdout.write(HELP)
      process.exit(0)
    }
    return {
      seed: wholeNumber('--seed', values.seed, 0) ?? randomInt(2 ** 31),
      requests: wholeNumber('--requests', values.requests, 1) ?? 100_000,
      only: values.only?.split(',') ?? [],
      number: wholeNumber('--number', values.number, 0),
    }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

/** The numbers of the requests to send. The operation of a number does not depend on `--only`, so that a number means the same request. */
function numbersOf({ requests, only, number }: Options, operations: Operation[]): number[] {
  if (number !== undefined) return [number]
  for (const id of only) if (!operations.some((operation) => operation.id === id)) throw new Error(`There is no operation "${id}".`)
  const isWanted = (n: number) => only.length === 0 || only.includes((operations[n % operations.length] as Operation).id)
  return Iterator.from(countUp()).filter(isWanted).take(requests).toArray()
}

function* countUp(): Generator<number> {
  for (let n = 0; ; n++) yield n
}

async function fuzz(options: Options, dir: string, cleanup: Cleanup): Promise<Outcome> {
  const service = await startService(dir, cleanup)
  const { port, program, documents, world, secrets } = service
  const operations = operationsOf(...documents)
  const numbers = numbersOf(options, operations)
  const sender = createSender(port, DEADLINE_MS, ERASURE_DEADLINE_MS)
  cleanup.push(sender.close)
  say(`seed ${options.seed}: ${numbers.length} requests over ${operations.length} operations`)
  let done = 0
  let saidAt = performance.now()
  let held: Memory | undefined
  const warm = Math.ceil(numbers.length * 0.3)
  const endWatch = watchMemory(program.pid() as number, () => done / numbers.length)
  const tally = await run({
    // A collection stops the service for seconds on a busy machine, and requests would time out.
    parts: [numbers.slice(0, warm), numbers.slice(warm)],
    onPause: async () => {
      held = await collectAndLook(service.inspector)
    },
    generate: createGenerator(options.seed, operations, world),
    sender,
    check: createCheck(documents, secrets),
    lanes: LANES,
    onResponse: (request, response, sent) => {
      done = sent
      learn(world, request, response)
      if (performance.now() - saidAt < SAY_EVERY_MS) return
      saidAt = performance.now()
      say(`${sent} of ${numbers.length} requests`)
    },
  })
  const growth = growthOf(endWatch(), numbers.length)
  const problems = [...growthProblems(growth), ...(await heldProblems(service, held)), ...serviceProblems(service)]
  return { tally, problems }
}

function growthProblems(growth: Growth | undefined): string[] {
  if (growth === undefined) {
    say(`resident memory is compared from ${MIN_REQUESTS} requests on`)
    return []
  }
  const text = `resident memory from 20 % to 40 %: ${mib(growth.warm)}, in the last 20 %: ${mib(growth.last)}; at most ${mib(MAX_GROWTH_BYTES)} more`
  say(text)
  return growth.isFlat ? [] : [text]
}

async function heldProblems({ inspector }: FuzzedService, warm: Memory | undefined): Promise<string[]> {
  if (warm === undefined) return []
  const end = await collectAndLook(inspector)
  const text = `heap and buffers after a collection at 30 %: ${mib(warm.held)}, at the end: ${mib(end.held)}; at most ${mib(MAX_HELD_GROWTH_BYTES)} more`
  say(`${text}; resident then ${mib(warm.resident)} and ${mib(end.resident)}`)
  return end.held - warm.held <= MAX_HELD_GROWTH_BYTES ? [] : [text]
}

function serviceProblems({ program }: FuzzedService): string[] {
  const faults = readLogErrors('herald', readFileSync(program.outFile, 'utf8').split('\n'))
  const kinds = Object.entries(Object.groupBy(faults, ({ text, detail = '' }) => `${text}: ${detail}`))
  return [...program.endedByItself, ...kinds.map(([text, list = []]) => `logged as an error ${list.length} times: ${text}`)]
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(0)} MiB`
}

const options = readOptions()
breakOffInOrder()
const isClean = ({ tally, problems }: Outcome) => tally.findings.length === 0 && problems.length === 0
const outcome = await inDirectory('herald-fuzz-', (dir, cleanup) => fuzz(options, dir, cleanup), isClean)
const { tally, problems } = outcome
const failed = tally.findings.length + problems.length
const parts = [
  ...(tally.findings.length > 0 ? [describeFindings(tally.findings, options.seed)] : []),
  ...problems.map((problem) => `FAILED ${problem}`),
  tableOf(tally),
  `seed ${options.seed}, ${tally.sent} requests in ${seconds(tally.tookMs)}, the slowest took ${Math.round(tally.slowestMs)} ms`,
  `${tally.sent - tally.findings.length} passed, ${failed} failed`,
]
process.stdout.write(`${parts.join('\n\n')}\n`)
process.exit(failed === 0 ? 0 : 1)
