import { measureAccept } from './accept.ts'
import { measureAttacks } from './attacks.ts'
import { measureCampaign } from './campaign.ts'
import { unlessBrokenOff, watched } from './clean-up.ts'
import { measureGrowth } from './growth.ts'
import { CONNECTIONS } from './http-load.ts'
import { measureKannel } from './kannel.ts'
import { measureLatency } from './latency.ts'
import { isKept, type Line, markdownOf, type Report, type ReportTable, ratioOf, type Table, tableOf } from './lines.ts'
import { measureLowLoad } from './low-load.ts'
import { describeMachine, lookAtOtherWork, type OtherWork, warningOf } from './machine.ts'
import { say } from './measure.ts'
import { measureMemory } from './memory.ts'
import { PARTS, type Part, readOptions } from './options.ts'
import { readSettings } from './postgres.ts'
import { LIMITS } from './processes.ts'
import { measureScaling } from './scaling.ts'
import { measureThrough } from './through.ts'
import { measureBesideHistory } from './through-history.ts'

// What Herald promises of its speed, measured: `npm run bench`. Each figure stands beside a limit of the same run on the same machine, so that
// their ratio means the same elsewhere.

const MOST_MINUTES = 20

const { quick, only, checkouts, servers, delayMs } = readOptions(process.argv.slice(2))
const measuring = { quick, servers, delayMs }
const machine = describeMachine()
const settings = {
  quick,
  parts: [...only],
  servers,
  delayMs,
  startedAt: new Date().toISOString(),
  connections: CONNECTIONS,
  limits: { ...LIMITS, HERALD_LIMITS: 'not set: in memory on the embedded database, in the database where nodes are apart' },
  postgres: {} as Record<string, string>,
}
const lines: Line[] = []
const tables: Table[] = []
const ran: { part: Part; seconds: number; otherWorkBefore: OtherWork }[] = []
const warnings: string[] = []
const failures: { part: Part; why: string }[] = []
const report: Report = (line) => lines.push(line)
const reportTable: ReportTable = (table) => tables.push(table)

const MEASURE: Record<Part, () => Promise<void>> = {
  accept: async () => await measureAccept(quick, report),
  through: async () => await measureThrough(measuring, report, reportTable),
  history: async () => await measureBesideHistory(measuring, report),
  'low-load': async () => await measureLowLoad(measuring, report),
  campaign: async () => await measureCampaign(measuring, report),
  kannel: async () => await measureKannel(measuring, report, warn),
  latency: async () => await measureLatency(measuring, report),
  scaling: async () => await measureScaling(measuring, report, reportTable),
  memory: async () => await measureMemory(quick, report),
  growth: async () => await measureGrowth(quick, report),
  attacks: async () => await measureAttacks(quick, report, checkouts),
}

// Whatever becomes of the rest, what was measured is shown: also when somebody breaks off.
process.on('exit', show)
if (machine.isDiskInMemory)
  warn('WARNING: temporary files are in memory here (TMPDIR): commits cost nothing, and no figure is worth anything.')
await watched(async () => {
  settings.postgres = await readSettings()
}, MOST_MINUTES)
for (const part of PARTS) if (only.has(part)) await run(part)
process.exit(failures.length > 0 || (!quick && lines.some((line) => isKept(line) === false)) ? 1 : 0)

async function run(part: Part): Promise<void> {
  await unlessBrokenOff()
  const otherWorkBefore = await lookAtOtherWork()
  warn(warningOf(part, otherWorkBefore))
  const startedAt = performance.now()
  try {
    await watched(MEASURE[part], MOST_MINUTES * servers.length)
  } catch (error) {
    await unlessBrokenOff()
    say((error as Error).stack ?? String(error))
    failures.push({ part, why: (error as Error).message })
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  ran.push({ part, seconds, otherWorkBefore })
  say(`${part}: took ${seconds} s`)
}

function warn(warning: string | undefined): void {
  if (warning === undefined) return
  say(warning)
  warnings.push(warning)
}

function show(): void {
  const { cpu, cores, memoryGiB, system, node, commit, fdatasyncMs } = machine
  const onWhat = `${cores} cores (${cpu}), ${memoryGiB} GiB, ${system}, Node ${node}, fdatasync ${fdatasyncMs} ms, commit ${commit}, ${settings.startedAt}`
  const took = ran.map(({ part, seconds, otherWorkBefore: { busy } }) => `${part} ${seconds} s (${Math.round(busy * 100)} % busy before)`)
  const notes = [
    ...warnings,
    ...failures.map(({ part, why }) => `FAILED: ${part}: ${why}`),
    ...(quick ? ['A quick run: too short to check a target.'] : []),
  ]
  const checked = lines.map((line) => ({ ...line, ratio: ratioOf(line), isKept: quick ? undefined : isKept(line) }))
  const json = JSON.stringify({ machine, settings, ran, warnings, failures, lines: checked, tables })
  const written = [
    `${onWhat}; ${took.join(', ') || 'no part was done'}.`,
    tableOf(lines, !quick),
    ...tables.flatMap(({ title, head, rows }) => [`${title}:`, markdownOf(head, rows)]),
    ...notes,
    json,
  ]
  process.stdout.write(`${written.join('\n\n')}\n`)
}
