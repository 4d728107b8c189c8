/**
 * Makes a function that reads something. Callers that ask while it is read, or within `freshMs` after that, share the reading: otherwise readings
 * of a slow database would pile up.
 */
export function sharedReading<T>(read: () => Promise<T>, freshMs: number): () => Promise<T> {
  let latest: { reading: Promise<T>; endedAt: number } | undefined
  return () => {
    if (latest === undefined || performance.now() - latest.endedAt > freshMs) {
      const started = { reading: read(), endedAt: Number.POSITIVE_INFINITY }
      latest = started
      started.reading.then(
        () => {
          started.endedAt = performance.now()
        },
        () => {
          latest = undefined
        },
      )
    }
    return latest.reading
  }
}
