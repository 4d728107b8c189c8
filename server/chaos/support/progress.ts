const startedAt = performance.now()

/** Prints what happens, with the seconds since the start. */
export function say(sentence: string): void {
  console.error(`${seconds(performance.now() - startedAt).padStart(7)}  ${sentence}`)
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
