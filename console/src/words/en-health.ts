import { count, number } from './numbers.ts'

// The words of the page Health.

export const healthy = 'Healthy'
export const warned = (troubles: number) => `${number.format(troubles)} things need a look`
export const ill = (troubles: number) => (troubles === 1 ? 'Something is wrong' : `${number.format(troubles)} things are wrong`)
export const badge = (troubles: number) => count(troubles, 'problem')
export const stale = 'These are the last figures that arrived.'
export const queues = 'Queues'
export const dueMessage = 'Oldest due message'
export const dueSms = 'Oldest due SMS'
export const eventLag = 'Event lag'
export const backlog = 'Webhook backlog'
export const nothingDue = 'none'
export const due = (due: number) => (due >= 1_000 ? '1,000 or more due' : `${due} due`)
export const eventLagHint = 'from a change to its event'
export const fail = (endpoints: number) => `${count(endpoints, 'webhook endpoint')} ${endpoints === 1 ? 'fails' : 'fail'}`
export const carriers = 'Networks'
export const noCarriers = 'No process delivers to a network.'
export const works = 'works'
export const carrierLost = 'lost'
export const struggles = 'repeats calls'
export const sessions = 'Sessions'
export const circuit = 'Paused'
export const closed = 'no'
export const open = (open: number, nodes: number) => `in ${open} of ${nodes} processes`
export const outcomes = 'Calls in the last five minutes'
export const noCalls = 'none'
export const outcomeNames = {
  failed: 'refused',
  retry: 'repeated',
  unknown: 'without response',
  'not-tried': 'paused',
  accepted: 'revocation accepted',
  'too-late': 'revocation too late',
} as Record<string, string>
export const nodes = 'Processes'
export const nodeStates = { live: 'live', lost: 'lost', replaced: 'replaced' }
export const roles = 'Roles'
export const version = 'Version'
export const started = 'Started'
export const seen = 'Last seen'
export const loopDelay = 'Loop delay'
export const pools = 'Database connections'
export const poolNames = { general: 'general', hot: 'messages' }
export const waiting = (waiting: number) => `, ${number.format(waiting)} waiting`
export const database = 'Database'
export const schema = 'Schema'
export const schemas = { empty: 'empty', behind: 'older than this process', current: 'current', newer: 'newer than this process' }
export const migrations = 'Migrations'
export const migration = (total: number, last: string) => `${total}, the last is ${last}`
export const hidden = 'hidden from Herald'
export const standbys = 'Standbys'
export const connected = (connected: number) => (connected === 0 ? 'none' : `${connected} connected`)
export const missing = (missing: number) => `${missing} lost`
export const commitsWait = 'commits wait'
