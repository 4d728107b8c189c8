import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { connectEsme } from './support/esme.ts'
import { spawnSimulator, startProcess } from './support/process.ts'
import { createDataDir } from './support/simulator.ts'
import { until } from './support/until.ts'

const text = { contentMessage: { text: 'x'.repeat(1500) } }
const NEVER = '3600000'

test('exits with a message if its state cannot be written, and has all that it accepted after a restart', async () => {
  const dataDir = createDataDir()
  const options = ['--data-dir', dataDir, '--delay-ms', NEVER]
  const first = await startProcess(options, 4000)
  const esme = await connectEsme(first.client.carriers)
  await esme.bind('transmitter')
  const accepted = { rcs: [] as string[], sms: [] as string[] }
  const sendOn = async () => {
    while (first.child.exitCode === null) {
      const messageId = randomUUID()
      if ((await first.client.sendMessage('+48500700110', messageId, text)).status === 200) accepted.rcs.push(messageId)
    }
  }
  const submitOn = async () => {
    while (!esme.state.closed) accepted.sms.push(await esme.submitted({ destination_addr: '48500700111' }))
  }
  void submitOn()
  await Promise.allSettled([sendOn(), sendOn(), sendOn()])
  assert.equal(await first.ended, 1)
  assert.match(first.output.stderr, /^The state in .* can't be written, so the simulator ends: .*\.\n$/)
  assert.ok(accepted.rcs.length > 20 && accepted.sms.length > 20)

  const second = await startProcess(options)
  const ids = async (phone: string) => (await second.client.phone(phone)).flatMap(({ messageId, messageIds }) => messageIds ?? [messageId])
  assert.deepEqual(new Set(accepted.rcs).difference(new Set(await ids('+48500700110'))), new Set())
  assert.deepEqual(new Set(accepted.sms).difference(new Set(await ids('+48500700111'))), new Set())
  const next = await connectEsme(second.client.carriers)
  await next.bind('transmitter')
  const id = await next.submitted({ destination_addr: '48500700111' })
  assert.equal(accepted.sms.includes(id), false)
  const { owed: _, ...totals } = await second.client.counts()
  const kinds = Map.groupBy(await second.client.ledger(), ({ kind }) => kind).entries()
  assert.deepEqual(totals, Object.fromEntries(kinds.map(([kind, entries]) => [kind, entries.length])))
  next.session.destroy()
})

test('exits with a message if the disk is full at the start', async () => {
  const tries = [0, 2].map(async (blocks) => {
    const dataDir = createDataDir()
    const { output, ended } = spawnSimulator(['--data-dir', dataDir], blocks)
    assert.equal(await ended, 1)
    await until('it says so', () => output.stderr !== '')
    assert.match(output.stderr, /^The state in .* can't be (opened|written).*\.\n$/)
  })
  await Promise.all(tries)
})
