import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Health, HealthNode } from '../src/pages/health/health-types.ts'
import { statesOf } from '../src/pages/health/lost-nodes.ts'
import { troublesOf } from '../src/pages/health/troubles.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

// journeys/healthy.test.ts loses a real standby, a real process and a real network.

const herald = await startHerald()
const cookie = await herald.signIn('operator')
const CHECKED_AT = '2027-01-31T10:00:00.000Z'
const ago = (seconds: number) => new Date(Date.parse(CHECKED_AT) - seconds * 1_000).toISOString()

const NODE: HealthNode = {
  nodeId: 'a',
  host: 'one',
  pid: 1,
  roles: ['api', 'delivery', 'webhooks'],
  version: '0.1.0',
  startedAt: ago(600),
  seenAt: ago(2),
  loopDelayMs: 3,
  pools: [{ name: 'hot', busy: 1, max: 8, waiting: 0 }],
}
const NOTHING = { due: 0, oldestDueAt: null, oldestMs: null }
const CARRIER = { name: 'simulator', kind: 'rcs' as const, nodes: 1, sessions: null, openCircuits: 0, outcomes: { sent: 40 } }
const WELL: Health = {
  checkedAt: CHECKED_AT,
  nodes: [NODE],
  carriers: [CARRIER],
  queue: NOTHING,
  smsQueue: NOTHING,
  webhooks: { ...NOTHING, failing: 0 },
  events: { behindMs: 40 },
  database: {
    version: '18.4',
    schema: 'current',
    lastMigration: '0016_standbys',
    migrations: 16,
    clockDifferenceMs: 0,
    standbys: { connected: 1, missing: 0, commitsWait: false },
  },
}

/** The sentences about this health, with their tones. */
const said = (changes: Partial<Health>) => troublesOf({ ...WELL, ...changes }).map(({ tone, text }) => `${tone}: ${text}`)

test('nothing is wrong if all figures are well', () => {
  assert.deepEqual(said({}), [])
  assert.deepEqual(said({ queue: { due: 3, oldestDueAt: ago(9), oldestMs: 9_000 } }), [], 'messages wait for some seconds')
})

test('the health names a lost network, whether it has sessions or a circuit', () => {
  assert.deepEqual(said({ carriers: [{ ...CARRIER, kind: 'sms', sessions: 0 }] }), [
    'bad: The network simulator is lost: no session is bound.',
  ])
  assert.deepEqual(said({ carriers: [{ ...CARRIER, openCircuits: 1 }] }), [
    'bad: The network simulator is lost: Herald pauses its requests after failures.',
  ])
  assert.deepEqual(said({ carriers: [{ ...CARRIER, nodes: 3, openCircuits: 1 }] }), [
    'bad: The network simulator is lost: 1 of 3 processes pause their requests after failures.',
  ])
})

test('the health names a network most of whose calls are repeated, but not for a few calls', () => {
  assert.deepEqual(said({ carriers: [{ ...CARRIER, outcomes: { sent: 4, retry: 4, unknown: 2 } }] }), [
    'warn: 6 of 10 calls to the network simulator had to be repeated in the last five minutes.',
  ])
  assert.deepEqual(said({ carriers: [{ ...CARRIER, outcomes: { retry: 9 } }] }), [])
})

test('the health names a process that has been silent for more than seven seconds, by the clock of the database', () => {
  const other = { ...NODE, nodeId: 'b', host: 'two', pid: 2 }
  assert.deepEqual(said({ nodes: [NODE, { ...other, seenAt: ago(7) }] }), [])
  assert.deepEqual(said({ nodes: [NODE, { ...other, seenAt: ago(7.1) }] }), ['bad: The process two (2) is lost.'])
  const database = { ...WELL.database, clockDifferenceMs: -60_000 }
  assert.deepEqual(said({ database, nodes: [{ ...NODE, seenAt: ago(62) }] }), [], 'the clock of the database is a minute behind')
})

test('the health no longer names a lost process that another one has replaced', () => {
  const lost = { ...NODE, nodeId: 'b', seenAt: ago(60) }
  const later = { ...NODE, nodeId: 'c', startedAt: ago(50) }
  const statesBy = (...nodes: HealthNode[]) => [...statesOf({ ...WELL, nodes }).values()]
  assert.deepEqual(statesBy(NODE, lost), ['live', 'lost'], 'a process that ran beside it does not replace it')
  assert.deepEqual(statesBy(later, lost), ['live', 'replaced'])
  assert.deepEqual(statesBy(later, lost, { ...lost, nodeId: 'd' }), ['live', 'replaced', 'lost'], 'one replaces one')
  assert.deepEqual(statesBy({ ...later, roles: ['api'] }, lost), ['live', 'lost'])
})

test('the health names the roles that no live process has', () => {
  const nodes = [{ ...NODE, roles: ['api' as const] }]
  assert.deepEqual(said({ nodes }), ['bad: No process delivers messages.'], 'no event waits for a process that posts it')
  assert.deepEqual(said({ nodes, webhooks: { ...NOTHING, due: 1, failing: 0 } }), [
    'bad: No process delivers messages.',
    'bad: No process posts events to webhooks.',
  ])
})

test('the health names an overloaded process, and one without database connections', () => {
  const pools = [{ name: 'hot' as const, busy: 8, max: 8, waiting: 2 }]
  assert.deepEqual(said({ nodes: [{ ...NODE, loopDelayMs: 300, pools }] }), [
    'warn: The process one (1) is overloaded: its work is 300 ms late.',
    'warn: In the process one (1), requests wait for a database connection.',
  ])
})

