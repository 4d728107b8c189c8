import type { WebhookHosts } from '../public-host.ts'
import { FIRST_WINDOW } from './claim.ts'
import { createDestination, type Destination } from './destination.ts'

/** The calls of one endpoint in this process. Endpoints share nothing, so no endpoint waits for another. */
export type EndpointWindow = {
  /** How many more calls may start now. */
  room: () => number
  /** The subjects of the events whose call is in progress or whose result is being written. */
  subjects: ReadonlySet<string>
  begin: (subject: string) => void
  /** The call is over, with or without a response. */
  endCall: () => void
  end: (subject: string) => void
  /** Adjusts the window to the success or failure of a call. */
  recordAttempt: (isAccepted: boolean) => void
  /** The connections to the endpoint's current URL. */
  destination: (url: string) => Destination
  /** Records whether the last claim filled the room, so that more may be due. */
  recordClaim: (mayBeMore: boolean) => void
  /** Whether at least half of the window is free and more may be due. */
  wantsMore: () => boolean
  isIdle: () => boolean
  close: () => Promise<void>
}

const MAX_WINDOW = 64
// An endpoint that hangs holds two connections, enough to notice soon that it is back.
const MIN_WINDOW = 2
// Longer than the usual time between a message's events, shorter than most servers keep a connection open.
const IDLE_MS = 30_000

/**
 * The window of concurrent calls grows by one with each success and halves with each failure: a fast endpoint soon gets all it can handle,
 * a dead one costs little.
 */
export function createEndpointWindow(hosts: WebhookHosts): EndpointWindow {
  const subjects = new Set<string>()
  let calls = 0
  let window = FIRST_WINDOW
  let mayBeMore = true
  let usedAt = performance.now()
  let open: { url: string; destination: Destination } | undefined

  return {
    room: () => Math.max(0, Math.floor(window) - calls),
    subjects,
    begin: (subject) => {
      subjects.add(subject)
      calls += 1
    },
    endCall: () => {
      calls -= 1
    },
    end: (subject) => {
      subjects.delete(subject)
      usedAt = performance.now()
    },
    recordAttempt: (isAccepted) => {
      window = isAccepted ? Math.min(window + 1, MAX_WINDOW) : Math.max(window / 2, MIN_WINDOW)
    },
    destination: (url) => {
      if (open?.url !== url) {
        void open?.destination.close()
        open = { url, destination: createDestination(url, { connections: MAX_WINDOW, hosts }) }
      }
      return open.destination
    },
    recordClaim: (isFull) => {
      mayBeMore = isFull
    },
    wantsMore: () => mayBeMore && calls <= window / 2,
    isIdle: () => subjects.size === 0 && performance.now() - usedAt > IDLE_MS,
    close: async () => await open?.destination.close(),
  }
}
