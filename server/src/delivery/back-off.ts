const FIRST_MS = 500
const LONGEST_MS = 60_000

/** The wait before the next attempt: doubled each time up to a minute, with jitter, and never shorter than the network asked for. */
export function backOffMs(attempts: number, askedMs: number): number {
  const growing = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempts - 1))
  return Math.max(askedMs, growing * (0.5 + Math.random() / 2))
}
