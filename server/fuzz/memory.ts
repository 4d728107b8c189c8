import { readFileSync } from 'node:fs'

// Whether the resident memory of the service stays flat: the median between 20 % and 40 % of the requests, when everything is warm, against
// the median of the last 20 %.

/** `share`: of the requests, from 0 to 1. */
export type Sample = { share: number; bytes: number }

/**
 * A leak of 2 KiB for each request shows after 100,000. Hashing passwords takes 117 MiB that the allocator keeps, the same after 100 hashes as
 * after 1,000; a run may reach that only in its last part. Without these operations, 28,000 requests add 8 MiB.
 */
export const MAX_GROWTH_BYTES = 128 * 2 ** 20
/** The heap of Node grows to its working size within the first thousands of requests. */
export const MIN_REQUESTS = 20_000
const EVERY_MS = 250

export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** `share`: the progress of the run. The returned function ends the sampling and returns the samples. */
export function watchMemory(pid: number, share: () => number): () => Sample[] {
  const samples: Sample[] = []
  if (process.platform !== 'linux') return () => samples
  const timer = setInterval(() => samples.push({ share: share(), bytes: residentBytes(pid) }), EVERY_MS)
  return () => {
    clearInterval(timer)
    return samples
  }
}

export type Growth = { warm: number; last: number; isFlat: boolean }

/** Undefined if the run was too short to compare. */
export function growthOf(samples: Sample[], requests: number): Growth | undefined {
  const within = (from: number, to: number) => samples.filter(({ share }) => share >= from && share <= to).map(({ bytes }) => bytes)
  const [warm, last] = [within(0.2, 0.4), within(0.8, 1)]
  if (requests < MIN_REQUESTS || warm.length === 0 || last.length === 0) return undefined
  const growth = { warm: median(warm), last: median(last) }
  return { ...growth, isFlat: growth.last - growth.warm <= MAX_GROWTH_BYTES }
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number
}