test('the health names a lost standby, and says whether commits wait for it', () => {
  const lose = (missing: number, commitsWait: boolean) =>
    troublesOf({ ...WELL, database: { ...WELL.database, standbys: { connected: 0, missing, commitsWait } } })
  assert.equal(lose(1, false)[0]?.text, 'The database’s standby is lost.')
  assert.equal(lose(2, false)[0]?.text, '2 standbys of the database are lost.')
  assert.equal(lose(1, true)[0]?.text, 'The database’s standby is lost, and every commit waits.')
  assert.match(lose(1, true)[0]?.advice ?? '', /synchronous_standby_names/)
})

test('the health puts what is wrong before what only needs a look', () => {
  const late = (oldestMs: number) => ({ due: 5, oldestDueAt: ago(oldestMs / 1_000), oldestMs })
  assert.deepEqual(
    said({
      queue: late(20_000),
      smsQueue: late(90_000),
      webhooks: { ...late(61_000), failing: 2 },
      events: { behindMs: 30_000 },
      database: { ...WELL.database, schema: 'behind' },
    }),
    [
      'bad: SMS have been due for 1 min 30 s.',
      'bad: Webhook events have been due for 1 min 1 s.',
      'bad: The event log is 30 s behind.',
      'warn: The schema of the database is older than this process.',
      'warn: Messages have been due for 20 s.',
      'warn: 2 webhook endpoints fail.',
    ],
  )
})

const open = async () => {
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${herald.accountId}/health`)
  return opened
}
const verdict = (page: Page) => page.getByRole('region', { name: 'Health', exact: true })
/** The page gets this health from now on. */
const showing = (page: Page, health: Health) => page.route('**/admin/v1/health', (route) => route.fulfill({ json: health }))

test('shows the networks, the processes, the queues and the database', browserTest, async () => {
  await herald.send('+48500100200', { type: 'MESSAGE', content: 'Hello' })
  const { page, problems, close } = await open()
  // A busy machine may be a warning.
  await page.locator('.verdict:not(.tone-bad)').waitFor()
  const rcs = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'simulator', exact: true }) })
  await rcs.getByText('works', { exact: true }).waitFor()
  await rcs.getByText(/\d+ sent/).waitFor()
  const sms = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'simulator-sms' }) })
  await sms.getByText(/Sessions\s*1/).waitFor()
  const node = page.getByRole('listitem').filter({ hasText: String(process.pid) })
  await node.getByText('api, delivery, webhooks').waitFor()
  assert.equal(await node.getByRole('meter').count(), 2)
  await page.getByRole('region', { name: 'Queues' }).getByText('Oldest due message').waitFor()
  const { rows } = await herald.pool.query(
    `select current_setting('server_version') as version, max(name) as last, count(*) from schema_migrations`,
  )
  await page.getByText(`${rows[0].count}, the last is ${rows[0].last}`).waitFor()
  await page.getByText(rows[0].version, { exact: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('says the one thing that is wrong as a sentence, and several as a list', browserTest, async () => {
  const { page, problems, close } = await open()
  await showing(page, WELL)
  await verdict(page).getByRole('heading', { name: 'Healthy' }).waitFor()
  await page.unroute('**/admin/v1/health')
  const lost = { ...CARRIER, openCircuits: 1 }
  await showing(page, { ...WELL, carriers: [lost] })
  await verdict(page).getByRole('heading', { name: 'The network simulator is lost: Herald pauses its requests after failures.' }).waitFor()
  // Screen readers hear it, too.
  await page.locator('[role=status]', { hasText: 'The network simulator is lost' }).waitFor({ state: 'attached' })
  await page.unroute('**/admin/v1/health')
  await showing(page, {
    ...WELL,
    carriers: [lost],
    webhooks: { ...NOTHING, failing: 1 },
    nodes: [{ ...NODE, nodeId: 'b', seenAt: ago(30) }, NODE],
  })
  await verdict(page).getByRole('heading', { name: '2 things are wrong' }).waitFor()
  assert.equal(await verdict(page).getByRole('listitem').count(), 3)
  assert.deepEqual(problems, [])
  await close()
})

test('says that the database is out of reach, and then that Herald does not respond', browserTest, async () => {
  const { page, close } = await open()
  await showing(page, WELL)
  await verdict(page).getByRole('heading', { name: 'Healthy' }).waitFor()
  const body = { statusCode: 503, code: 'RCS_UNAVAILABLE', message: 'RCS_UNAVAILABLE', requestId: 'req_1' }
  await page.route('**/admin/v1/health', (route) => route.fulfill({ status: 503, json: body }))
  await verdict(page).getByRole('heading', { name: 'The database is out of reach.' }).waitFor()
  await page.getByText('These are the last figures that arrived.').waitFor()
  await page.unroute('**/admin/v1/health')
  await page.route('**/admin/v1/health', (route) => route.abort())
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  assert.equal(await page.locator('.verdict').count(), 0, 'old figures do not say that it is healthy')
  await page.unroute('**/admin/v1/health')
  await showing(page, WELL)
  await verdict(page).getByRole('heading', { name: 'Healthy' }).waitFor()
  await close()
})

test('an admin has neither the page nor its troubles', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto(`/console#/${herald.accountId}/health`)
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  assert.equal(await page.getByRole('link', { name: /^Health/ }).count(), 0)
  assert.deepEqual(problems, [])
  await close()
})
