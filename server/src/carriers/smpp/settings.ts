export type SmppTimings = {
  connectMs: number
  bindMs: number
  /** How long an answer to a submit_sm or an enquire_link may take. */
  answerMs: number
  /** At the end: how long answers that are still due are awaited, and then the answer to the unbind. */
  leaveMs: number
  unbindMs: number
  /** How long a submit waits for the bind or for room in the window before it is sent away. */
  waitMs: number
  reconnectFirstMs: number
  reconnectLongestMs: number
  /** A connection that was bound for this long was a good one: the next attempt after it comes soon. */
  steadyMs: number
  throttleFirstMs: number
  throttleLongestMs: number
  /** Everything that is due is looked for this often, by one timer. */
  tickMs: number
}

export type SmppSettings = {
  name: string
  host: string
  port: number
  tls: boolean
  systemId: string
  password: string
  systemType?: string
  /** How many submits may be unanswered at once; 10. */
  window?: number
  /** Kept for whoever paces. */
  messagesPerSecond?: number
  /** After how long without a word from the network it is asked for one; 30. */
  enquireLinkSeconds?: number
  timings?: Partial<SmppTimings>
}

export const DEFAULT_TIMINGS: SmppTimings = {
  connectMs: 5_000,
  bindMs: 5_000,
  answerMs: 10_000,
  leaveMs: 3_000,
  unbindMs: 500,
  waitMs: 3_000,
  reconnectFirstMs: 250,
  reconnectLongestMs: 30_000,
  steadyMs: 10_000,
  throttleFirstMs: 1_000,
  throttleLongestMs: 60_000,
  tickMs: 50,
}
export const DEFAULT_WINDOW = 10
export const DEFAULT_ENQUIRE_LINK_SECONDS = 30
