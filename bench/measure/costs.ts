import type { Bench } from '../part.ts'
import { byMedian, type Figure, grouped, labelled, type Target } from './figures.ts'
import type { Wal } from './postgres-statistics.ts'
import type { Cpu } from './process-usage.ts'
import { cpuOf, type Rate, ratesOf, type Side } from './rounds.ts'

// What each message costs from acceptance to READ: the lines of the table that the parts with whole services have in common.

/** `wal`: for each message. */
export type Cost = Rate & { wal: Wal }

/** Of all processes of the service and PostgreSQL, without the simulated network. */
function totalOf({ simulator, ...others }: Cpu): number {
  return Object.values(others).reduce((sum, each) => sum + each, 0)
}

export function showCost({ perSecond, cpu }: Rate): string {
  const total = totalOf(cpu)
  return `${grouped(perSecond)} a second${total === 0 ? '' : `, ${total.toFixed(0)} µs of the service and PostgreSQL`}`
}

const walOf =
  (column: keyof Wal) =>
  ({ rounds }: Side<Cost>) =>
    byMedian(rounds.map(({ wal }) => wal[column]))

/** The names of the lines, which targets refer to. */
const RATE = 'accepted to READ'
export const TOTAL = 'CPU of each message: service and PostgreSQL'
export const WAL_RECORDS = 'WAL records of each message'
export const WAL_BYTES = 'WAL of each message, without page images'
export const cpuLine = (process: string) => `CPU of each message: ${process}`

function costsOf(side: Side<Cost>): { what: string; unit: string; read: (of: Side<Cost>) => Figure }[] {
  return [
    { what: RATE, unit: 'a second', read: ratesOf },
    ...Object.keys(side.rounds[0]?.cpu ?? {}).map((name) => ({ what: cpuLine(name), unit: 'µs', read: cpuOf(name) })),
    { what: TOTAL, unit: 'µs', read: ({ rounds }) => byMedian(rounds.map(({ cpu }) => totalOf(cpu))) },
    { what: WAL_RECORDS, unit: '', read: walOf('records') },
    { what: 'commits of each message', unit: '', read: walOf('commits') },
    { what: WAL_BYTES, unit: 'bytes', read: walOf('bytes') },
    { what: 'WAL of each message, page images', unit: 'bytes', read: walOf('pageBytes') },
  ]
}

type Reporting = {
  /** The side whose figures are the limits. */
  base?: Side<Cost> | undefined
  /** Another limit of the rate, if there is no base. */
  rateLimit?: Side | undefined
  /** By the name of the line. */
  targets?: Record<string, Target> | undefined
}

export function reportCosts({ report }: Bench, side: Side<Cost>, { base, rateLimit, targets = {} }: Reporting): void {
  for (const { what, unit, read } of costsOf(side)) {
    const ofRate = what === RATE && rateLimit !== undefined ? { what: rateLimit.label, ...ratesOf(rateLimit) } : undefined
    const limit = base === undefined ? ofRate : { what: base.label, ...read(base) }
    report({ what: labelled(side.label, what), unit, measured: read(side), limit, target: targets[what] })
  }
}
