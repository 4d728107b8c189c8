import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unassignAgent } from '../../src/agents/agents.ts'
import { type Executor, transaction } from '../../src/db/pool.ts'
import {
  addAutoReply,
  changeAutoReply,
  listAutoReplies,
  readAutoReplies,
  removeAutoReply,
  takeReplyTurn,
} from '../../src/replies/auto-replies.ts'
import { matchingKeyword } from '../../src/replies/words.ts'
import { createTemplate, type TemplateStatus } from '../../src/templates/templates.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createAssignedAgent, createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

const { hotPool: pool } = await createTestDatabase()

async function newTemplate(accountId: number, status: TemplateStatus = 'APPROVED'): Promise<number> {
  const { id } = await createTemplate(pool, accountId, { name: 'T', basic: false, status, message: { type: 'MESSAGE', content: 'Hello' } })
  return id
}

async function newAccount() {
  const { accountId } = await createCaller(pool)
  return { accountId, agentId: await createAssignedAgent(pool, accountId), templateId: await newTemplate(accountId) }
}

/** Begins changes while another transaction holds the assignment, and lets them go on together. `meanwhile`: what that transaction does. */
async function atOnce(
  { accountId, agentId }: { accountId: number; agentId: string },
  begin: () => Promise<unknown>[],
  meanwhile: (tx: Executor) => Promise<unknown> = async () => {},
): Promise<PromiseSettledResult<unknown>[]> {
  const { all } = await transaction(pool, async (tx) => {
    await tx.query('select from agent_assignments where account_id = $1 and agent_id = $2 for update', [accountId, agentId])
    const changes = begin()
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await until('all changes wait', async () => (await ownerOf(pool).query(waiting)).rowCount === changes.length)
    await meanwhile(tx)
    return { all: Promise.allSettled(changes) }
  })
  return await all
}

