import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/support/database.ts'
import { keyring } from '../../test/support/keyring.ts'
import { startTestService } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { type Evidence, gatherEvidence } from './evidence.ts'
import { ASKED } from './falsifications-asked.ts'
import { MESSAGES } from './falsifications-messages.ts'
import { NETWORK } from './falsifications-network.ts'
import { TOLD } from './falsifications-told.ts'
import { comeAgain, complain, endpointOf, first, forget, TRY, takenAtOf, upset } from './falsifying.ts'
import { namedAddress, watchLeases } from './leases.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import { USUAL_FAULTS } from './network.ts'
import { SHARED_SETTINGS } from './nodes.ts'
import { readLogFaults } from './processes.ts'
import type { Stored } from './stored.ts'
import { endTenancies, startTenants, stopLoads } from './tenants.ts'
import type { Disturbance } from './upsets.ts'
import { isClean, judge } from './verdict.ts'
import { createCallers } from './world.ts'

// The verdict on a small run that nobody disturbs is clean; and each of its lines says WRONG as soon as something is.

const SEED = 1
const ENOUGH = 250
const PEOPLE = 30
const PATIENCE_MS = 90_000

const { url, pool } = await createTestDatabase({ uncounted: 'counters are falsified here, to see that it is noticed' })
const simulator = await startSimulator()
// One process that does all of it: its name is of a role that takes receipts.
const settings = { ...SHARED_SETTINGS, HERALD_DATABASE_URL: namedAddress(url, 'api') }
const service = await startTestService(settings, { findCarriers: async () => simulator.settings })
await simulator.ask('faults', USUAL_FAULTS, 'PUT')
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
await watchLeases(pool)
const callers = await createCallers(pool, () => [service.url])
const judging = openForJudging(url)

/** Long ago, and of nobody who matters. */
const NOTHING: Disturbance = { victim: 'nobody', manner: 'killed', from: 0, frozenMs: 0, to: 0 }

async function runUndisturbed(): Promise<() => Promise<Evidence>> {
  const load = { seed: SEED, rate: 50, campaigns: 2, campaignEveryMs: 500, people: PEOPLE }
  const tenants = await startTenants({ pool, keyring, callers, ...load })
  const countAsked = () => tenants.reduce((sum, tenant) => sum + tenant.load.asked.messages.length, 0)
  await until('enough is asked for', () => countAsked() >= ENOUGH)
  await stopLoads(tenants)
  await untilNothingIsLeft(judging, simulator.ask, PATIENCE_MS)
  const tenancies = await endTenancies(tenants)
  const written = service.log().split('\n')
  const processes = { running: 1, endedByItself: [], silent: [], logs: 1, written, complaints: readLogFaults('service', written) }
  const rest = { seenBefore: [], processes, upsets: [NOTHING], stalls: [], essential: [], addresses: { api: service.url } }
  return () => gatherEvidence({ pool: judging, ask: simulator.ask, tenancies, ...rest })
}

const gather = await runUndisturbed()
const evidence = await gather()

function wrongLines(judged: Evidence): string[] {
  return judge(judged)
    .filter(({ wrong }) => wrong.length > 0)
    .map(({ promise }) => promise)
}

test('a run that nobody disturbs has a clean verdict', () => {
  assert.deepEqual(
    judge(evidence).flatMap(({ wrong }) => wrong),
    [],
  )
  assert.ok(isClean(judge(evidence)))
})

const FALSIFICATIONS = { ...ASKED, ...MESSAGES, ...NETWORK, ...TOLD }

for (const [promise, falsifications] of Object.entries(FALSIFICATIONS)) {
  for (const [what, falsify] of falsifications) {
    test(`"${promise}" is WRONG where it is: ${what}`, () => {
      const falsified = structuredClone(evidence)
      falsify(falsified)
      assert.ok(wrongLines(falsified).includes(promise), `only these are: ${wrongLines(falsified).join(', ')}`)
    })
  }
}

for (const [promise, statement, named] of [
  ['counters against rows', 'update report_counts set delivered = delivered + 1 where delivered > 0', undefined],
  ['counters against rows', `update campaign_counts set count = count + 1 where status = 'READ'`, undefined],
  ['events against changes', 'delete from events where position = (select min(position) from events) returning subject_id as id', 'id'],
] as const) {
  test(`"${promise}" is WRONG after ${statement}`, async () => {
    const { rows } = await pool.query<{ id: string }>(statement)
    const line = first(judge(await gather()), (one) => one.promise === promise)
    assert.notDeepEqual(line.wrong, [])
    if (named !== undefined) assert.ok(line.wrong.join().includes(first(rows).id), 'it names what is missing')
  })
}

test('every line of the verdict has something that makes it WRONG', () => {
  const byRows = ['counters against rows', 'events against changes']
  assert.deepEqual(new Set(judge(evidence).map(({ promise }) => promise)), new Set([...Object.keys(FALSIFICATIONS), ...byRows]))
})

test('a line that had nothing to compare is WRONG', () => {
  const none = { compared: 0, faults: [] }
  const empty: Evidence = {
    ...Object.fromEntries(Object.entries(evidence).map(([name, value]) => [name, Array.isArray(value) ? [] : value])),
    asked: { messages: [], campaigns: [], strange: [] },
    counted: none,
    campaignsCounted: none,
    changesTold: none,
    left: {},
    processes: { running: 0, endedByItself: [], silent: [], logs: 0, written: [], complaints: [] },
  } as never
  assert.deepEqual(
    judge(empty).filter(({ wrong }) => wrong.length === 0),
    [],
  )
})

test('what an upset explains is not WRONG', () => {
  const all = structuredClone(evidence)
  const repeatedAt = comeAgain(endpointOf(all))
  const [one, other] = forget(all, 2) as [Stored, Stored]
  all.tries.push(
    { ...TRY, nodeUrl: service.url, status: 0 },
    { ...TRY, nodeUrl: service.url, sentAt: 50_000, answeredAt: 50_010, status: 503 },
  )
  all.tries.push({ ...TRY, nodeUrl: service.url, sentAt: 90_000, answeredAt: 90_030, patienceMs: 30, status: 0 })
  all.tries.push({ ...TRY, nodeUrl: service.url, sentAt: 120_000, answeredAt: 125_900, status: 0 })
  all.stalls = [{ from: 122_000, to: 127_000 }]
  all.upsets = [
    upset('api', 2_000, 3_000),
    upset('database', 46_000, 48_000),
    upset('webhooks-1', repeatedAt + 100, repeatedAt + 5_000),
    upset('delivery-1', takenAtOf(all, one) + 100, takenAtOf(all, one) + 9_000),
    upset('network', takenAtOf(all, other) - 9_000, takenAtOf(all, other) + 100, 9_000),
  ]
  const time = new Date(takenAtOf(all, other)).toISOString()
  complain(all, JSON.stringify({ level: 'error', time, msg: 'the network gives us no access token; every message tries again' }))
  const promises = [
    'every request is answered, unless its node or the database is upset',
    'no SMS twice; unknown ones say so',
    'an event comes again only where an upset explains it',
    'logs have no fault that an upset does not explain',
  ]
  assert.deepEqual(
    judge(all).flatMap(({ promise, wrong }) => (promises.includes(promise) ? wrong : [])),
    [],
  )
})
