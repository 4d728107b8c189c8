import type { Line, Table } from './measure/figures.ts'
import type { Server } from './setup/checkouts.ts'

/** What a part gets: its options, and where its figures go. All that it starts is stopped when it returns (`setup/clean-up.ts`). */
export type Bench = {
  /** A short run that shows that the part works. Its figures mean little. */
  quick: boolean
  /** The servers to compare. The first is the base of the ratios, and the targets are checked for the last. */
  servers: Server[]
  /** The time between the steps of a message in the simulated network. */
  delayMs: number
  /** Takes a line as soon as it is known, since what follows may fail. */
  report: (line: Line) => void
  /** Figures without a target, several in a row. */
  reportTable: (table: Table) => void
  /** A sentence below the tables. */
  note: (sentence: string) => void
  /** Progress, on the error stream. */
  say: (sentence: string) => void
}

/** `minutes`: of a full run. `minutesEach`: for each further `--server`; without it, the part measures this checkout alone. */
export type Part = { name: string; measures: string; minutes: number; minutesEach?: number; run: (bench: Bench) => Promise<void> }
