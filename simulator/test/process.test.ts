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

test('after kill -9 in the middle it goes on where it was: no receipt lost, none of the accepted ones doubled', async () => {
  const dataDir = createDataDir()
  const webhook = await startWebhook()
  const first = await startProcess(['--data-dir', dataDir, '--delay-ms', '100'])
  const { sendMessage, call, setWebhook } = first.client
  await setWebhook(webhook.url)

  // In all states when the axe falls: told of, refused by the webhook, not delivered yet, an SMS whose receipt nobody can take.
  const told = randomUUID()
  await sendMessage('+48500600101', told, text)
  await until('the first is told of', async () => (await call('GET', '/simulator/counts')).body['webhook-accepted'] === 1)
  webhook.status = 500
  const refused = randomUUID()
  await sendMessage('+48500600101', refused, text)
  await until('the second is refused', () => webhook.data().some(({ messageId }) => messageId === refused))
  const esme = await connectEsme(first.client.carriers)
  await esme.bind('transmitter')
  const { message_id: smsId = '' } = await esme.submit({ destination_addr: '48500600110' })
  const busy = randomUUID()
  assert.equal((await sendMessage('+48500600105', busy, text)).status, 503)
  const fresh = Array.from({ length: 20 }, () => randomUUID())
  await Promise.all(fresh.map((id) => sendMessage('+48500600110', id, text)))
  first.child.kill('SIGKILL')
  await first.ended

  // A post that was under way would otherwise be accepted only now, and nobody be left to be told.
  await until('the webhook has answered all that was sent before', webhook.isAlone)
  webhook.status = 200
  const second = await startProcess(['--data-dir', dataDir, '--delay-ms', '100'])
  assert.deepEqual(second.ready, first.ready)
  assert.deepEqual(second.client.carriers, first.client.carriers)
  const old = await second.client.call('GET', '/simulator/counts', undefined, { authorization: `Bearer ${first.client.token}` })
  assert.equal(old.body.accepted, 22)
  const receiver = await connectEsme(second.client.carriers)
  await receiver.bind('receiver')
  await receiver.receipt(smsId)
  // It knows the address from its disk. Told again, it would post at once what is just under way, and that would come twice.
  await until('nothing is owed', async () => {
    const { owed } = (await second.client.call('GET', '/simulator/counts')).body
    return owed.steps + owed.webhooks + owed.deliverSm === 0
  })
  const receipts = (id: string) =>
    webhook
      .accepted()
      .filter((data) => data.messageId === id)
      .map(({ eventType }) => eventType)
  assert.deepEqual(receipts(told), ['DELIVERED'])
  assert.deepEqual(receipts(refused), ['DELIVERED'])
  for (const id of fresh) assert.deepEqual(new Set(receipts(id)), new Set(['DELIVERED', 'READ']))
  for (const id of fresh) assert.equal(receipts(id).length, 2)
  // One of the two refusals was before.
  assert.deepEqual(
    [
      (await second.client.sendMessage('+48500600105', busy, text)).status,
      (await second.client.sendMessage('+48500600105', busy, text)).status,
    ],
    [503, 200],
  )
  assert.equal((await second.client.sendMessage('+48500600110', fresh[0] ?? '', text)).status, 200)
  assert.equal((await second.client.phone('+48500600110')).length, 21)

  const startedAt = performance.now()
  second.child.kill('SIGTERM')
  assert.equal(await second.ended, 0)
  assert.ok(performance.now() - startedAt < 2000)
  assert.equal(second.output.stdout.split('\n').length, 2)
})

test('it keeps its secrets to the owner, and a second one in the same directory says that there is one', async () => {
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
  assert.equal(second.output.stderr, `Another simulator runs in ${dataDir} already.\n`)
  first.child.stdin?.end()
  assert.equal(await first.ended, 0)
})

test('a mistake is a sentence and exit code 1', async () => {
  const { output, ended } = spawnSimulator(['--data-dir', `${PROGRAM}/x`])
  assert.equal(await ended, 1)
  assert.match(output.stderr, /^The simulator can't keep its state in .*\/x: .*\n$/)
  assert.equal(output.stdout, '')
})

test('options are read strictly', () => {
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
    [[], /^Say with --data-dir where the simulator keeps its state\.$/],
    [['--data-dir', 'x', '--port', '99999'], /^--port must be a whole number from 0 to 65535\.$/],
    [['--data-dir', 'x', '--delay-ms', '-1'], /^Option '--delay-ms' argument is ambiguous\.$/],
    [['--data-dir', 'x', '--delay-ms=1.5'], /^--delay-ms must be a whole number/],
    [['--data-dir', 'x', '--nonsense'], /^Unknown option '--nonsense'/],
    [['--data-dir', 'x', 'more'], /^Unexpected argument 'more'/],
  ]
  for (const [args, message] of cases) assert.throws(() => parseOptions(args), { constructor: StartError, message })
})
