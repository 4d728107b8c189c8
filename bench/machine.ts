import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { median } from './measure.ts'
import { remove, temporaryDirectory } from './temporary.ts'

// What the measurements ran on, and whether it was theirs alone.

export type Machine = {
  cpu: string
  cores: number
  memoryGiB: number
  system: string
  node: string
  /** With a `+` where files differ from it. */
  commit: string
  /** What it takes to have 8 KiB on the disk, where PostgreSQL's files are: the median of 100. */
  fdatasyncMs: number
  /** Files that are in memory alone make every commit durable at no cost, and the figures worthless. */
  isDiskInMemory: boolean
}

const TMPFS = 0x01021994

export function describeMachine(): Machine {
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    commit: commitOf(import.meta.dirname),
    fdatasyncMs: timeDisk(),
    isDiskInMemory: statfsSync(tmpdir()).type === TMPFS,
  }
}

/** Empty where the directory is not in a repository. */
export function commitOf(directory: string): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : '+'}`
  } catch {
    return ''
  }
}

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

/** `load`: the system's average of the last minute. `busy`: the share of all cores that was in use while nothing of ours ran. */
export type OtherWork = { load: number; busy: number }

const LOOK_MS = 2_000
// The system itself takes one or two in a hundred.
const QUIET = 0.1

export async function lookAtOtherWork(): Promise<OtherWork> {
  const from = coreTimes()
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  const to = coreTimes()
  const busy = 1 - (to.idle - from.idle) / (to.all - from.all)
  return { load: Number((loadavg()[0] as number).toFixed(2)), busy: Number(busy.toFixed(2)) }
}

function coreTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  return {
    idle: times.reduce((sum, { idle }) => sum + idle, 0),
    all: times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0),
  }
}

/** What to say about it, where it spoils the figures. */
export function warningOf(part: string, { busy, load }: OtherWork): string | undefined {
  if (busy <= QUIET) return undefined
  return `WARNING: before ${part}, other work used ${Math.round(busy * 100)} % of the cores (load ${load}): its figures are not to be relied on.`
}
