import { count, countUpTo, number, shortDuration, upTo } from './numbers.ts'

// The words of the page Webhooks.

export const note = 'where Herald posts events'
export const add = 'Add an endpoint'
export const added = 'The endpoint is added'
export const endpoint = (id: number) => `Endpoint ${id}`
export const none = 'No endpoint yet'
export const noneHint = 'Herald posts every event of this account to your server as it happens.'
export const url = 'Address'
export const urlHint = 'With https, at a public host.'
export const urlHintSimulated = 'With https, at a public host. With the simulated network, also http on the machine of Herald.'
export const noServer = 'No server yet?'
export const noServerHint = 'This command, on the machine of Herald, accepts and prints every event.'
export const command = 'The command'
export const useAddress = (url: string) => `Use its address, ${url}`
export const types = 'Types of events'
export const typesHint = 'None means all, also those of later versions.'
export const signedWith = 'Signed with'
export const secretMade = 'the secret made'
export const secretExpires = 'which expires'
export const allTypes = 'all types of events'
export const secret = 'The secret'
export const secretHint = 'It signs the events. Copy it now: it is shown only once.'
export const pending = 'waiting'
export const failed = 'failed'
export const healthy = 'accepts events'
export const failing = 'fails'
export const disabled = 'disabled'
export const disabledAt = 'Disabled'
export const since = 'since'
export const failingSince = 'It has accepted nothing since'
export const because = {
  FAILING: 'It accepted nothing for five days, so Herald disabled it.',
  OPERATOR: 'The operator disabled it.',
  CALLER: 'It was disabled by a person or through the API.',
}
export const waiting = (pending: number, failed: number) =>
  pending === 0 && failed === 0
    ? 'Nothing waits, and nothing failed.'
    : `${countUpTo(pending, 'event waits', 'events wait')}, ${upTo(failed)} failed.`
export const lastAttempts = 'The last attempts'
export const noAttempts = 'Nothing was posted yet'
export const noneOfEvent = 'This event was not posted to the endpoint in the last 30 days'
export const noFailed = 'No attempt of the last 30 days failed'
export const noOlder = 'There are no older attempts'
export const partly = 'Herald has searched only some of the attempts so far.'
export const acceptedOf = (accepted: number, all: number) =>
  `${number.format(accepted)} of the last ${number.format(all)} attempts were accepted`
export const test = 'Send a test event'
export const testAccepted = (result: string) => `The endpoint accepted the test event: ${result}.`
export const testFailed = (result: string) => `The endpoint did not accept the test event: ${result}.`
export const responded = (status: number, ms: number) => `status ${status} after ${number.format(ms)} ms`
export const noResponse = (error: string) => `no response (${error})`
export const rotate = 'Replace the secret'
export const rotated = 'The new secret'
export const rotateHint = 'For 24 hours, events are signed with both secrets, so nothing is lost while you change it at your server.'
export const ends = {
  disable: 'Disable',
  delete: 'Delete',
}
export const enable = 'Enable'
export const nowIs = { ACTIVE: 'The endpoint is enabled.', DISABLED: 'The endpoint is disabled.' }
export const sure = {
  disable: (pending: number) => `Nothing more is posted to it. ${countUpTo(pending, 'event waits', 'events wait')} for it.`,
  delete: (pending: number) => `This deletes the endpoint, its attempts and ${countUpTo(pending, 'waiting event')}. This can’t be undone.`,
}
export const replay = 'Post events again'
export const which = 'Which events'
export const onlyFailed = 'Only failed ones'
export const onlyEvent = 'Only the event'
export const allAttempts = 'Show all attempts'
export const allEvents = 'All events'
export const all = 'All'
export const recordedSince = 'Recorded since'
export const replayHint = {
  failed: 'Events that were never accepted. Without a time: all of them.',
  all: 'Also accepted events: your server must recognize them by their id.',
}
export const replayEveryFailed = 'Post all that failed'
export const replayFailed = 'Post all failed since then'
export const replayAll = 'Post all since then'
export const missed = 'To post what the endpoint missed, choose “All events”. It was disabled'
export const replayed = (events: number) =>
  events === 0 ? 'There are no such events.' : `${count(events, 'event is', 'events are')} posted again.`
export const attempts = 'Attempts'
export const noStatus = 'no response'
export const goneEvent = 'an event that the log no longer has'
export const attemptNumber = (attempt: number, ms: number) => `attempt ${attempt}, ${number.format(ms)} ms`
export const event = 'Event'
export const response = 'Response'
export const emptyResponse = '(empty)'
export const lag = (ms: number) => `An event has waited for ${shortDuration(Math.round(ms / 1_000) * 1_000)}.`
export const next = 'next attempt'
export const request = 'Request'
export const headers = 'Address and headers'
export const body = 'Body'
export const goneRequest = 'The log no longer has the event.'
export const checkSignature = 'Check the signature'
export const signatureHint =
  'Replace the dots with the secret. If the header webhook-signature contains what the command prints, the request is from Herald.'
export const resend = 'Post this event again'
export const resent = 'It is posted again.'
