import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { remove, temporaryDirectory } from '../setup/files.ts'
import { median } from './figures.ts'

// The machine of a run, and whether other work used it too.

const TMPFS = 0x01021994

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    commit: commitOf(import.meta.dirname),
    fdatasyncMs: timeDisk(),
    // Commits to files in memory cost nothing, which makes the figures worthless.
    isDiskInMemory: statfsSync(tmpdir()).type === TMPFS,
  }
}

/** With a `+` if files differ from the commit; empty if the directory is not in a repository. */
export function commitOf(directory: string): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }).trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '+'}`
  } catch {
    return ''
  }
}

/** The time to write 8 KiB to the disk that holds PostgreSQL's files: the median of 100. */
function timeDisk(): number {
  const directory = temporaryDirectory()
  const file = openSync(join(directory, 'page'), 'w')
  const page = Buffer.alloc(8_192)
  const times = Array.from({ length: 100 }, () => {
    const from = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    return performance.now() - from
  })
  closeSync(file)
  remove(directory)
  return Number(median(times).toFixed(2))
}

/** `load`: the system's average of the last minute. `busy`: the share of all cores in use while no part ran. */
export type OtherWork = { load: number; busy: number }

const LOOK_MS = 2_000
// The system itself uses 1 to 2 %.
const QUIET = 0.1

export async function lookAtOtherWork(): Promise<OtherWork> {
  const from = coreTimes()
  await sleep(LOOK_MS)
  const to = coreTimes()
  const busy = 1 - (to.idle - from.idle) / (to.all - from.all)
  return { load: Number((loadavg()[0] as number).toFixed(2)), busy: Number(busy.toFixed(2)) }
}

function coreTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  const all = times.flatMap((core) => Object.values(core)).reduce((sum, ms) => sum + ms, 0)
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all }
}

/** Undefined if the other work is too little to matter. */
export function warningOf(part: string, { busy, load }: OtherWork): string | undefined {
  if (busy <= QUIET) return undefined
  return `WARNING: before ${part}, other work used ${Math.round(busy * 100)} % of the cores (load ${load}): do not rely on its figures.`
}
