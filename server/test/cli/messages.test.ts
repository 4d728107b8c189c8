import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setModules, suspendAccount } from '../../src/accounts/accounts.ts'
import { setQuotas } from '../../src/accounts/quotas.ts'
import { cancelMessage } from '../../src/delivery/cancel.ts'
import { createTemplate, type TemplateInput } from '../../src/templates/templates.ts'
import { createReceiver, createSender, queueMessage, receipt } from '../delivery/support.ts'
import { claimNow, record } from '../delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, spawnHerald, testFailures } from '../support/process.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, hotPool: pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const PHONE = '+48500100200'

const template = async (accountId: number, input: Partial<TemplateInput>) =>
  (
    await createTemplate(pool, accountId, {
      name: 'x',
      basic: false,
      status: 'APPROVED',
      message: { type: 'MESSAGE', content: 'Hi' },
      ...input,
    })
  ).id
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
    const again = await heraldJson(['message', 'cancel', messageId], env)
    assert.equal(again.failure.reason, 'CANCELLED', 'nothing changes, so nothing is asked')
    const { code, stderr } = await runHerald(['message', 'cancel', sent], env)
    const reason = 'The message is SENT: a message can be cancelled while it waits to be handed to the network.\n'
    assert.deepEqual([code, stderr], [1, reason], 'what is refused is not asked')
  })

  testFailures(
    ['message'],
    [
      [['find'], /^Name a number or an account: /, 2],
      [['find', '--account', '999999'], /^There is no account 999999; /, 3],
      [['find', PHONE, '--agent', 'nobody'], /^There is no agent nobody; /, 3],
      [['find', PHONE, '--from', '2026-02-01T00:00Z', '--to', '2026-01-01T00:00Z'], /^--to must not be before --from\.\n$/, 2],
      [
        ['find', PHONE, '--campaign', UNKNOWN],
        new RegExp(`^There is no campaign ${UNKNOWN}; see "herald campaign list ACCOUNT_ID"\\.\n$`),
        3,
      ],
      [['find', 'hello'], /international phone number/],
      [['find', PHONE, '--status', 'LOST'], /Allowed values are ACCEPTED, /],
      [['find', PHONE, '--campaign', '1'], /^There is no campaign 1; /, 3],
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

  test('ends a wait after --timeout with exit status 5, and hints that no service delivers', async () => {
    const { accountId } = await createSender(pool)
    const { code, stdout, stderr } = await runHerald(['send', `${accountId}`, PHONE, 'Hello', '--wait', '--timeout', '4'], env)
    assert.equal(code, 5)
    assert.match(stdout, / is ACCEPTED\.\n$/)
    assert.match(
      stderr,
      /ACCEPTED\nThe message still waits to be sent\. .*\nThe message is not READ, FAILED or EXPIRED after 4 s\. "herald message show /,
    )
    const { code: without, stderr: refusal } = await runHerald(['send', `${accountId}`, PHONE, 'Hello', '--timeout', '4'], env)
    assert.deepEqual([without, refusal], [2, '--timeout needs --wait.\n'])
  })

  test('takes a text of several lines, and with --wait fails if the message does', async () => {
    const { accountId } = await createSender(pool)
    const command = spawnHerald(['send', `${accountId}`, PHONE, 'Hello\n\tWorld', '--wait'], env)
    const messageId = await until('the message is there', async () => {
      const { rows } = await pool.query('select id, content from messages where account_id = $1', [accountId])
      if (rows[0] !== undefined) assert.equal(rows[0].content.content, 'Hello\n\tWorld')
      return rows[0]?.id as string | undefined
    })
    await cancelMessage(pool, accountId, messageId)
    assert.equal(await command.ended, 1)
    assert.match(command.output.stdout, / is FAILED: .*[^.]\.\n$/)
  })

  test('sends a message at the time of --at', async () => {
    const { accountId } = await createSender(pool)
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const { code, stdout } = await runHerald(['send', `${accountId}`, PHONE, 'Hello', '--at', at], env)
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(` is ACCEPTED, to be sent at ${at}\\.\n$`))
    const { rows } = await pool.query('select due_at from queue where account_id = $1', [accountId])
    assert.deepEqual(rows, [{ due_at: new Date(at) }])
    const early = await runHerald(['send', `${accountId}`, PHONE, 'Hello', '--at', '2020-01-01T00:00:00Z'], env)
    assert.deepEqual([early.code, early.stderr], [2, '--at must not be more than a minute in the past.\n'])
  })

  test('sends a template with the values of its variables', async () => {
    const { accountId } = await createSender(pool)
    const id = await template(accountId, { message: { type: 'MESSAGE', content: 'Hi {{name}} {{code}}' } })
    const values = ['--variable', 'name=Anna', '--variable', 'code=a=b']
    const { messageId } = await heraldJson(['send', `${accountId}`, PHONE, '--template', `${id}`, ...values], env)
    const { rows } = await pool.query('select content from messages where id = $1', [messageId])
    assert.equal(rows[0].content.content, 'Hi Anna a=b')
  })

  test('sends a basic template', async () => {
    const { accountId } = await createSender(pool)
    const id = await template(accountId, { basic: true })
    assert.equal((await heraldJson(['send', `${accountId}`, PHONE, '--template', `${id}`], env)).basic, true)
  })

  test('names what is missing or wrong', async () => {
    const { accountId, agentId } = await createSender(pool)
    const draft = await template(accountId, { status: 'DRAFT' })
    const personal = `${await template(accountId, { message: { type: 'MESSAGE', content: 'Hi {{name}}' } })}`
    const full = await createSender(pool)
    await setQuotas(pool, full.accountId, { messagesPerDay: 0 })
    const suspended = await createSender(pool)
    await suspendAccount(pool, suspended.accountId)
    const smsOnly = await createSender(pool)
    await setModules(pool, smsOnly.accountId, ['sms'])
    const refusals: [account: number, args: string[], status: number, error: string][] = [
      [accountId, ['Hello', '--template', '5'], 2, 'Give either a text or --template.'],
      [accountId, ['Hello', '--agent', `${agentId}x`], 3, `Account ${accountId} has no active agent ${agentId}x. Did you mean ${agentId}?`],
      [accountId, ['Hello', '--agent', 'nobody'], 3, `Account ${accountId} has no active agent nobody. It has ${agentId}.`],
      [accountId, ['--template', '5'], 3, `Account ${accountId} has no template 5.`],
      [
        accountId,
        ['--template', personal],
        2,
        `Template ${personal} has the variable name, which has no value and no default: add --variable name=value.`,
      ],
      [accountId, ['Hello', '--variable', 'name=Anna'], 2, '--variable needs --template: a text is sent as it is.'],
      [accountId, ['--template', `${draft}`], 1, `Template ${draft} is not approved; only approved templates can be sent.`],
      [99_999, ['Hello'], 3, 'There is no account 99999; see "herald account list".'],
      [full.accountId, ['Hello'], 1, 'The quota messagesPerDay of the account is 0, and 0 are used: the count starts again at 00:00 UTC.'],
      [
        suspended.accountId,
        ['Hello'],
        1,
        `Account ${suspended.accountId} is suspended, so nothing of it is sent; "herald account resume ${suspended.accountId}" ends that.`,
      ],
      [
        smsOnly.accountId,
        ['Hello'],
        1,
        `Account ${smsOnly.accountId} does not have the module rcs; "herald account modules ${smsOnly.accountId} rcs,sms" adds it.`,
      ],
    ]
    for (const [account, args, status, error] of refusals) {
      const { code, stdout, stderr } = await runHerald(['send', `${account}`, PHONE, ...args], env)
      assert.deepEqual([code, stdout, stderr], [status, '', `${error}\n`])
    }
  })
})
