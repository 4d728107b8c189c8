import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { appendFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLedger } from '../src/phones/ledger.ts'
import { createMessages, type Message } from '../src/phones/messages.ts'
import { viewPhone } from '../src/phones/view.ts'
import { createOwed } from '../src/state/owed.ts'
import { openStore } from '../src/state/store.ts'
import { spawnSimulator, startProcess } from './support/process.ts'
import { createDataDir, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const text = { contentMessage: { text: 'Hello' } }
const NEVER_MS = 3_600_000
const body = JSON.stringify(text)

/** The state of a directory, without the network. */
async function openState(dataDir: string, snapshotEvery?: number) {
  const store = await openStore(dataDir, snapshotEvery)
  const messages = createMessages(store, createLedger(store))
  const webhooks = createOwed<string>(store, 'webhooks', () => {})
  const accept = (phone: string, messageId: string): Message =>
    messages.add({ kind: 'accepted', channel: 'rcs', phone, messageId, origin: 'agent' }, { body, expiresAt: null })
  return { store, messages, webhooks, accept }
}

const phoneOf = (index: number): string => `+4850${String(index % 5_000).padStart(5, '0')}10`

test('drops a truncated batch and keeps the batches before it', async () => {
  const dataDir = createDataDir()
  const log = `${dataDir}/simulator.log`
  const first = await openState(dataDir)
  first.accept('+48500800110', 'one')
  await first.store.committed()
  const { size } = statSync(log)
  // Two records of one turn.
  const message = first.accept('+48500800110', 'two')
  first.messages.note(message, { kind: 'delivered' })
  first.store.close()
  const whole = readFileSync(log)
  for (const torn of [size + 1, whole.length - 1, whole.lastIndexOf('\n', whole.length - 3) + 1, size]) {
    writeFileSync(log, whole)
    truncateSync(log, torn)
    const next = await openState(dataDir)
    assert.deepEqual([next.messages.withId('one').length, next.messages.withId('two').length], [1, 0])
    assert.deepEqual(Object.fromEntries(next.store.state.counts), { accepted: 1 })
    assert.equal(statSync(log).size, size)
    next.store.close()
  }
})

test('rejects a damaged log, and one of another version, with a message', async () => {
  const dataDir = createDataDir()
  const first = await startTestSimulator({ dataDir })
  await first.stop()
  const log = `${dataDir}/simulator.log`
  const assertRejected = async (message: RegExp) => {
    const { output, ended } = spawnSimulator(['--data-dir', dataDir])
    assert.equal(await ended, 1)
    assert.match(output.stderr, message)
  }
  appendFileSync(log, 'nonsense\n\n{"is":"setting","name":"x","value":"y"}\n\n')
  await assertRejected(/^The state in .* can't be opened: simulator\.log is damaged at byte \d+; move it away .*\.\n$/)
  writeFileSync(log, '{"is":"log","version":2,"name":"x"}\n\n')
  await assertRejected(/^The state in .* can't be opened: simulator\.log is of another version .*\.\n$/)
})

test('leaves a database of an older version alone, and says that it starts empty', async () => {
  const dataDir = createDataDir()
  writeFileSync(`${dataDir}/simulator.db`, 'SQLite format 3')
  const { client, output, child, ended } = await startProcess(['--data-dir', dataDir])
  assert.deepEqual((await client.call('GET', '/simulator/phones')).body.phones, [])
  assert.match(output.stderr, /simulator\.db is of an older version and is not read: the simulator starts with an empty state\.\n$/)
  assert.equal(readFileSync(`${dataDir}/simulator.db`, 'utf8'), 'SQLite format 3')
  child.kill('SIGTERM')
  await ended
})

test('ignores a message id from before a restart, and shows what the phone received', async () => {
  const dataDir = createDataDir()
  const first = await startTestSimulator({ dataDir })
  const messageId = randomUUID()
  await first.sendMessage('+48500800210', messageId, text)
  await until('it is read', async () => (await first.phone('+48500800210'))[0].readAt)
  const before = await first.phone('+48500800210')
  await first.stop()
  const second = await startTestSimulator({ dataDir, delayMs: NEVER_MS })
  assert.deepEqual(await second.phone('+48500800210'), before)
  assert.equal((await second.sendMessage('+48500800210', messageId, text)).status, 200)
  assert.equal((await second.sendMessage('+48500800310', messageId, text)).status, 200)
  const after = await second.phone('+48500800210')
  assert.deepEqual(after, [{ ...before[0], attempts: 3 }])
  assert.deepEqual(await second.phone('+48500800310'), [])
  const repeated = (await second.ledger()).filter(({ kind }) => kind === 'repeated').map(({ phone }) => phone)
  assert.deepEqual(repeated, ['+48500800210', '+48500800310'])
})

test('delivers a message once if it was delivered by hand before its step, also after a restart', async () => {
  const dataDir = createDataDir()
  const first = await startTestSimulator({ dataDir, delayMs: 300 })
  const webhook = await startWebhook()
  await first.setWebhook(webhook.url)
  const [early, late] = [randomUUID(), randomUUID()]
  await first.sendMessage('+48500800401', early, text)
  assert.deepEqual((await first.call('POST', '/simulator/phones/+48500800401/deliver', {})).body, { delivered: [early] })
  await first.sendMessage('+48500800501', late, text)
  await first.call('POST', '/simulator/phones/+48500800501/deliver', { messageId: late })
  await first.stop()
  const second = await startTestSimulator({ dataDir, delayMs: 300 })
  await second.settled()
  assert.equal((await second.counts()).delivered, 2)
})

test('has the same state from a snapshot as from a replay of the whole log', async () => {
  const dataDir = createDataDir()
  const snapshot = `${dataDir}/simulator.snapshot`
  const first = await openState(dataDir, 20_000)
  for (let index = 0; index < 2_000; index++) {
    const message = first.accept(phoneOf(index), `id-${index}`)
    if (index % 3 === 0) first.messages.note(message, { kind: 'delivered' })
    first.webhooks.add(`event-${index}`, index)
    if (index % 2 === 0) first.webhooks.paid(index + 1)
    if (index % 50 === 0) await first.store.committed()
  }
  first.webhooks.again(2, 77)
  await first.store.committed()
  first.store.close()
  assert.equal(statSync(snapshot).mode & 0o777, 0o600)
  const bySnapshot = await openState(dataDir)
  bySnapshot.store.close()
  rmSync(snapshot)
  const byReplay = await openState(dataDir)
  byReplay.store.close()
  assert.deepEqual(bySnapshot.store.state, first.store.state)
  assert.deepEqual(byReplay.store.state, first.store.state)
  assert.equal(byReplay.store.state.owed.webhooks.debts.size, 1_000)
  // A snapshot that is unreadable, or of another log, is ignored.
  writeFileSync(snapshot, 'nonsense')
  const again = await openState(dataDir)
  assert.deepEqual(again.store.state, first.store.state)
  again.store.close()
})

test('needs at most 16 bytes of memory for each finished message, and finds each', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { store, messages, webhooks, accept } = await openState(createDataDir())
  let sent = 0
  async function send(count: number): Promise<number> {
    for (const to = sent + count; sent < to; sent++) {
      const message = accept(phoneOf(sent), `id-${sent}`)
      messages.note(message, { kind: 'delivered' })
      webhooks.add('x'.repeat(300), 0)
      if (sent % 100 !== 99) continue
      await store.committed()
      for (let next = webhooks.next(); next !== undefined; next = webhooks.next()) webhooks.paid(next.id)
    }
    await store.committed()
    assert.equal(store.state.owed.webhooks.debts.size, 0)
    collect()
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const half = 60_000
  const before = await send(half)
  const each = ((await send(half)) - before) / half
  assert.ok(each <= 16, `${each} bytes for each message`)
  for (const index of [0, half, sent - 1]) {
    assert.deepEqual(
      messages.withId(`id-${index}`).map(({ phone }) => phone),
      [phoneOf(index)],
    )
  }
  assert.equal(messages.of('agent', `id-${sent}`), undefined)
  assert.equal(viewPhone(messages, phoneOf(0), 0, 1_000).messages.length, sent / 5_000)
  store.close()
})

test('reads pending posts that memory does not hold from the log, in order', async () => {
  const { store, webhooks } = await openState(createDataDir())
  const count = 20_500
  for (let index = 0; index < count; index++) webhooks.add(`event-${index}`, index)
  await store.committed()
  const rows: string[] = []
  for (let next = webhooks.next(); next !== undefined; next = webhooks.next()) rows.push(next.row)
  assert.deepEqual(
    rows,
    Array.from({ length: count }, (_, index) => `event-${index}`),
  )
  store.close()
})