describe('an automatic reply', () => {
  test('is stored by its folded keyword, for its agent', async () => {
    const account = await newAccount()
    const { autoReplyId, createdAt, ...reply } = await addAutoReply(pool, { ...account, keyword: ' Godziny, OTWARCIA? ' })
    assert.deepEqual(reply, { ...account, keyword: 'godziny otwarcia' })
    const replies = await readAutoReplies(pool, account.accountId, account.agentId)
    assert.deepEqual(replies, [{ id: autoReplyId, keyword: 'godziny otwarcia', templateId: account.templateId }])
    assert.equal(matchingKeyword('Jakie są godziny otwarcia?', replies)?.templateId, account.templateId)
    const otherAgent = await createAssignedAgent(pool, account.accountId)
    assert.deepEqual(await readAutoReplies(pool, account.accountId, otherAgent), [])
    const other = await newAccount()
    assert.deepEqual(await readAutoReplies(pool, other.accountId, account.agentId), [])
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [{ autoReplyId, createdAt, ...reply }])
    assert.deepEqual(await listAutoReplies(pool, other.accountId), [])
    assert.ok((await listAutoReplies(pool)).some((listed) => listed.autoReplyId === autoReplyId))
  })

  test('is unique by keyword and agent, in any spelling and for concurrent calls', async () => {
    const account = await newAccount()
    const spellings = ['Łódź', 'lodz', 'LODZ!', 'łódź', 'Lódź', ' lodz', 'łodz', 'LÓDŹ']
    const tries = await Promise.allSettled(spellings.map((keyword) => addAutoReply(pool, { ...account, keyword })))
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    const [{ autoReplyId } = { autoReplyId: 0 }] = await listAutoReplies(pool, account.accountId)
    const message = `Automatic reply ${autoReplyId} already has the keyword "lodz"; remove it first.`
    for (const tried of tries) if (tried.status === 'rejected') assert.equal(tried.reason.message, message)
    await addAutoReply(pool, { ...account, agentId: await createAssignedAgent(pool, account.accountId), keyword: 'lodz' })
    assert.equal((await removeAutoReply(pool, autoReplyId)).keyword, 'lodz')
    await addAutoReply(pool, { ...account, keyword: 'lodz' })
  })

  test('is rejected with a sentence when it is invalid, and nothing is stored', async () => {
    const account = await newAccount()
    const { accountId } = account
    const other = await newAccount()
    const draft = await newTemplate(accountId, 'DRAFT')
    const good = { ...account, keyword: 'hours' }
    const keywordRule = 'A keyword must have at least one letter or digit, and at most 100 characters.'
    const mistakes: [typeof good, string][] = [
      [{ ...good, agentId: 'nobody' }, 'There is no agent nobody; see "herald agent list".'],
      [
        { ...good, agentId: other.agentId },
        `The agent ${other.agentId} is not assigned to account ${accountId}; "herald agent assign ${other.agentId} ${accountId}" assigns it.`,
      ],
      [{ ...good, accountId: 999_999 }, 'There is no account 999999; see "herald account list".'],
      [{ ...good, templateId: other.templateId }, `Account ${accountId} has no template ${other.templateId}.`],
      [{ ...good, templateId: 999_999 }, `Account ${accountId} has no template 999999.`],
      [{ ...good, templateId: draft }, `Template ${draft} is not approved; only approved templates can be sent.`],
      [{ ...good, keyword: '?!' }, keywordRule],
      [{ ...good, keyword: 'x'.repeat(101) }, keywordRule],
      [{ ...good, keyword: 'ß'.repeat(51) }, keywordRule],
    ]
    for (const [reply, message] of mistakes) await assert.rejects(addAutoReply(pool, reply), { message })
    assert.deepEqual(await listAutoReplies(pool, accountId), [])
    await addAutoReply(pool, { ...good, keyword: 'ß'.repeat(50) })
  })

  test('changes its keyword or its template, and keeps its id, its time and the rest', async () => {
    const account = await newAccount()
    const added = await addAutoReply(pool, { ...account, keyword: 'hours' })
    const renamed = await changeAutoReply(pool, added, { keyword: 'Otwarcie!' })
    assert.deepEqual(renamed, { ...added, keyword: 'otwarcie' })
    const templateId = await newTemplate(account.accountId)
    assert.deepEqual(await changeAutoReply(pool, added, { templateId }), { ...renamed, templateId })
    assert.deepEqual(
      await changeAutoReply(pool, added, { keyword: 'otwarcie' }),
      { ...renamed, templateId },
      'its own keyword is no conflict',
    )
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [{ ...renamed, templateId }])
    const next = await addAutoReply(pool, { ...account, keyword: 'prices' })
    assert.ok(next.autoReplyId > added.autoReplyId)
  })

  test('has both changes of two concurrent calls, and can be removed during a change', async () => {
    const account = await newAccount()
    const added = await addAutoReply(pool, { ...account, keyword: 'hours' })
    const templateId = await newTemplate(account.accountId)
    await atOnce(account, () => [changeAutoReply(pool, added, { keyword: 'prices' }), changeAutoReply(pool, added, { templateId })])
    const changed = { ...added, keyword: 'prices', templateId }
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [changed])
    const [change] = await atOnce(
      account,
      () => [changeAutoReply(pool, added, { keyword: 'hours' })],
      (tx) => removeAutoReply(tx, added.autoReplyId),
    )
    assert.match(String((change as PromiseRejectedResult).reason), /There is no automatic reply/)
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [])
  })

  test('does not stop two concurrent changes that swap keywords, or the end of the assignment', async () => {
    const account = await newAccount()
    const hours = await addAutoReply(pool, { ...account, keyword: 'hours' })
    const prices = await addAutoReply(pool, { ...account, keyword: 'prices' })
    const swaps = await atOnce(account, () => [
      changeAutoReply(pool, hours, { keyword: 'prices' }),
      changeAutoReply(pool, prices, { keyword: 'hours' }),
    ])
    for (const swap of swaps) assert.match(String((swap as PromiseRejectedResult).reason), /already has the keyword/)
    const [change, end] = await atOnce(account, () => [
      changeAutoReply(pool, hours, { keyword: 'opening' }),
      unassignAgent(pool, account.agentId, account.accountId),
    ])
    assert.equal(end?.status, 'fulfilled')
    assert.ok(change?.status === 'fulfilled' || /There is no automatic reply/.test(String(change?.reason)))
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [])
  })

  test('stays as it is when a change is rejected', async () => {
    const account = await newAccount()
    const added = await addAutoReply(pool, { ...account, keyword: 'hours' })
    const other = await addAutoReply(pool, { ...account, keyword: 'prices' })
    const draft = await newTemplate(account.accountId, 'DRAFT')
    const mistakes: [Parameters<typeof changeAutoReply>[2], string][] = [
      [{ keyword: 'Prices' }, `Automatic reply ${other.autoReplyId} already has the keyword "prices"; remove it first.`],
      [{ keyword: 'stop' }, '"stop" opts recipients out or in, and gets no automatic reply; choose another keyword.'],
      [{ templateId: draft }, `Template ${draft} is not approved; only approved templates can be sent.`],
    ]
    for (const [changes, message] of mistakes) await assert.rejects(changeAutoReply(pool, added, changes), { message })
    assert.deepEqual(await listAutoReplies(pool, account.accountId), [added, other])
    await assert.rejects(
      changeAutoReply(pool, { ...account, autoReplyId: 999_999 }, { keyword: 'x' }),
      /There is no automatic reply 999999/,
    )
  })

  test('is rejected with a sentence for an unknown id or account', async () => {
    await assert.rejects(removeAutoReply(pool, 999_999), {
      message: 'There is no automatic reply 999999; see "herald auto-reply list".',
    })
    await assert.rejects(listAutoReplies(pool, 999_999), {
      message: 'There is no account 999999; see "herald account list".',
    })
  })
})

