import { HORIZON_DAYS, openSpans, type Span } from './opening.ts'
import { zonesOf } from './places.ts'
import { hoursOf } from './window.ts'

const DAY_MS = 86_400_000
// A window on the clocks of a place. An installation has few windows, and recipients in at most some hundred places.
const MAX_KNOWN = 2_000

type Known = { from: number; spans: Span[] }
const knownByText = new Map<string, Known>()

/**
 * When the window of a message is open from `at` on: `at` itself if it is open now. `text`: as stored with the message. If the window does not
 * open within a week, since it is never open in all zones at once, this is when to look again.
 */
export function opensAt(text: string, at: number): number {
  const next = spansOf(text, at).find(({ end }) => end > at)
  return next === undefined ? at + (HORIZON_DAYS - 1) * DAY_MS : Math.max(next.start, at)
}

/** The next open times. They are computed once a day for each text: every claim asks. */
function spansOf(text: string, at: number): Span[] {
  const known = knownByText.get(text)
  if (known !== undefined && at >= known.from && at < known.from + DAY_MS) return known.spans
  const { place, ...hours } = hoursOf(text)
  // The clock of the database has microseconds.
  const start = Math.floor(at)
  const spans = openSpans(hours, zonesOf(place), { start, end: start + HORIZON_DAYS * DAY_MS })
  if (knownByText.size >= MAX_KNOWN) knownByText.clear()
  knownByText.set(text, { from: start, spans })
  return spans
}
