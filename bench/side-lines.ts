import { byMedian, type Figure, type Line } from './lines.ts'
import { labelled, type Round, totalOf } from './whole-way.ts'

// Lines of the table about one of several servers, each beside the first server's.

/** What was measured of a server, in rounds. */
export type Measured = { label: string; rounds: Round[] }

export type Lines<T extends Measured> = (what: string, unit: string, read: (of: T) => Figure, target?: Line['target']) => Line

/** The first of all is the base, whose figure is the limit of the others'. The targets are those of the last. */
export function linesOf<T extends Measured>(part: string, all: T[], of: T): Lines<T> {
  const base = all[0] as T
  return (what, unit, read, target) => ({
    part,
    what: labelled(of.label, what),
    unit,
    measured: read(of),
    ...(of !== base && { limit: { what: base.label, ...read(base) } }),
    ...(of === all.at(-1) && target !== undefined && { target }),
  })
}

export function ratesOf({ rounds }: Measured): Figure {
  return byMedian(rounds.map(({ perSecond }) => perSecond))
}

/** µs for each message, of one process. */
export function cpuOfEach(name: string): (of: Measured) => Figure {
  return ({ rounds }) => byMedian(rounds.map(({ cpu }) => cpu[name] ?? 0))
}

/** µs for each message, of all processes of the service and PostgreSQL. */
export function totalsOf({ rounds }: Measured): Figure {
  return byMedian(rounds.map(({ cpu }) => totalOf(cpu)))
}

export function walOfEach(column: keyof Round['wal']): (of: Measured) => Figure {
  return ({ rounds }) => byMedian(rounds.map(({ wal }) => wal[column]))
}

export function processesOf({ rounds }: Measured): string[] {
  return Object.keys(rounds[0]?.cpu ?? {})
}
