import { createDestination, type Destination } from './destination.ts'
import { FIRST_WINDOW } from './take.ts'

/** What this process does for one endpoint: nothing in it is shared with another endpoint, so none waits for another. */
export type Lane = {
  /** How many more calls it may make now. */
  room: () => number
  /** What the events are about that are being posted, or of which it is being written down what came of that. */
  underWay: ReadonlySet<string>
  begin: (subject: string) => void
  /** It was posted, or is not. */
  answered: () => void
  end: (subject: string) => void
  /** Another event was taken, or was not. */
  judge: (isTaken: boolean) => void
  /** The connections to where it is now. */
  destination: (url: string) => Destination
  /** Whether there was as much due as there was room for. */
  noteRead: (mayBeMore: boolean) => void
  /** It has room worth a look for more, and more may be due. */
  wantsMore: () => boolean
  isIdle: () => boolean
  close: () => Promise<void>
}

const LARGEST_WINDOW = 64
// One that hangs holds two connections; one of them finds out soon enough that it is back.
const LEAST_WINDOW = 2
// Longer than the usual pause between a message's events, shorter than most servers keep a connection.
const IDLE_MS = 30_000

/** Calls at once grow by one with each success and halve with each failure: a quick endpoint soon gets all it can take, a dead one costs little. */
export function createLane(allowPrivate: boolean): Lane {
  const underWay = new Set<string>()
  let calls = 0
  let window = FIRST_WINDOW
  let mayBeMore = true
  let usedAt = performance.now()
  let open: { url: string; destination: Destination } | undefined

  return {
    room: () => Math.max(0, Math.floor(window) - calls),
    underWay,
    begin: (subject) => {
      underWay.add(subject)
      calls += 1
    },
    answered: () => {
      calls -= 1
    },
    end: (subject) => {
      underWay.delete(subject)
      usedAt = performance.now()
    },
    judge: (isTaken) => {
      window = isTaken ? Math.min(window + 1, LARGEST_WINDOW) : Math.max(window / 2, LEAST_WINDOW)
    },
    destination: (url) => {
      if (open?.url !== url) {
        void open?.destination.close()
        open = { url, destination: createDestination(url, { connections: LARGEST_WINDOW, allowPrivate }) }
      }
      return open.destination
    },
    noteRead: (isFull) => {
      mayBeMore = isFull
    },
    wantsMore: () => mayBeMore && calls <= window / 2,
    isIdle: () => underWay.size === 0 && performance.now() - usedAt > IDLE_MS,
    close: async () => await open?.destination.close(),
  }
}
