import { recipients } from './en-campaigns.ts'
import { count, listed, number, shortDuration } from './numbers.ts'

// The words of one campaign: how it goes, and what can be done with it.

const STILL_SENT = 'What is being sent right now still goes out.'
const hourAndMinute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const roughly = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

export const started = 'started'
export const retryOf = 'a retry of another campaign'
export const retriedBy = 'retried by another campaign'
export const report = 'Report'
export const handedOver = 'Handed over'
export const left = 'Left'
export const growing = 'and Herald still creates more'
export const rate = 'Rate'
export const rateOf = (perSecond: number) => roughly.format(perSecond)
export const rateNote = (limit: number) => (limit === Infinity ? 'a second' : `a second, the network allows ${number.format(limit)}`)
export const measuring = 'measuring…'
export const done = 'Done'
export const clock = (at: number) => hourAndMinute.format(at)
export const doneIn = (ms: number) => `in ${shortDuration(Math.ceil(ms / 60_000) * 60_000)}`
export const took = 'Took'
export const bySms = (value: number) => `${number.format(value)} by SMS`
export const minutes = 'Each minute'
export const noMinutes = 'Nothing happened in this hour.'
export const funnel = 'How far messages got'
export const steps = {
  sent: 'Sent',
  delivered: 'Delivered',
  read: 'Read',
  failed: 'Failed',
  clicked: 'Opened a link',
  replied: 'Replied',
  bySms: 'SMS sent',
}
export const why = 'Why they failed'
export const reason = 'Reason'
export const messages = 'Messages'
export const instead = 'Instead'
export const noSms = 'nothing sent'
export const smsWaiting = (value: number) => `${number.format(value)} wait for the SMS`
export const announced = (status: string, done: number, all: number, failed: number) =>
  `${status}: ${number.format(done)} of ${number.format(all)} messages handed over, ${number.format(failed)} failed.`
export const actionTexts = { pause: 'Pause', resume: 'Resume', cancel: 'Cancel…', retry: 'Retry failed…' }
export const actionTitles = {
  pause: 'Pause the campaign',
  resume: 'Resume the campaign',
  cancel: 'Cancel the campaign',
  retry: 'Send the failed messages again',
}
export const affected = (waiting: number, waitingSms: number, notCreated: number) =>
  listed([
    ...(waiting > 0 ? [count(waiting, 'message')] : []),
    ...(waitingSms > 0 ? [count(waitingSms, 'SMS', 'SMS')] : []),
    ...(notCreated > 0 ? [`up to ${count(notCreated, 'message')} not created yet`] : []),
  ]) || 'nothing'
export const actionBodies = {
  pause: (what: string) => `Herald holds ${what} back until you resume the campaign. ${STILL_SENT}`,
  resume: (what: string) => `Herald goes on to send ${what}.`,
  cancel: (what: string) => `Herald withdraws ${what}. ${STILL_SENT} This can’t be undone.`,
}
const atLeast = (value: number, isMore: boolean) => `${isMore ? 'at least ' : ''}${recipients(value)}`
export const retryBody = (value: number, isMore: boolean) =>
  `A new campaign sends the same content at once to ${atLeast(value, isMore)} whose message failed, even if an SMS reached them. A campaign can be retried only once; its retry can be retried again.`
export const withdrawn = (value: number, isMore: boolean) => `Also to ${atLeast(value, isMore)} whose message the cancellation withdrew`
export const keep = 'Leave it as it is'
