/**
 * How far the clock of the database is ahead of this machine's, in milliseconds. `askedAt`: when the statement that read the database's clock
 * was sent, by this machine's clock.
 */
export function clockDifferenceMs(askedAt: number, databaseTime: Date): number {
  return Math.round(databaseTime.getTime() - (askedAt + Date.now()) / 2)
}
