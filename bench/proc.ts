import { readdirSync, readFileSync } from 'node:fs'

// What the system says of a process: the time it has used, the memory it has.

const TICKS_PER_SECOND = 100

/** What a process has used so far, in ms; undefined where the system does not say it in this way (it is Linux that does). */
export function cpuMs({ pid }: { pid?: number | undefined }): number | undefined {
  if (process.platform !== 'linux') return undefined
  const fields = readStat(`${pid}`)
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}

/** Of a process and those that it has started, also of those that have ended. */
export function cpuOfFamilyMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined
  const ended = readStat(`${pid}`).slice(11, 15)
  const alive = childrenOf(pid).flatMap((child) => readStat(child).slice(11, 13))
  return [...ended, ...alive].reduce((sum, field) => sum + Number(field), 0) * (1000 / TICKS_PER_SECOND)
}

/** CPU time in ms, or for each message in µs, by what used it. */
export type Cpu = Record<string, number>

export function eachMicroseconds(from: Cpu, to: Cpu, count: number): Cpu {
  return Object.fromEntries(Object.entries(to).map(([name, ms]) => [name, ((ms - (from[name] ?? 0)) * 1_000) / count]))
}

export function childrenOf(pid: number): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(readStat(name)[1]) === pid)
}

/** From the state on; nothing of a process that has just ended. */
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
 * `RssAnon` is what a process has for itself. Not the private pages of `smaps`: those of PostgreSQL's shared buffers count as private where
 * only one backend has touched them yet.
 */
export function residentBytes(pid: number | string, field: 'VmRSS' | 'RssAnon'): number {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
