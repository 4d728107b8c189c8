const startedAt = performance.now()

/** For the person who waits. */
export function say(sentence: string): void {
  console.error(`${seconds(performance.now() - startedAt).padStart(7)}  ${sentence}`)
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
