import { fail, schemas } from './en-health.ts'
import { number, shortDuration } from './numbers.ts'

// The words of the page Health for what is wrong.

const WAITS = 'Its messages wait; Herald tries again by itself.'

/** What is wrong, and what to do about it. */
export type Told = readonly [text: string, advice: string]

export const noDatabase: Told = ['The database is out of reach.', 'Herald accepts and sends nothing. Check that PostgreSQL runs.']
export const noSession = (name: string): Told => [
  `The network ${name} is lost: no session is bound.`,
  `${WAITS} Check the network’s server, address and password.`,
]
export const paused = (name: string, open: number, nodes: number): Told => [
  `The network ${name} is lost: ${open === nodes ? 'Herald pauses its' : `${open} of ${nodes} processes pause their`} requests after failures.`,
  `${WAITS} Contact the network, and check its credentials.`,
]
export const mostFail = (name: string, unsure: number, calls: number): Told => [
  `${number.format(unsure)} of ${number.format(calls)} calls to the network ${name} had to be repeated in the last five minutes.`,
  'If it continues, contact the network.',
]
export const lostNode = (name: string): Told => [`The process ${name} is lost.`, 'Look at its log, and start it again.']
export const noRole = { delivery: 'No process delivers messages.', webhooks: 'No process posts events to webhooks.' }
export const startRole = (role: string) => `Start one: npx herald serve --only ${role}`
export const busyNode = (name: string, ms: number): Told => [
  `The process ${name} is overloaded: its work is ${shortDuration(ms)} late.`,
  'Add a process, or give this one more CPU.',
]
export const crowdedPool = (name: string): Told => [
  `In the process ${name}, requests wait for a database connection.`,
  'If it lasts, look for slow statements.',
]
export const noStandby = (missing: number, commitsWait: boolean): Told => [
  `${missing === 1 ? 'The database’s standby is lost' : `${number.format(missing)} standbys of the database are lost`}${commitsWait ? ', and every commit waits' : ''}.`,
  commitsWait
    ? 'Herald accepts nothing. Start the standby, or remove it from synchronous_standby_names.'
    : 'Start the standby again. If you removed it, drop its replication slot.',
]
export const schema = (state: keyof typeof schemas): Told => [
  `The schema of the database is ${schemas[state]}.`,
  state === 'newer' ? 'Update Herald.' : 'Run: npx herald migrate',
]
export const late = (what: string, since: string): Told => [`${what} have been due for ${since}.`, 'Look at the networks and processes.']
export const lateWebhooks = (since: string): Told => [
  `Webhook events have been due for ${since}.`,
  'If no endpoint fails, add a process that posts webhooks.',
]
export const lateEvents = (since: string): Told => [`The event log is ${since} behind.`, 'Look for a long transaction in the database.']
export const failingEndpoints = (endpoints: number): Told => [`${fail(endpoints)}.`, 'The accounts page shows whose.']
