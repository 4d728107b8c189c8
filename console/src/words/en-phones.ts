import { count, isolated } from './numbers.ts'

const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

export const note = 'of the simulated network'
export const list = 'Phones'
export const add = 'Add a phone'
export const send = 'Send a message'
export const open = 'Open the phone'
export const none = 'No phone yet'
export const noneHint = 'Send a message to any number, or add a phone.'
export const notSimulated = 'There are no phones here'
export const notSimulatedHint = 'No agent of this account is in the simulated network.'
export const phoneNumber = 'Phone number'
export const numberHint = 'With its country code.'
export const numberWrong = 'Enter a number with its country code, such as +48500100200.'
export const endings = 'What the last two digits mean'
export const behaviours = {
  reads: 'gets and reads everything',
  neverReads: 'never reads',
  noRcs: 'no RCS, gets SMS',
  refused: 'the network refuses',
  off: 'switched off',
  busy: 'accepted at the third attempt',
  text: 'replies with a text',
  tap: 'taps the first button',
  noRcsNoSms: 'no RCS, and SMS fail',
  stop: 'writes STOP',
}
export const offline = 'offline'
export const nothing = 'nothing yet'
export const refused = 'A message was refused'
export const aFile = 'A file'
export const stage = 'The phone'
export const platform = 'Kind of phone'
export const android = 'Android'
export const iphone = 'iPhone (approximation)'
export const conversation = 'Conversation'
export const isOffline = (waiting: number) =>
  waiting === 0 ? 'Offline: it gets nothing.' : `Offline: ${count(waiting, 'message waits', 'messages wait')}.`
export const olderMissing = 'Older messages are not shown here.'
export const noSmsReply = 'Replies to an SMS can’t be sent here.'
export const onlyReads = 'Your role lets you see the phone, but not use it.'
export const opens = (kind: 'url' | 'call' | 'calendar' | 'map' | 'share-location' | 'reply', what: string) =>
  ({
    reply: '',
    url: `The phone opens ${what}`,
    call: `The phone calls ${what}`,
    calendar: `The phone adds “${what}” to its calendar`,
    map: `The phone shows ${what} on a map`,
    'share-location': 'The phone asks which location to share',
  })[kind]
export const write = 'Write a text'
export const sendText = 'Send'
export const sharePlace = 'Share a location'
export const share = 'Share'
export const latitude = 'Latitude'
export const longitude = 'Longitude'
export const degrees = (max: number) => `Enter a number from -${max} to ${max}.`
export const stop = 'STOP'
export const goOffline = 'Go offline'
export const goOnline = 'Go online'
export const saw = 'What Herald saw'
export const lastStep = (title: string, at: string) => `${title}, at ${seconds.format(new Date(at))}`
export const sawNothing = 'Nothing yet. Send a message to this phone.'
export const timeline = 'The whole timeline'
export const allMessages = 'All messages'
export const said = (step: string, text: string) => `${step} “${isolated(text)}”`
export const byHand = 'on the phone'
export const byItself = 'the phone, by itself'
export const onPhone = {
  tapped: (text: string) => `Tap on “${isolated(text)}”`,
  wrote: (text: string) => `Text “${isolated(text)}”`,
  place: 'Location shared',
  file: 'File sent',
}
export const webhook = (endpoint: string, status: number | undefined) =>
  status === undefined ? `${endpoint} did not respond` : `${endpoint} responded ${status}`
export const webhookNote = (type: string, attempt: number) => `webhook · ${type} · attempt ${attempt}`
export const faults = {
  button: (on: number) => (on === 0 ? 'Faults: none' : `Faults: ${on} on`),
  title: 'Faults of the simulated network',
  hint: 'They apply to all accounts until you end them.',
  others: (names: string) => `Also on: ${names}.`,
  end: 'End all faults',
  names: {
    slow: 'Takes three seconds longer',
    serverError: 'Refuses with 503',
    tooMany: 'Refuses with 429',
    lost: 'Loses receipts and replies',
    duplicated: 'Reports everything twice',
    smsRefused: 'Accepts no SMS',
    smsLost: 'Loses receipts of SMS',
  },
}
