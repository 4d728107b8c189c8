import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createTestDatabase } from '../support/database.ts'
import { routeUntilDone, type WrittenEvent, writeEvents } from '../support/log.ts'
import { runHerald, spawnHerald, testFailures } from '../support/process.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startSink } from '../webhooks/support.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }

async function emit(accountId: number, ...events: Omit<WrittenEvent, 'accountId'>[]): Promise<void> {
  await writeEvents(
    pool,
    events.map((event) => ({ accountId, ...event })),
  )
  await routeUntilDone(pool)
}

/** Starts the command, and waits until it reads. */
async function listen(args: string[]) {
  const started = spawnHerald(['listen', ...args], env)
  const secret = await until('it has started', () => /(whsec_[A-Za-z0-9+/=]+)/.exec(started.output.stdout)?.[1])
  return { ...started, secret, lines: () => started.output.stdout.trimEnd().split('\n') }
}

const numbered = (n: number, kind = 'message.sent') => ({ kind, data: { n } })

describe('herald listen', () => {
  test('posts each event once and in order, signed with the secret that it shows, and ends with Ctrl-C', async () => {
    const [{ accountId }, other] = [await createCaller(pool), await createCaller(pool)]
    const sink = await startSink(({ event }) => (event.data.n === 2 ? 500 : 204))
    await emit(accountId, numbered(0))
    const { child, ended, output, secret, lines } = await listen([sink.url.replace('http://', ''), '--account', `${accountId}`])
    assert.deepEqual(lines(), [`The events of account ${accountId} go to ${sink.url} until Ctrl-C.`, `Secret: ${secret}`])
    await emit(accountId, numbered(1), numbered(2, 'message.read'), numbered(3))
    await emit(other.accountId, numbered(9))
    await until('three lines are shown', () => lines().length === 5)
    assert.deepEqual(sink.subjects(), [1, 2, 3])
    for (const { body, headers } of sink.arrived) new Webhook(secret).verify(body, headers as Record<string, string>)
    const shown = lines().slice(2)
    for (const [index, [kind, status]] of (
      [
        ['message.sent', 204],
        ['message.read', 500],
        ['message.sent', 204],
      ] as const
    ).entries()) {
      const { eventId, occurredAt } = sink.arrived[index]?.event ?? {}
      assert.match(shown[index] as string, new RegExp(`^${occurredAt}  ${kind.padEnd(20)} ${eventId}  ${status}, \\d+ ms$`))
    }
    child.kill('SIGINT')
    assert.equal(await ended, 0)
    assert.equal(output.stderr, 'Stopped: 2 events were accepted, 1 failed.\n')
  })

  test('starts at a time, forwards only the given types, and goes on after the receiver was away', async () => {
    const { accountId } = await createCaller(pool)
    await emit(accountId, numbered(1), numbered(2, 'sms.sent'))
    const since = (
      await pool.query('select max(placed_at) as at from log_pages where account_id = $1', [accountId])
    ).rows[0].at.toISOString()
    const args = ['http://127.0.0.1:1/', '--account', `${accountId}`, '--types', 'sms.sent,sms.failed', '--since', since, '--json']
    const { child, ended, secret, lines } = await listen(args)
    await emit(accountId, numbered(3, 'sms.failed'), numbered(4))
    await until('two events are shown', () => lines().length === 3)
    const [start, ...shown] = lines().map((line) => JSON.parse(line))
    assert.deepEqual(start, { accountId, url: 'http://127.0.0.1:1/', secret })
    assert.deepEqual(
      shown.map(({ type, status, error }) => [type, status, error]),
      [
        ['sms.sent', null, 'the connection was refused'],
        ['sms.failed', null, 'the connection was refused'],
      ],
    )
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
  })

  test('ends at once during a post that hangs', async () => {
    const { accountId } = await createCaller(pool)
    const sink = await startSink(() => new Promise(() => {}))
    const { child, ended, output, lines } = await listen([sink.url, '--account', `${accountId}`])
    await emit(accountId, numbered(1))
    await until('it is posted', () => sink.arrived.length === 1)
    child.kill('SIGINT')
    assert.equal(await ended, 0)
    assert.deepEqual([lines().length, output.stderr], [2, 'Stopped: 0 events were accepted, 0 failed.\n'])
  })

  test('needs --account if there are several accounts', async () => {
    for (let n = 0; n < 2; n += 1) await createCaller(pool)
    const { code, stderr } = await runHerald(['listen', 'localhost:3000'], env)
    assert.equal(code, 2)
    assert.match(stderr, /^There are \d+ accounts: name one with --account, as "herald account list" shows it\.\n$/)
  })

  testFailures(
    ['listen'],
    [
      [['ftp://localhost/'], /^The URL must begin with https:\/\/ or http:\/\/\.\n$/],
      [['http://user@localhost/'], /no user name/],
      [['localhost', '--account', '2000000000'], /^There is no account 2000000000/],
      [['localhost', '--since', 'yesterday'], /must be a time with its zone/],
      [['localhost', '--types', 'message.heard'], /Allowed values are message\.sent/],
    ],
    env,
  )
})
