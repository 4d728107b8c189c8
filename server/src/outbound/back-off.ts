/**
 * The wait after this many failures in a row. It doubles each time up to `longestMs`. Half of it is random, so that clients that failed
 * together do not retry together.
 */
export function backOffMs(failures: number, firstMs: number, longestMs: number): number {
  return Math.min(longestMs, firstMs * 2 ** (failures - 1)) * (0.5 + Math.random() / 2)
}
