import { count, number } from './numbers.ts'

// The words of the overview.

const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' })

export const newNote = 'the first steps'
export const counts = { accepted: 'Accepted', sent: 'Sent', delivered: 'Delivered', read: 'Read', failed: 'Failed' }
export const today = 'Single messages today so far (UTC)'
export const lastWeek = (value: number, day: string) => `${number.format(value)} on ${weekday.format(new Date(day))}, the whole day`
export const history = 'Single messages of the last 14 days (UTC)'
export const funnel = 'How far single messages of these 14 days got'
export const bySms = 'Delivered by SMS'
export const failures = 'Why messages failed'
export const noFailures = 'No message failed.'
export const ofLast = (messages: number) => `Of the last ${count(messages, 'failed message')}.`
export const campaigns = 'Running campaigns'
export const noCampaigns = 'No campaign is running.'
export const processed = (value: number, all: number) => `${number.format(value)} of ${number.format(all)} processed`
