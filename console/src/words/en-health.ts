import { count, number, shortDuration } from './numbers.ts'

const SCHEMAS = { empty: 'empty', behind: 'older than this process', current: 'current', newer: 'newer than this process' }

const WAITS = 'Its messages wait; Herald tries again by itself.'

/** What is wrong, and what to do about it. */
export type Told = readonly [text: string, advice: string]

const fail = (endpoints: number) => `${count(endpoints, 'webhook endpoint')} ${endpoints === 1 ? 'fails' : 'fail'}`

/** The words of the page. */
export const health = {
  healthy: 'Healthy',
  warned: (troubles: number) => `${number.format(troubles)} things need a look`,
  ill: (troubles: number) => (troubles === 1 ? 'Something is wrong' : `${number.format(troubles)} things are wrong`),
  badge: (troubles: number) => count(troubles, 'trouble'),
  stale: 'These are the last figures that arrived.',
  troubles: {
    noDatabase: ['The database is out of reach.', 'Herald accepts and sends nothing. Check that PostgreSQL runs.'] as Told,
    noSession: (name: string): Told => [
      `The network ${name} is lost: no session is bound.`,
      `${WAITS} Check the network’s server, address and password.`,
    ],
    paused: (name: string, open: number, nodes: number): Told => [
      `The network ${name} is lost: ${open === nodes ? 'Herald pauses its' : `${open} of ${nodes} processes pause their`} requests after failures.`,
      `${WAITS} Ask the network, and check its credentials.`,
    ],
    mostFail: (name: string, unsure: number, calls: number): Told => [
      `${number.format(unsure)} of ${number.format(calls)} calls to the network ${name} had to be repeated in the last five minutes.`,
      'If it goes on, ask the network.',
    ],
    lostNode: (name: string): Told => [`The process ${name} is lost.`, 'Look at its log, and start it again.'],
    noRole: { delivery: 'No process delivers messages.', webhooks: 'No process posts events to webhooks.' },
    startRole: (role: string) => `Start one: npx herald serve --only ${role}`,
    busyNode: (name: string, ms: number): Told => [
      `The process ${name} is overloaded: its work is ${shortDuration(ms)} late.`,
      'Add a process, or give this one more CPU.',
    ],
    crowdedPool: (name: string): Told => [
      `In the process ${name}, requests wait for a database connection.`,
      'If it lasts, look for slow statements.',
    ],
    noStandby: (missing: number, commitsWait: boolean): Told => [
      `${missing === 1 ? 'The database’s standby is lost' : `${number.format(missing)} standbys of the database are lost`}${commitsWait ? ', and every commit waits for it' : ''}.`,
      commitsWait
        ? 'Herald accepts nothing. Start the standby, or remove it from synchronous_standby_names.'
        : 'Start the standby again. If you removed it, drop its replication slot.',
    ],
    schema: (state: keyof typeof SCHEMAS): Told => [
      `The schema of the database is ${SCHEMAS[state]}.`,
      state === 'newer' ? 'Update Herald.' : 'Run: npx herald migrate',
    ],
    late: (what: string, since: string): Told => [`${what} have been due for ${since}.`, 'Look at the networks and processes.'],
    lateWebhooks: (since: string): Told => [
      `Webhook events have been due for ${since}.`,
      'If no endpoint fails, add a process that posts webhooks.',
    ],
    lateEvents: (since: string): Told => [`The event log is ${since} behind.`, 'Look for a long transaction in the database.'],
    failingEndpoints: (endpoints: number): Told => [`${fail(endpoints)}.`, 'The accounts page shows whose.'],
  },
  queues: {
    title: 'Queues',
    messages: 'Oldest due message',
    sms: 'Oldest due SMS',
    events: 'Event lag',
    webhooks: 'Webhook backlog',
    nothing: 'none',
    due: (due: number) => (due >= 1_000 ? '1,000 or more due' : `${due} due`),
    eventsHint: 'from a change to its event',
    fail,
  },
  carriers: {
    title: 'Networks',
    none: 'No process delivers to a network.',
    works: 'works',
    lost: 'lost',
    struggles: 'repeats calls',
    sessions: 'Sessions',
    circuit: 'Circuit',
    closed: 'closed',
    open: (open: number, nodes: number) => `open in ${open} of ${nodes}`,
    outcomes: 'Calls in the last five minutes',
    noCalls: 'none',
    outcome: {
      failed: 'refused',
      retry: 'repeated',
      unknown: 'without response',
      'not-tried': 'paused',
      accepted: 'revocation accepted',
      'too-late': 'revocation too late',
    } as Record<string, string>,
  },
  nodes: {
    title: 'Processes',
    states: { live: 'live', lost: 'lost', replaced: 'replaced' },
    roles: 'Roles',
    version: 'Version',
    started: 'Started',
    seen: 'Last seen',
    loopDelay: 'Loop delay',
    pools: 'Database connections',
    pool: { general: 'general', hot: 'messages' },
    waiting: (waiting: number) => `, ${number.format(waiting)} waiting`,
  },
  database: {
    title: 'Database',
    schema: 'Schema',
    schemas: SCHEMAS,
    migrations: 'Migrations',
    migration: (total: number, last: string) => `${total}, the last is ${last}`,
    hidden: 'hidden from Herald',
    standbys: 'Standbys',
    connected: (connected: number) => (connected === 0 ? 'none' : `${connected} connected`),
    missing: (missing: number) => `${missing} lost`,
    commitsWait: 'commits wait',
  },
}