describe('a number gets an automatic reply', () => {
  const PHONE = '+48500100200'
  const tries = async (accountId: number) =>
    (await Promise.all(Array.from({ length: 20 }, () => takeReplyTurn(pool, accountId, PHONE)))).filter(Boolean).length
  const backdate = (accountId: number, seconds: number) =>
    pool.query(`update auto_reply_turns set replied_at = clock_timestamp() - $2 * interval '1 second' where account_id = $1`, [
      accountId,
      seconds,
    ])

  test('once in a minute, for concurrent calls', async () => {
    assert.equal(await tries(1), 1)
    assert.equal(await tries(1), 0)
    await backdate(1, 50)
    assert.equal(await tries(1), 0)
    await backdate(1, 60)
    assert.equal(await tries(1), 1)
    assert.equal(await tries(1), 0)
  })

  test('once in a minute for each account, and each number', async () => {
    assert.equal(await takeReplyTurn(pool, 2, PHONE), true)
    assert.equal(await takeReplyTurn(pool, 3, PHONE), true)
    assert.equal(await takeReplyTurn(pool, 2, '+48500100201'), true)
    assert.equal(await takeReplyTurn(pool, 2, PHONE), false)
  })

  test('by another transaction when the first is rolled back', async () => {
    const rolledBack = transaction(pool, async (tx) => {
      assert.equal(await takeReplyTurn(tx, 4, PHONE), true)
      throw new Error('rolled back')
    })
    await assert.rejects(rolledBack, /rolled back/)
    assert.equal(await tries(4), 1)
  })

  test('a minute after the last reply, not after the start of its transaction', async () => {
    await transaction(pool, async (tx) => {
      await tx.query('select pg_sleep(0.05)')
      await takeReplyTurn(tx, 5, PHONE)
      const { rows } = await tx.query(
        "select replied_at > now() + interval '40 milliseconds' as late from auto_reply_turns where account_id = 5",
      )
      assert.equal(rows[0].late, true)
    })
  })
})
