import { count } from './numbers.ts'

// The words of the sessions of a person.

export const title = 'Sessions'
export const none = 'No open session'
export const browserTitle = 'Where'
export const action = 'Action'
export const used = 'Last used'
export const thisOne = 'this session'
export const end = 'End'
export const endOf = (browser: string) => `End the session in ${browser}`
export const endAll = 'End all'
export const endOthers = 'End all others'
export const sure = 'All sessions end at once. The password stays.'
export const sureOthers = 'All sessions but this one end at once. The password stays.'
export const ended = (sessions: number) => `${count(sessions, 'session has', 'sessions have')} ended.`
export const browserOn = (browser: string, system: string) => `${browser} on ${system}`
export const unknown = 'another program'
