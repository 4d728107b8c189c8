import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { breakOffInOrder, type Cleanup, inDirectory } from '../cleanup.ts'
import { wholeNumber } from '../options.ts'
import { seconds as inSeconds, say } from '../progress.ts'
import { runStorm, type StormOptions, type Verdict } from './storm.ts'
import { describe, isClean } from './verdict.ts'

const HELP = `npm run test:crash -- [options]: kills and freezes every part of a running service at random, under load, and then holds
what callers were told against what the network, the database and the endpoints have.

  --seed N      repeats the upsets and the load of a run (else another one each time, which is said)
  --seconds N   how long it goes on, 120; settling and the verdict come on top
  --rate N      messages a second, 40; campaigns come on top
  --seeds N     so many runs, with different seeds, and a line for each at the end
  --help        prints this

The status is 0 where every line of the verdict is "ok", 1 otherwise (then the logs are kept), and 2 where an option is wrong.
`

type Run = Omit<StormOptions, 'dir'> & { verdict: Verdict; tookMs: number }

function readOptions() {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ options: { seed: text, seconds: text, rate: text, seeds: text, help: { type: 'boolean' } } })
    return {
      help: values.help,
      seed: wholeNumber('--seed', values.seed, 0),
      seconds: wholeNumber('--seconds', values.seconds, 1) ?? 120,
      rate: wholeNumber('--rate', values.rate, 1) ?? 40,
      seeds: wholeNumber('--seeds', values.seeds, 1) ?? 1,
    }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

async function run(options: Omit<StormOptions, 'dir'>): Promise<Run> {
  const begunAt = performance.now()
  const storm = (dir: string, cleanup: Cleanup) => runStorm({ ...options, dir }, cleanup)
  const verdict = await inDirectory('herald-storm-', storm, ({ lines }) => isClean(lines))
  const tookMs = performance.now() - begunAt
  say(
    `seed ${options.seed}: ${isClean(verdict.lines) ? 'clean' : 'NOT CLEAN'} after ${inSeconds(tookMs)}, ${inSeconds(verdict.settledMs)} of them for settling`,
  )
  process.stdout.write(`${describe(verdict.lines)}\n`)
  return { ...options, verdict, tookMs }
}

/** For docs/guarantees.md. */
function tableOf(runs: readonly Run[]): string {
  const rows = runs.map(({ seed, seconds, verdict: { lines, messages, upsets }, tookMs }) => {
    const wrong = lines.filter((line) => line.wrong.length > 0).length
    const said = wrong === 0 ? `${lines.length} of ${lines.length} ok` : `${wrong} of ${lines.length} WRONG`
    return `| ${seed} | ${seconds} | ${upsets} | ${messages} | ${said} | ${inSeconds(tookMs)} |`
  })
  return ['| seed | seconds | upsets | messages | verdict | in all |', '|---|---|---|---|---|---|', ...rows].join('\n')
}

const { help, seed, seconds, rate, seeds } = readOptions()
if (help) {
  process.stdout.write(HELP)
  process.exit(0)
}
breakOffInOrder()
const runs: Run[] = []
for (let n = 0; n < seeds; n++) runs.push(await run({ seed: seed === undefined ? randomInt(2 ** 32) : seed + n, seconds, rate }))
if (seeds > 1) process.stdout.write(`\n${tableOf(runs)}\n`)
process.exit(runs.every(({ verdict }) => isClean(verdict.lines)) ? 0 : 1)
