export type SmppTimings = {
  connectMs: number
  bindMs: number
  /** How long to wait for the response to a submit_sm or an enquire_link. */
  responseMs: number
  /** When closing: how long to wait for outstanding responses, then for the response to the unbind. */
  leaveMs: number
  unbindMs: number
  /** How long a submit waits for the bind or for room in the window before it is released. */
  waitMs: number
  reconnectFirstMs: number
  reconnectLongestMs: number
  /** A connection that was bound for this long counts as stable: reconnecting after it starts with the shortest delay. */
  steadyMs: number
  throttleFirstMs: number
  throttleLongestMs: number
  /** One timer checks all timeouts this often. */
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
  /** How many submits may await their response at once; default 10. */
  window?: number
  /** The network's rate limit. The delivery worker applies it, not the carrier. */
  messagesPerSecond?: number
  /** After how many seconds without traffic from the network to send an enquire_link; default 30. */
  enquireLinkSeconds?: number
  timings?: Partial<SmppTimings>
}

export const DEFAULT_TIMINGS: SmppTimings = {
  connectMs: 5_000,
  bindMs: 5_000,
  responseMs: 10_000,
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
