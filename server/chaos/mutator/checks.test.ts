import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../test/support/until.ts'
import { isClean, runChecks } from '../checks/checks.ts'
import { type History, readRows, type Sources } from '../history/history.ts'
import { readRowsOfMessages } from '../history/messages.ts'
import { readLogErrors } from '../history/processes.ts'
import type { ApiResponse } from '../load/caller.ts'
import { MESSAGE, type Requested, type RequestedMessage, recordResponse } from '../load/requested.ts'
import { type Finished, runScript } from '../run.ts'
import type { Cleanup } from '../support/cleanup.ts'
import { createDatabaseServer } from '../topology/database.ts'
import { CALL, comeAgain, fault, forget, MUTATIONS, submittedAt } from './mutations.ts'
import { ROW_MUTATIONS } from './row-mutations.ts'
import { SAMPLE, SCRIPTED_MUTATIONS } from './scripted-mutations.ts'

// All checks pass on a small run without faults, and each of them fails when the mutator has changed one record.

const ENOUGH = 250
const TIMEOUT_MS = 300_000
const LOAD = { seed: 1, rate: 50, campaigns: 2, campaignEveryMs: 500, people: 30 }
/** Long ago, and of no process that exists. */
const NO_FAULT = { target: 'nothing', manner: 'killed', from: 0, frozenMs: 0, to: 0 }

const dir = mkdtempSync(join(tmpdir(), 'herald-mutator-'))
const cleanup: Cleanup = [() => rmSync(dir, { recursive: true, force: true })]
async function cleanUp(): Promise<void> {
  for (const end of cleanup.splice(0).toReversed()) await end()
}
after(cleanUp)

async function runWithoutFaults(): Promise<Finished> {
  const database = await createDatabaseServer(join(dir, 'database'))
  cleanup.push(() => database.stop())
  await database.start()
  const place = { dir, cleanup, databaseUrl: database.url, databaseLog: () => database.logFile }
  return await runScript(
    { ...place, load: LOAD, required: [] },
    {
      during: async ({ tenants, faults, scripted }) => {
        faults.push(NO_FAULT)
        Object.assign(scripted, SAMPLE)
        const count = () => tenants.reduce((sum, { requested }) => sum + requested.messages.length, 0)
        await until('enough is requested', () => count() >= ENOUGH, TIMEOUT_MS)
      },
    },
  )
}

// The runner does not call hooks if this fails.
const { run, records, history } = await runWithoutFaults().catch(async (error: unknown) => {
  await cleanUp()
  throw error
})

function failedChecks(checked: History): string[] {
  return runChecks(checked)
    .filter(({ wrong }) => wrong.length > 0)
    .map(({ check }) => check)
}

test('all checks pass on a run without faults', () => {
  const results = runChecks(history)
  assert.deepEqual(
    results.flatMap(({ wrong }) => wrong),
    [],
  )
  assert.ok(isClean(results))
})

const ALL_MUTATIONS = { ...MUTATIONS, ...SCRIPTED_MUTATIONS }

for (const [check, mutations] of Object.entries(ALL_MUTATIONS)) {
  for (const { what, apply } of mutations) {
    test(`"${check}" fails: ${what}`, () => {
      const mutated = structuredClone(history)
      apply(mutated)
      assert.ok(failedChecks(mutated).includes(check), `only these fail: ${failedChecks(mutated).join(', ')}`)
    })
  }
}

/** The history with what this connection reads from the database. */
async function readAgain(db: Sources['pool']): Promise<History> {
  const shownOf = new Map(history.messages.map(({ id, shown }) => [id, shown]))
  const messages = (await readRowsOfMessages(db)).map((row) => ({ ...row, shown: shownOf.get(row.id) ?? { status: 'none' } }))
  return { ...structuredClone(history), messages, ...(await readRows({ pool: db, tenants: records, ask: run.network.ask })) }
}

/** In a transaction that is rolled back: the service sees nothing of it. */
async function mutateRows(statements: string[]): Promise<{ mutated: History; ids: string[] }> {
  const client = await run.checkPool.connect()
  try {
    await client.query('begin')
    const ids: string[] = []
    for (const statement of statements) {
      const { rows, command, rowCount } = await client.query<{ id: string }>(statement)
      assert.ok(command === 'CREATE' || rowCount !== 0, `no row was changed by ${statement}`)
      ids.push(...rows.map(({ id }) => id))
    }
    return { mutated: await readAgain(client), ids }
  } finally {
    await client.query('rollback')
    client.release()
  }
}

