import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { parseOptions, StartError } from '../src/options.ts'
import { connectEsme } from './support/esme.ts'
import { PROGRAM, spawnSimulator, startProcess } from './support/process.ts'
import { createDataDir, requestToken } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const text = { contentMessage: { text: 'Hello' } }
const byName = (one: string, other: string) => one.localeCompare(other)

test('loses no receipt and repeats no accepted one after kill -9', async () => {
  const dataDir = createDataDir()
  const webhook = await startWebhook()
  const first = await startProcess(['--data-dir', dataDir, '--delay-ms', '100'])
  const { sendMessage, counts, setWebhook } = first.client
  await setWebhook(webhook.url)

  // In every state: accepted by the webhook, refused by it, not delivered yet, and an SMS whose receipt no session takes.
  const accepted = randomUUID()
  await sendMessage('+48500600101', accepted, text)
  await until('the webhook accepts the first', async () => (await counts())['webhook-accepted'] === 1)
  webhook.status = 500
  const refused = randomUUID()
  await sendMessage('+48500600101', refused, text)
  await until('the second is refused', () => webhook.data().some(({ messageId }) => messageId === refused))
  const esme = await connectEsme(first.client.carriers)
  await esme.bind('transmitter')
  const smsId = await esme.submitted({ destination_addr: '48500600110' })
  const busy = randomUUID()
  assert.equal((await sendMessage('+48500600105', busy, text)).status, 503)
  const fresh = Array.from({ length: 20 }, () => randomUUID())
  await Promise.all(fresh.map((id) => sendMessage('+48500600110', id, text)))
  first.child.kill('SIGKILL')
  await first.ended

  // The webhook would otherwise accept a post from before only now, and the response be lost.
  await until('the webhook has responded to all posts', webhook.isIdle)
  webhook.status = 200
  const second = await startProcess(['--data-dir', dataDir, '--delay-ms', '100'])
  assert.deepEqual(second.ready, first.ready)
  assert.deepEqual(second.client.carriers, first.client.carriers)
  assert.equal((await second.client.counts()).accepted, 22)
  const receiver = await connectEsme(second.client.carriers)
  await receiver.bind('receiver')
  await receiver.receipt(smsId)
  // It has the address from its log. Registering it again would repeat the posts in progress.
  await second.client.settled()
  const receipts = (id: string) => webhook.accepted().flatMap((data) => (data.messageId === id ? data.eventType : []))
  assert.deepEqual(receipts(accepted), ['DELIVERED'])
  assert.deepEqual(receipts(refused), ['DELIVERED'])
  for (const id of fresh) assert.deepEqual(receipts(id).toSorted(byName), ['DELIVERED', 'READ'])
  // The first of the two refusals was before the restart.
  for (const status of [503, 200]) assert.equal((await second.client.sendMessage('+48500600105', busy, text)).status, status)
  assert.equal((await second.client.sendMessage('+48500600110', fresh[0] ?? '', text)).status, 200)
  assert.equal((await second.client.phone('+48500600110')).length, 21)

  second.child.kill('SIGTERM')
  assert.equal(await second.ended, 0)
  assert.equal(second.output.stdout.split('\n').length, 2)
})

test('keeps its secrets readable by the owner alone, and rejects a second simulator in its directory', async () => {
  const dataDir = createDataDir()
  const first = await startProcess(['--data-dir', dataDir, '--port', '0', '--smpp-port', '0', '--stop-with-stdin'])
  const { carriersFile } = first.ready
  assert.equal(statSync(carriersFile).mode & 0o777, 0o600)
  assert.equal(statSync(`${dataDir}/simulator.log`).mode & 0o777, 0o600)
  const carriers = JSON.parse(readFileSync(carriersFile, 'utf8'))
  assert.equal(carriers['simulator-sms'].password.length, 8)
  assert.equal((await requestToken(carriers)).status, 200)
  const second = spawnSimulator(['--data-dir', dataDir])
  assert.equal(await second.ended, 1)
  assert.equal(second.output.stderr, `Another simulator is running in ${dataDir}.\n`)
  first.child.stdin?.end()
  assert.equal(await first.ended, 0)
})

test('exits with 1 and a message for a directory that it cannot use', async () => {
  const { output, ended } = spawnSimulator(['--data-dir', `${PROGRAM}/x`])
  assert.equal(await ended, 1)
  assert.match(output.stderr, /^The simulator can't keep its state in .*\/x: .*\n$/)
  assert.equal(output.stdout, '')
})

test('rejects invalid options', () => {
  assert.deepEqual(parseOptions(['--data-dir', 'x', '--port', '0']), {
    dataDir: 'x',
    host: '127.0.0.1',
    port: 0,
    smppPort: undefined,
    delayMs: 500,
    stopWithStdin: false,
  })
  assert.equal(parseOptions(['--help']), undefined)
  const cases: [string[], RegExp][] = [
    [[], /^--data-dir is required: the directory for the simulator’s state\.$/],
    [['--data-dir', 'x', '--port', '99999'], /^--port must be a whole number from 0 to 65535\.$/],
    [['--data-dir', 'x', '--delay-ms', '-1'], /^Option '--delay-ms' argument is ambiguous\.$/],
    [['--data-dir', 'x', '--delay-ms=1.5'], /^--delay-ms must be a whole number/],
    [['--data-dir', 'x', '--nonsense'], /^Unknown option '--nonsense'/],
    [['--data-dir', 'x', 'more'], /^Unexpected argument 'more'/],
  ]
  for (const [args, message] of cases) assert.throws(() => parseOptions(args), { constructor: StartError, message })
})
