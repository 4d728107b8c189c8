import { readdirSync, readFileSync } from 'node:fs'

// The CPU time and the memory of processes, as Linux reports them. Other systems do not: there, the figures are NaN.

const TICKS_PER_SECOND = 100

/** What a process used so far, in ms. NaN after its end. */
export function cpuMs({ pid }: { pid?: number | undefined }): number {
  const [user, system] = readStat(`${pid}`).slice(11, 13).map(Number)
  return (((user ?? Number.NaN) + (system ?? Number.NaN)) * 1_000) / TICKS_PER_SECOND
}

/**
 * Of a process and its children, including those that have ended. If a child ends meanwhile, its time moves from its own fields to those of
 * the parent, and is read again.
 */
export function cpuOfFamilyMs(pid: number): number {
  const read = () => readStat(`${pid}`).slice(11, 15)
  for (let own = read(); own.length > 0; own = read()) {
    const children = childrenOf(pid).flatMap((child) => readStat(child).slice(11, 13))
    const isSame = read().slice(2).join() === own.slice(2).join()
    if (isSame) return [...own, ...children].reduce((sum, field) => sum + Number(field), 0) * (1_000 / TICKS_PER_SECOND)
  }
  return Number.NaN
}

/** CPU time by process: in ms, or for each message in µs. */
export type Cpu = Record<string, number>

/** What processes, and PostgreSQL with all its backends, used so far in ms. */
export function cpuOfAll(processes: Record<string, { pid?: number | undefined }>, postmaster: number): Cpu {
  const own = Object.entries(processes).map(([name, child]) => [name, cpuMs(child)])
  return { ...Object.fromEntries(own), postgres: cpuOfFamilyMs(postmaster) }
}

export function eachMicroseconds(from: Cpu, to: Cpu, count: number): Cpu {
  return Object.fromEntries(Object.entries(to).map(([name, ms]) => [name, ((ms - (from[name] ?? 0)) * 1_000) / count]))
}

export function childrenOf(pid: number): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(readStat(name)[1]) === pid)
}

/** The fields from the state on; empty for a process that has just ended. */
function readStat(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return []
  }
}

/**
 * `RssAnon` is the memory that belongs to the process alone. The private pages of `smaps` do not show that: a page of PostgreSQL's shared
 * buffers counts as private while only one backend has touched it.
 */
export function residentBytes(pid: number | string, field: 'VmRSS' | 'RssAnon'): number {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

const SAMPLE_MS = 50

/** `before`, `peak` and `after` are bytes of resident memory. */
export type MemoryUse = { before: number; peak: number; after: number }

/** Samples the resident memory. The function that it returns ends that. */
export function watchMemory({ pid }: { pid?: number | undefined }): () => MemoryUse {
  const look = () => residentBytes(pid as number, 'VmRSS')
  const before = look()
  let peak = before
  const timer = setInterval(() => {
    peak = Math.max(peak, look())
  }, SAMPLE_MS)
  return () => {
    clearInterval(timer)
    const after = look()
    return { before, peak: Math.max(peak, after), after }
  }
}
