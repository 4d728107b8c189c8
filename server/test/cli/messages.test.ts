import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createReceiver, createSender, queueMessage, receipt } from '../delivery/support.ts'
import { claimNow, record } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, spawnHerald, testFailures } from '../support/process.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, hotPool: pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const PHONE = '+48500100200'
const UNKNOWN = '0198c0de-0000-7000-8000-000000000001'

describe('herald message', () => {
  test('find lists the messages of a number in all accounts, and of one account by filter', async () => {
    const senders = [await createSender(pool), await createSender(pool)] as const
    const ids = [await queueMessage(pool, senders[0]), await queueMessage(pool, senders[1])]
    const all = await heraldJson(['message', 'find', PHONE], env)
    const own = all.filter(({ messageId }: { messageId: string }) => ids.includes(messageId))
    assert.deepEqual(
      own.map(({ messageId, accountId }: { messageId: string; accountId: number }) => [messageId, accountId]),
      [
        [ids[1], senders[1].accountId],
        [ids[0], senders[0].accountId],
      ],
    )
    const account = ['--account', `${senders[0].accountId}`]
    const waiting = await heraldJson(['message', 'find', ...account, '--status', 'ACCEPTED,SENDING', '--agent', senders[0].agentId], env)
    assert.deepEqual(waiting.length, 1)
    assert.deepEqual(await heraldJson(['message', 'find', PHONE, ...account, '--to', '2026-01-01T00:00Z'], env), [])
    const { stdout } = await runHerald(['message', 'find', ...account], env)
    assert.match(stdout, /^ID +ACCOUNT +ACCEPTED +RECIPIENT +STATUS +REASON +SMS\n/)
  })

  test('show prints the message and its timeline', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender)
    const shown = await heraldJson(['message', 'show', messageId], env)
    assert.deepEqual([shown.accountId, shown.status, shown.timeline.length], [sender.accountId, 'ACCEPTED', 1])
    const { stdout } = await runHerald(['message', 'show', messageId], env)
    assert.match(stdout, new RegExp(`^Message ${messageId} of account ${sender.accountId}, from ${sender.agentId} to .*, is ACCEPTED\\.\n`))
    assert.match(stdout, / accepted +- +Herald stored the message\.\n/)
  })

  test('cancel asks first, cancels, and names the status of a message that can’t be cancelled', async () => {
    const sender = await createSender(pool)
    const messageId = await queueMessage(pool, sender)
    const asked = await runHerald(['message', 'cancel', messageId], env)
    assert.deepEqual([asked.code, asked.stderr.includes('Nothing has changed; repeat the command with --yes')], [1, true])
    const { failure } = await heraldJson(['message', 'cancel', messageId, '--yes'], env)
    assert.equal(failure.reason, 'CANCELLED')
    const sent = await queueMessage(pool, sender)
    const { entries } = await claimNow(pool, { free: 1_000 })
    await record(pool, entries.find((entry) => entry.messageId === sent) as (typeof entries)[number], { is: 'sent' })
    const { code, stderr } = await runHerald(['message', 'cancel', sent, '--yes'], env)
    assert.equal(code, 1)
    assert.match(stderr, /The message is SENT: a message can be cancelled until it is handed to the network\.\n$/)
  })

  testFailures(
    ['message'],
    [
      [['find'], /^Name a number or an account: /],
      [['find', 'hello'], /international phone number/],
      [['find', PHONE, '--status', 'LOST'], /Allowed values are ACCEPTED, /],
      [['find', PHONE, '--campaign', '1'], /^There is no campaign 1\.\n$/],
      [['show', UNKNOWN], new RegExp(`^There is no message ${UNKNOWN}\\.`)],
      [['cancel', 'x', '--yes'], /^There is no message x\./],
    ],
    env,
  )
})

describe('herald send', () => {
  test('accepts a message, follows it with --wait, and prints the result', async () => {
    const { accountId, agentId } = await createSender(pool)
    const command = spawnHerald(['send', `${accountId}`, PHONE, 'Hello', '--reference', 'r-1', '--wait', '--json'], env)
    const messageId = await until('the message is there', async () => {
      const { rows } = await pool.query('select id from messages where account_id = $1', [accountId])
      return rows[0]?.id as string | undefined
    })
    await until('it shows the first status', () => command.output.stderr.includes('ACCEPTED'))
    const { entries } = await claimNow(pool, { free: 1_000 })
    await record(pool, entries.find((entry) => entry.messageId === messageId) as (typeof entries)[number], { is: 'sent' })
    await createReceiver(pool)([receipt({ messageId, phone: PHONE, agentId, kind: 'read' })])
    assert.equal(await command.ended, 0)
    const { status, clientReferenceId } = JSON.parse(command.output.stdout)
    assert.deepEqual([status, clientReferenceId], ['READ', 'r-1'])
    assert.match(command.output.stderr, /ACCEPTED\n(.*\n)*.* READ\n/)
  })

  test('names what is missing or wrong', async () => {
    const { accountId } = await createSender(pool)
    for (const [args, error] of [
      [[], /^Give either a text or --template\.\n$/],
      [['Hello', '--template', '5'], /^Give either a text or --template\.\n$/],
      [['Hello', '--agent', 'nobody'], /^\/agentId names no active agent of this account\.\n$/],
      [['--template', '5'], /^\/message\/templateId names no template of this account\.\n$/],
    ] as const) {
      const { code, stderr } = await runHerald(['send', `${accountId}`, PHONE, ...args], env)
      assert.ok(code === 1 || code === 2)
      assert.match(stderr, error)
    }
    const { stderr } = await runHerald(['send', '99999', PHONE, 'Hello'], env)
    assert.match(stderr, /^Account 99999 has no active agent: "herald agent assign" adds one\.\n$/)
  })
})
