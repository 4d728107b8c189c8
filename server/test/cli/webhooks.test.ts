import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { timeOf } from '../../src/db/partitions.ts'
import { transaction } from '../../src/db/pool.ts'
import { recordEvent } from '../../src/events/changes.ts'
import { createEventMetrics } from '../../src/events/metrics.ts'
import { startRouter } from '../../src/events/router-loop.ts'
import { createLogger } from '../../src/http/log.ts'
import { disableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { createDispatcher } from '../../src/webhooks/dispatcher.ts'
import { addEndpoint, findEndpoint, listEndpoints, rotateSecret } from '../../src/webhooks/endpoints.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring, readWebhookSecrets } from '../support/keyring.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

// test/webhooks has what endpoints, replays and attempts do; these tests have what an operator sees.

const { url: HERALD_DATABASE_URL, pool, hotPool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }

/** A receiver that accepts what is posted to /good, and responds to the rest with control sequences. */
const receiver = createServer((request, response) => {
  request.resume()
  response.statusCode = request.url === '/good' ? 200 : 503
  response.end(request.url === '/good' ? 'Thank you\nsecond line' : '\u001b[2J\u009b31mNot \u202enow')
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
after(() => receiver.close())
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

const logger = createLogger('silent', { write: () => {} })
const dispatcher = createDispatcher({ pool: hotPool, keyring, logger, metrics: createWebhookMetrics(new Registry()), hosts: 'any' })
const router = startRouter({ pool: hotPool, logger, metrics: createEventMetrics(new Registry()), onRouted: dispatcher.wake })
after(() => Promise.all([router.stop(), dispatcher.stop()]))

async function endpointAt(path: string) {
  const { accountId } = await createCaller(pool)
  return await addEndpoint(pool, { accountId, url: `${receiverUrl}${path}` }, keyring)
}

describe('herald webhook', { concurrency: 3 }, () => {
  test('add normalizes the URL and shows the secret; list does not show it', async () => {
    const { accountId } = await createCaller(pool)
    const args = ['webhook', 'add', `${accountId}`]
    const { endpointId, secret, ...added } = await heraldJson(
      [...args, 'https://Hooks.example.com', '--events', 'sms.sent,sms.failed'],
      env,
    )
    const { createdAt, ...known } = added
    assert.deepEqual(known, { accountId, url: 'https://hooks.example.com/', types: ['sms.sent', 'sms.failed'], status: 'ACTIVE' })
    assert.match(secret, /^whsec_/)
    assert.equal(Number.isInteger(endpointId), true)
    const long = `https://example.com/${'x'.repeat(1_000)}`
    const second = await addEndpoint(pool, { accountId, url: long }, keyring)
    await rotateSecret(pool, second.endpointId, keyring)
    const { stdout } = await runHerald(['webhook', 'list', `${accountId}`], env)
    const [head, ...rows] = stdout.trimEnd().split('\n')
    assert.match(head as string, /^ID +ACCOUNT +STATUS +REASON +SINCE +PENDING +FAILED +SECRETS +TYPES +URL$/)
    const cells = [`${accountId}`, 'ACTIVE', '-', '-', '0', '0']
    assert.deepEqual(rows[0]?.split(/ {2,}/), [`${endpointId}`, ...cells, '1', 'sms.sent,sms.failed', 'https://hooks.example.com/'])
    assert.deepEqual(rows[1]?.split(/ {2,}/), [`${second.endpointId}`, ...cells, '2', 'all', `${long.slice(0, 80)}…`])
  })

  test('update changes the event types of an endpoint, and --all-types resets them', async () => {
    const { endpointId, accountId, url } = await endpointAt('/good')
    const args = ['webhook', 'update', `${endpointId}`]
    const [some, { stdout, code }] = [
      await heraldJson([...args, '--types', 'sms.sent,sms.failed'], env),
      await runHerald([...args, '--all-types'], env),
    ]
    const { createdAt, ...known } = some
    const well = { status: 'ACTIVE', failingSince: null, disabledAt: null, disabledBecause: null }
    assert.deepEqual(known, { endpointId, accountId, url, types: ['sms.sent', 'sms.failed'], ...well })
    assert.deepEqual([code, stdout], [0, `The endpoint ${endpointId}, at ${url}, gets all events from now on.\n`])
    assert.equal((await findEndpoint(pool, endpointId)).types, null)
  })

  test('add and update warn if only the command may reach a private address', async () => {
    const { accountId } = await createCaller(pool)
    const allowed = `HERALD_WEBHOOK_ALLOW_PRIVATE is set for this command only. Set it for the service too, such as in .env: otherwise it does not post to`
    const added = await runHerald(['webhook', 'add', `${accountId}`, 'http://10.0.0.1:3000/', '--json'], env)
    assert.deepEqual([added.code, added.stderr], [0, `${allowed} 10.0.0.1:3000.\n`])
    const { endpointId } = JSON.parse(added.stdout)
    const moved = await runHerald(['webhook', 'update', `${endpointId}`, '--url', 'http://herald:1/'], env)
    assert.deepEqual([moved.code, moved.stderr], [0, `${allowed} herald:1.\n`])
    assert.equal((await findEndpoint(pool, endpointId)).url, 'http://herald:1/')
    // With the simulated network, and for a public address, the service agrees.
    const simulated = await runHerald(['webhook', 'update', `${endpointId}`, '--url', 'http://localhost:3000/'], { HERALD_DATABASE_URL })
    const open = await runHerald(['webhook', 'update', `${endpointId}`, '--url', 'https://hooks.example.com/'], env)
    assert.deepEqual([simulated.code, simulated.stderr, open.code, open.stderr], [0, '', 0, ''])
  })

  test('replay fails while another replay of the endpoint runs', async () => {
    const { endpointId } = await endpointAt('/good')
    await pool.query(`update webhook_endpoints set replaying_until = now() + interval '1 minute' where id = $1`, [endpointId])
    const { code, stderr } = await runHerald(['webhook', 'replay', `${endpointId}`, '--since', '2026-01-31T08:00:00Z', '--yes'], env)
    assert.deepEqual([code, stderr], [1, `A replay of endpoint ${endpointId} is running; try again when it is done.\n`])
  })

  test('rotate shows the new secret and until when the old one signs', async () => {
    const { endpointId, url, secret: first } = await endpointAt('/good')
    const { stdout } = await runHerald(['webhook', 'rotate', `${endpointId}`, '--yes'], env)
    const [, secret, endsAt] = /\nSecret: (whsec_\S{44})\nThe secret is shown only this once\. .* until (\S+Z)\.\n$/.exec(stdout) ?? []
    assert.ok(stdout.startsWith(`The endpoint ${endpointId}, at ${url}, has a new secret.\n`), stdout)
    const stored = await readWebhookSecrets(pool, endpointId)
    assert.deepEqual(
      stored.map((one) => [one.secret, one.endsAt]),
      [
        [first, new Date(endsAt as string)],
        [secret, null],
      ],
    )
  })

  test('test posts an event and shows its result; attempts lists it with control characters escaped', async () => {
    const [good, bad] = [await endpointAt('/good'), await endpointAt('/bad')]
    const accepted = await runHerald(['webhook', 'test', `${good.endpointId}`], env)
    assert.match(
      accepted.stdout,
      new RegExp(`^The endpoint ${good.endpointId} accepted the test event: status 200, after \\d+ ms\\.\nResponse: Thank you\n$`),
    )
    assert.deepEqual([accepted.code, accepted.stderr], [0, ''])
    const refused = await runHerald(['webhook', 'test', `${bad.endpointId}`, '--json'], env)
    const { attemptId, attemptedAt, durationMs, eventId, nextAttemptAt, ...outcome } = JSON.parse(refused.stdout)
    const response = '\u001b[2J\u009b31mNot \u202enow'
    assert.deepEqual(outcome, { endpointId: bad.endpointId, type: 'webhook.test', attempt: 1, status: 503, error: null, response })
    assert.equal(refused.code, 1)
    const attempts = ['webhook', 'attempts', `${bad.endpointId}`, '--failed', '--event', eventId]
    const shown = await runHerald(attempts, env)
    // The event is posted again after 5 s: the first attempt is in the last line.
    const lines = shown.stdout.trimEnd().split('\n')
    const [head, row] = [lines[0], lines.at(-1)]
    assert.match(head as string, /^TIME +EVENT +TYPE +ATTEMPT +RESULT +MS +RESPONSE$/)
    assert.deepEqual(row?.split(/ {2,}/), [
      attemptedAt,
      eventId,
      'webhook.test',
      '1',
      'status 503',
      `${durationMs}`,
      '\\u001b[2J\\u009b31mNot \\u202enow',
    ])
    assert.equal((await heraldJson([...attempts, '--limit', '1'], env)).length, 1)
    const inWords = await runHerald(['webhook', 'test', `${bad.endpointId}`], env)
    assert.match(
      inWords.stdout,
      new RegExp(`^The endpoint ${bad.endpointId} did not accept the test event: status 503, after \\d+ ms\\.\n`),
    )
  })

  test('enable names the replay command that posts missed events; remove deletes the endpoint', async () => {
    const { endpointId, accountId, url } = await endpointAt('/good')
    // Written before the endpoint is disabled, and routed after that.
    await transaction(pool, async (tx) => {
      await recordEvent(tx, { accountId, kind: 'message.sent', data: {} })
      await sleep(10)
      await disableEndpoint(pool, endpointId)
    })
    const { pageId } = await until('it is in the log', async () => {
      const find = 'select page_id as "pageId" from log_pages where account_id = $1 and last_position is not null'
      return (await pool.query<{ pageId: string }>(find, [accountId])).rows[0]
    })
    const { disabledAt } = await findEndpoint(pool, endpointId)
    assert.ok(disabledAt !== null && timeOf(pageId) < disabledAt, `${disabledAt?.toISOString()}`)
    const replay = ['webhook', 'replay', `${endpointId}`, '--since', timeOf(pageId).toISOString()]
    const enabled = await runHerald(['webhook', 'enable', `${endpointId}`], env)
    const named = `The endpoint ${endpointId} is active again. To post the events that it missed, run\n  herald ${replay.join(' ')}\n`
    assert.deepEqual(enabled, { code: 0, stdout: named, stderr: '' })
    const { stdout, stderr } = await runHerald([...replay, '--yes'], env)
    assert.equal(stdout, `1 event will be posted again to the endpoint ${endpointId}.\n`)
    assert.equal(stderr, `This will post about 1 event again to the endpoint ${endpointId} of account ${accountId}, at ${url}.\n`)
    const posted = () => pool.query('select from webhook_attempts where endpoint_id = $1 and status = 200', [endpointId])
    await until('it is posted', async () => (await posted()).rowCount === 1)
    const removed = await runHerald(['webhook', 'remove', `${endpointId}`, '--yes'], env)
    assert.deepEqual([removed.code, removed.stdout], [0, `The endpoint ${endpointId} is removed.\n`])
    assert.deepEqual(await listEndpoints(pool, accountId), [])
  })

  const FAILURES: [args: string[], error: RegExp][] = [
    [
      ['add', '1', 'https://10.0.0.1/'],
      /^The URL must have a host of the public internet, unlike 10\.0\.0\.1; .*HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it\.\n$/,
    ],
    [
      ['replay', '1', '--since', '2026-01-31T08:00:00Z', '--event', 'x'],
      /'--event <event-id>' cannot be used with option '--since <time>'/,
    ],
    [['update', '1'], /^error: --url, --types or --all-types is required\n/],
    [
      ['update', '1', '--events', 'sms.sent', '--all-events'],
      /'--events, --types <types>' cannot be used with option '--all-events, --all-types'/,
    ],
    [['replay', '1'], /^error: --event, --failed-since or --since is required\n/],
  ]
  testFailures(['webhook'], FAILURES, { HERALD_DATABASE_URL })
})
