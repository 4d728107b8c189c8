import { CONNECTIONS } from './load/connections.ts'
import { isMet, type Line, markdownOf, ratioOf, type Table, tableOf } from './measure/figures.ts'
import { describeMachine, lookAtOtherWork, type OtherWork, warningOf } from './measure/machine.ts'
import { readOptions } from './options.ts'
import type { Bench, Part } from './part.ts'
import { THIS_CHECKOUT } from './setup/checkouts.ts'
import { say, unlessInterrupted, watched } from './setup/clean-up.ts'
import { readSettings } from './setup/postgres.ts'
import { LIMITS } from './setup/processes.ts'

// `npm run bench`: runs the parts one after the other, and prints their figures.

const MOST_MINUTES = 20

const { quick, parts, servers, delayMs } = readOptions(process.argv.slice(2))
const machine = describeMachine()
const settings = {
  quick,
  parts: parts.map(({ name }) => name),
  servers,
  delayMs,
  startedAt: new Date().toISOString(),
  connections: CONNECTIONS,
  limits: { ...LIMITS, HERALD_LIMITS: 'not set: in memory on the embedded database, in the database if HERALD_DATABASE_URL names one' },
  postgres: {} as Record<string, string>,
}
const lines: (Line & { part: string })[] = []
const tables: Table[] = []
const ran: { part: string; seconds: number; otherWorkBefore: OtherWork }[] = []
const notes: string[] = []
const failures: { part: string; reason: string }[] = []

// Shows what was measured, also after an interrupt.
process.on('exit', show)
if (machine.isDiskInMemory)
  note('WARNING: temporary files are in memory here (TMPDIR): commits cost nothing, and no figure means anything.')
await watched(async () => {
  settings.postgres = await readSettings()
}, MOST_MINUTES)
for (const part of parts) await run(part)
process.exit(failures.length > 0 || (!quick && lines.some((line) => isMet(line) === false)) ? 1 : 0)

async function run({ name, minutesEach, run: measure }: Part): Promise<void> {
  await unlessInterrupted()
  const otherWorkBefore = await lookAtOtherWork()
  note(warningOf(name, otherWorkBefore))
  const isOther = servers.some(({ checkout }) => checkout !== THIS_CHECKOUT)
  if (isOther && minutesEach === undefined) note(`${name} measured this checkout alone, whatever --server says.`)
  const bench: Bench = {
    quick,
    servers,
    delayMs,
    report: (line) => lines.push({ part: name, ...line }),
    reportTable: ({ title, ...table }) => tables.push({ title: `${name}: ${title}`, ...table }),
    note,
    say: (sentence) => say(`${name}: ${sentence}`),
  }
  const startedAt = performance.now()
  try {
    await watched(() => measure(bench), MOST_MINUTES * servers.length)
  } catch (error) {
    await unlessInterrupted()
    say((error as Error).stack ?? String(error))
    failures.push({ part: name, reason: (error as Error).message })
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  ran.push({ part: name, seconds, otherWorkBefore })
  bench.say(`took ${seconds} s`)
}

function note(sentence: string | undefined): void {
  if (sentence === undefined) return
  say(sentence)
  notes.push(sentence)
}

function show(): void {
  const { cpu, cores, memoryGiB, system, node, commit, fdatasyncMs } = machine
  const where = `${cores} cores (${cpu}), ${memoryGiB} GiB, ${system}, Node ${node}, fdatasync ${fdatasyncMs} ms, commit ${commit}, ${settings.startedAt}`
  const took = ran.map(({ part, seconds, otherWorkBefore: { busy } }) => `${part} ${seconds} s (${Math.round(busy * 100)} % busy before)`)
  const checked = lines.map((line) => ({ ...line, ratio: ratioOf(line), isMet: quick ? undefined : isMet(line) }))
  const written = [
    `${where}; ${took.join(', ') || 'no part has ended'}.`,
    tableOf(lines, !quick),
    ...tables.flatMap(({ title, head, rows }) => [`${title}:`, markdownOf(head, rows)]),
    ...notes,
    ...failures.map(({ part, reason }) => `FAILED: ${part}: ${reason}`),
    ...(quick ? ['A quick run: too short to check a target.'] : []),
    JSON.stringify({ machine, settings, ran, notes, failures, lines: checked, tables }),
  ]
  process.stdout.write(`${written.join('\n\n')}\n`)
}