for (const { what, checks, statements } of ROW_MUTATIONS) {
  test(`checks of rows fail: ${what}`, async () => {
    const { mutated, ids } = await mutateRows(statements)
    assert.deepEqual(new Set(checks).difference(new Set(failedChecks(mutated))), new Set(), 'these pass')
    const sentences = runChecks(mutated).flatMap(({ check, wrong }) => (checks.includes(check) ? wrong : []))
    assert.ok(ids.length === 0 || sentences.join().includes(ids[0] as string), `no sentence names ${ids[0]}`)
  })
}

test('every mutated row is restored', async () => {
  assert.deepEqual(failedChecks(await readAgain(run.checkPool)), [])
})

test('every check has a mutation', () => {
  const byRows = ROW_MUTATIONS.flatMap(({ checks }) => checks)
  assert.deepEqual(new Set(runChecks(history).map(({ check }) => check)), new Set([...Object.keys(ALL_MUTATIONS), ...byRows]))
})

test('a check with nothing to compare fails', () => {
  const none = { compared: 0, wrong: [] }
  const empty: History = {
    ...Object.fromEntries(Object.entries(history).map(([name, value]) => [name, Array.isArray(value) ? [] : value])),
    requested: { messages: [], campaigns: [], unexpected: [] },
    ...{ rules: none, counters: none, statusCounts: none, emitted: none, remaining: {} },
    processes: { running: 0, endedByItself: [], silent: [], logs: 0, lines: [], errors: [] },
    scripted: { counters: none, outages: [], halts: [], stops: [], shares: [], failovers: [] },
  } as never
  assert.deepEqual(
    runChecks(empty).filter(({ wrong }) => wrong.length === 0),
    [],
  )
})

test('a deviation that a fault explains passes the checks', () => {
  const mutated = structuredClone(history)
  comeAgain(1).apply(mutated)
  forget(2).apply(mutated)
  const repeatedAt = mutated.received[0]?.endpoints[0]?.arrivals.at(-1)?.at ?? 0
  const [one = 0, other = 0] = submittedAt(mutated)
  const call = { ...CALL, nodeUrl: mutated.addresses['api-1'] as string }
  mutated.calls.push(
    call,
    { ...call, sentAt: 50_000, respondedAt: 50_010, status: 503 },
    { ...call, sentAt: 90_000, respondedAt: 90_030, timeoutMs: 30 },
    { ...call, sentAt: 120_000, respondedAt: 125_900 },
  )
  mutated.stalls.push({ from: 122_000, to: 127_000 })
  mutated.faults = [
    fault('api-1', 2_000, 3_000),
    fault('database', 46_000, 48_000),
    fault('webhooks-1', repeatedAt + 100, repeatedAt + 5_000),
    fault('delivery-1', one + 100, one + 9_000),
    fault('network', other - 9_000, other + 100, 9_000),
  ]
  const line = { level: 'error', time: new Date(other), msg: 'failed to get an access token; will retry with each message' }
  mutated.processes.errors.push(...readLogErrors('api-1', [JSON.stringify(line)]))
  const woken = { ...line, time: new Date(200_010) }
  mutated.faults.push(fault('delivery-2', 170_000, 200_000, 30_000))
  mutated.processes.errors.push(...readLogErrors('delivery-2', [JSON.stringify(woken)]))
  const checks = [
    'every request has a response, unless a fault explains it',
    'no SMS is submitted twice, and unknown outcomes are explained',
    'an event comes again only if a fault explains it',
    'logs have no error that a fault does not explain',
  ]
  const results = runChecks(mutated).filter(({ check }) => checks.includes(check))
  assert.deepEqual([results.length, results.flatMap(({ wrong }) => wrong)], [checks.length, []])
})

const LATE = { status: 400, body: { details: [{ path: '/expiresAt' }] } }
const FAR = Date.now() + 1e9
for (const [what, canExpire, response] of [
  ['a 500', false, { status: 500 }],
  ['a rejection as too late before its expiry', true, { ...LATE, respondedAt: 0 }],
  ['a rejection as too late without an expiry', false, { ...LATE, respondedAt: FAR }],
  ['an acceptance after its expiry', true, { status: 202, body: { messageId: randomUUID() }, sentAt: FAR }],
] as [string, boolean, Partial<ApiResponse>][]) {
  test(`records ${what} as unexpected`, () => {
    const requested: Requested = { messages: [], campaigns: [], unexpected: [] }
    const one = history.requested.messages.find(({ body }) => (body.expiresAt !== undefined) === canExpire) as RequestedMessage
    const usual = { status: 500, body: {}, isReplayed: false, sentAt: 0, respondedAt: 0 }
    recordResponse(requested, { ...one, outcome: 'unanswered' }, { ...usual, ...response }, MESSAGE)
    assert.equal(requested.unexpected.length, 1)
  })
}
