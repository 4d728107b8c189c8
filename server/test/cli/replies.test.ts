import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTemplate } from '../../src/templates/templates.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'
import { createAssignedAgent, createCaller } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const { accountId } = await createCaller(pool)
const account = `${accountId}`
const agentId = await createAssignedAgent(pool, accountId)
const PHONE = '+48500100200'

describe('herald', { concurrency: 2 }, () => {
  test('account quarantine sets the hours', async () => {
    const expected = { accountId, name: 'Test', modules: ['rcs', 'sms'], quarantineHours: 8760 }
    assert.deepEqual(await heraldJson(['account', 'quarantine', account, '8760'], env), expected)
  })

  test('opt-out add and remove accept any notation of a number, and remove fails without an opt-out', async () => {
    const { changedAt, ...added } = await heraldJson(['opt-out', 'add', account, '48 500-100-200', '--agent', agentId], env)
    assert.deepEqual(added, { accountId, agentId, phone: PHONE, optedOut: true, block: false, source: 'operator' })
    assert.match(changedAt, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    const removed = await runHerald(['opt-out', 'remove', account, '48500100200', '--agent', agentId, '--yes'], env)
    assert.deepEqual(
      [removed.code, removed.stdout],
      [0, `${PHONE} gets campaigns again from the agent ${agentId} of account ${account}.\n`],
    )
    const again = await runHerald(['opt-out', 'remove', account, PHONE, '--agent', agentId], env)
    assert.deepEqual(
      [again.code, again.stdout, again.stderr],
      [1, '', `${PHONE} is not opted out of messages from agent ${agentId} of account ${account}.\n`],
    )
  })

  test('opt-out add --block without an agent blocks for all agents, and remove ends it', async () => {
    const { accountId: own } = await createCaller(pool)
    const agents = [await createAssignedAgent(pool, own), await createAssignedAgent(pool, own)].sort()
    const added = await heraldJson(['opt-out', 'add', `${own}`, PHONE, '--block'], env)
    assert.deepEqual(
      added.map((each: { agentId: string; block: boolean }) => [each.agentId, each.block]),
      agents.map((id) => [id, true]),
    )
    const removed = await runHerald(['opt-out', 'remove', `${own}`, PHONE, '--yes'], env)
    const { changedAt } = added[0]
    assert.deepEqual(removed, {
      code: 0,
      stdout: agents.map((id) => `${PHONE} gets campaigns again from the agent ${id} of account ${own}.\n`).join(''),
      stderr: `This will let 2 agents of account ${own} send messages again to 1 recipient, ${PHONE}, who was blocked at ${changedAt} (by operator).\n`,
    })
    const again = await runHerald(['opt-out', 'remove', `${own}`, PHONE, '--yes'], env)
    assert.deepEqual([again.code, again.stderr], [1, `${PHONE} is not opted out of messages from any agent of account ${own}.\n`])
  })

  test('opt-out list prints all opt-outs, page by page', async () => {
    const { accountId: large } = await createCaller(pool)
    const agent = await createAssignedAgent(pool, large)
    const count = 2_500
    await pool.query(
      `insert into opt_outs (account_id, agent_id, phone, opted_out, source, changed_at)
       select $1, $2, '+485001' || lpad(n::text, 5, '0'), true, 'word', '2026-01-31T08:00:00Z' from generate_series(1, $3::int) as n`,
      [large, agent, count],
    )
    const listed = await heraldJson(['opt-out', 'list', `${large}`], env)
    assert.deepEqual(listed[0], {
      accountId: large,
      agentId: agent,
      phone: '+48500100001',
      optedOut: true,
      block: false,
      source: 'word',
      changedAt: '2026-01-31T08:00:00.000Z',
    })
    assert.equal(new Set(listed.map(({ phone }: { phone: string }) => phone)).size, count)
    const lines = (await runHerald(['opt-out', 'list', `${large}`], env)).stdout.split('\n')
    assert.equal(lines.length, 1 + count + 1)
    assert.equal(lines[0], 'PHONE             BLOCKED  BY           SINCE                     AGENT')
    assert.equal(lines[1], `+48500100001      no       word         2026-01-31T08:00:00.000Z  ${agent}`)
  })

  test('auto-reply add, list and remove manage automatic replies', async () => {
    const content = { name: 'Hours', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: 'From 8 to 16' } } as const
    const { id: templateId } = await createTemplate(pool, accountId, content)
    const options = ['--agent', agentId, '--keyword', 'Godziny!', '--template', `${templateId}`]
    const { autoReplyId, createdAt, ...added } = await heraldJson(['auto-reply', 'add', account, ...options], env)
    assert.deepEqual(added, { accountId, agentId, keyword: 'godziny', templateId })
    assert.deepEqual(await heraldJson(['auto-reply', 'list', account], env), [{ autoReplyId, ...added, createdAt }])
    const removed = await runHerald(['auto-reply', 'remove', `${autoReplyId}`, '--yes'], env)
    assert.equal(removed.stdout, `The automatic reply ${autoReplyId} is removed.\n`)
  })

  const FAILURES: [args: string[], error: RegExp][] = [
    [['account', 'quarantine', account, '8761'], /It must be a whole number of hours from 0 to 8760/],
    [['opt-out', 'add', account, '12', '--agent', agentId], /It must be an international phone number/],
    [['opt-out', 'list', '999999', '--json'], /^There is no account 999999/],
    [['opt-out', 'add', '999999', PHONE], /^There is no account 999999/],
    [['opt-out', 'add', account, PHONE, '--agent', 'nobody'], /^There is no agent nobody/],
  ]
  testFailures([], FAILURES, env)
})
