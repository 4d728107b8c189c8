import type { DeliveryWindow } from '../../src/windows/window.ts'

// Windows around now, an hour away from their ends: a test takes less.

const HOUR_MS = 3_600_000

const timeOfDay = (ms: number) => new Date(ms).toISOString().slice(11, 16)

/** Open since an hour, and for another one. */
export function openWindow(timeZone = 'UTC'): DeliveryWindow {
  return { from: timeOfDay(Date.now() - HOUR_MS), to: timeOfDay(Date.now() + HOUR_MS), timeZone }
}

/** Opens in two hours, for an hour. */
export function closedWindow(timeZone = 'UTC'): DeliveryWindow {
  return { from: timeOfDay(Date.now() + 2 * HOUR_MS), to: timeOfDay(Date.now() + 3 * HOUR_MS), timeZone }
}

/** When a window opens next by the clock of UTC, which is `hours` behind. */
export function openingOf({ from }: DeliveryWindow, hours = 0): Date {
  const today = Date.parse(`${new Date().toISOString().slice(0, 10)}T${from}:00Z`) - hours * HOUR_MS
  const days = [-1, 0, 1, 2].map((day) => today + day * 24 * HOUR_MS)
  return new Date(days.find((at) => at > Date.now()) as number)
}
