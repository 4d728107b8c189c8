/** A delivery window on the clocks of recipients. */
export type Hours = {
  /** Minutes after midnight, from 0 to 1439. */
  from: number
  /** Minutes after midnight, from 0 to 1440. Before `from`: the window ends on the next day. */
  to: number
  /** The days on which the window begins: 1 is Monday, 7 is Sunday. */
  days: readonly number[]
}

/** From `start` until before `end`, in milliseconds since 1970. */
export type Span = { start: number; end: number }

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
// 1970 began on a Thursday.
const WEEKDAY_OF_1970 = 4

/**
 * When the window is open in all of these zones, within a range. The clock on the wall decides: if a change of clocks skips the opening time, the
 * window opens at the change; if it repeats the closing time, the window is open twice. The zones are those of the platform (Temporal).
 */
export function openSpans(hours: Hours, zones: readonly string[], range: Span): Span[] {
  const clocks = new Map(zones.map((zone) => clocksOf(zone, range)).map((clocks) => [JSON.stringify(clocks), clocks]))
  // Zones with the same clocks count once: of the 26 zones of Russia, 11 differ.
  return [...clocks.values()].map((of) => of.flatMap((clock) => spansBy(hours, clock))).reduce(intersect, [range])
}

/** The first moment from `at` on, within a range, at which the window is open in all of these zones. Undefined: there is none. */
export function nextOpening(hours: Hours, zones: readonly string[], at: number, days = HORIZON_DAYS): number | undefined {
  return openSpans(hours, zones, { start: at, end: at + days * DAY_MS })[0]?.start
}

/** A window opens at least once a week, if it opens at all. A day more, for changes of clocks. */
export const HORIZON_DAYS = 8

/** A part of the range in which the clock of a zone runs evenly. */
type Clock = Span & { offsetMs: number }

function clocksOf(zone: string, { start, end }: Span): Clock[] {
  const clocks: Clock[] = []
  let at = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(zone)
  for (let from = start; from < end; ) {
    const next = at.getTimeZoneTransition('next')
    const until = Math.min(next?.epochMilliseconds ?? end, end)
    clocks.push({ start: from, end: until, offsetMs: at.offsetNanoseconds / 1e6 })
    if (next === null) break
    at = next
    from = until
  }
  return clocks
}

/** When the window is open by an even clock. Times on the wall count as if they were UTC. */
function spansBy({ from, to, days }: Hours, { start, end, offsetMs }: Clock): Span[] {
  const spans: Span[] = []
  const lengthMs = (to > from ? to - from : to + 24 * 60 - from) * MINUTE_MS
  // The window of the day before may still be open.
  for (let day = Math.floor((start + offsetMs) / DAY_MS) - 1; day * DAY_MS < end + offsetMs; day += 1) {
    if (!days.includes(weekdayOf(day))) continue
    const opensAt = day * DAY_MS + from * MINUTE_MS - offsetMs
    const span = { start: Math.max(opensAt, start), end: Math.min(opensAt + lengthMs, end) }
    if (span.start < span.end) spans.push(span)
  }
  return spans
}

/** `day`: days since 1970. */
const weekdayOf = (day: number) => ((((day + WEEKDAY_OF_1970 - 1) % 7) + 7) % 7) + 1

/** Both lists are in order. Spans that touch become one. */
function intersect(a: readonly Span[], b: readonly Span[]): Span[] {
  const both: Span[] = []
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [one, other] = [a[i] as Span, b[j] as Span]
    const span = { start: Math.max(one.start, other.start), end: Math.min(one.end, other.end) }
    const last = both.at(-1)
    if (last?.end === span.start) last.end = Math.max(span.end, last.end)
    else if (span.start < span.end) both.push(span)
    if (one.end < other.end) i += 1
    else j += 1
  }
  return both
}
