import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { transaction } from '../../src/db/pool.ts'
import { changeOptOut, listOptOuts, type OptOut, type OptOutChange, type OptOutKey, recordOptOut } from '../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../support/database.ts'
import { createAssignedAgent, createCaller } from '../support/service.ts'

const { hotPool: pool } = await createTestDatabase()
const { accountId } = await createCaller(pool)
const agentId = await createAssignedAgent(pool, accountId)
const EARLIER = Date.parse('2026-01-31T08:00:00Z')

let people = 0
function somebody(): OptOutKey {
  people += 1
  return { accountId, agentId, phone: `+4850010${String(people).padStart(4, '0')}` }
}

function said(key: OptOutKey, word: 'STOP' | 'START', second: number): OptOutChange {
  return { ...key, optedOut: word === 'STOP', source: 'word', at: new Date(EARLIER + second * 1_000) }
}

async function isOut({ accountId, agentId, phone }: OptOutKey): Promise<boolean | undefined> {
  const { rows } = await pool.query('select opted_out as out from opt_outs where account_id = $1 and agent_id = $2 and phone = $3', [
    accountId,
    agentId,
    phone,
  ])
  return rows[0]?.out
}

describe('what somebody says about getting messages', () => {
  test('changes something when it is said, and nothing when it is said again', async () => {
    const key = somebody()
    const changes: boolean[] = []
    for (const [second, word] of (['START', 'STOP', 'STOP', 'START', 'START', 'STOP'] as const).entries()) {
      changes.push(await recordOptOut(pool, said(key, word, second)))
    }
    assert.deepEqual(changes, [false, true, false, true, false, true])
    assert.equal(await isOut(key), true)
  })

  test('is settled by what was said last, in whichever order it arrives', async () => {
    const words = (['STOP', 'START', 'STOP', 'START'] as const).map((word, second) => ({ word, second }))
    for (const all of [words.slice(0, 3), words.slice(1)]) {
      for (const order of permutations(all)) {
        const key = somebody()
        let state = false
        for (const { word, second } of order) {
          const changed = await recordOptOut(pool, said(key, word, second))
          if (changed) state = !state
          assert.equal(await isOut(key), state, 'every change is told, and nothing else')
        }
        assert.equal(state, all.at(-1)?.word === 'STOP', JSON.stringify(order))
      }
    }
  })

  test('said once and heard by many at once changes something once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = somebody()
      const atOnce = async (word: 'STOP' | 'START', second: number) =>
        (await Promise.all(Array.from({ length: 10 }, (_, index) => recordOptOut(pool, said(key, word, second + index))))).filter(Boolean)
          .length
      assert.equal(await atOnce('STOP', 0), 1, 'nobody knew them before')
      assert.equal(await atOnce('STOP', 10), 0)
      assert.equal(await atOnce('START', 20), 1)
    }
  })

  test('is settled by what was said last, also where all of it arrives at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = somebody()
      const seconds = Array.from({ length: 10 }, (_, index) => (index * 7 + round) % 10)
      await Promise.all(seconds.map((second) => recordOptOut(pool, said(key, (second + round) % 2 === 0 ? 'STOP' : 'START', second))))
      assert.equal(await isOut(key), (9 + round) % 2 === 0)
    }
  })

  test('in the future, by a clock that is off, does not make us deaf to what is said after it', async () => {
    const key = somebody()
    const inAYear = new Date(Date.now() + 365 * 86_400_000)
    await recordOptOut(pool, { ...key, optedOut: true, source: 'word', at: inAYear })
    assert.equal(await recordOptOut(pool, { ...key, optedOut: false, source: 'word', at: inAYear }), true)
    assert.equal(await recordOptOut(pool, { ...key, optedOut: true, source: 'operator' }), true)
  })

  test('is about one agent of one account, and one number', async () => {
    const key = somebody()
    const other = await createCaller(pool)
    const others = [
      somebody(),
      { ...key, agentId: await createAssignedAgent(pool, accountId) },
      { accountId: other.accountId, agentId: await createAssignedAgent(pool, other.accountId), phone: key.phone },
    ]
    await recordOptOut(pool, said(key, 'STOP', 0))
    for (const apart of others) assert.equal(await isOut(apart), undefined)
  })

  test('is unsaid where the transaction is rolled back', async () => {
    const key = somebody()
    const rolledBack = transaction(pool, async (tx) => {
      assert.equal(await recordOptOut(tx, said(key, 'STOP', 0)), true)
      throw new Error('rolled back')
    })
    await assert.rejects(rolledBack, /rolled back/)
    assert.equal(await isOut(key), undefined)
  })
})

describe('an operator', () => {
  test('opts somebody out, twice if they like, and in again, once', async () => {
    const key = somebody()
    const { changedAt, ...out } = await changeOptOut(pool, key, true)
    assert.deepEqual(out, { ...key, optedOut: true, source: 'operator' })
    assert.ok(Math.abs(changedAt.getTime() - Date.now()) < 60_000)
    assert.equal((await changeOptOut(pool, key, true)).optedOut, true)
    const tries = await Promise.allSettled([1, 2, 3].map(() => changeOptOut(pool, key, false)))
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal(await isOut(key), false)
  })

  test('who opts in somebody that is not out is told so, and a STOP that is under way is still heard', async () => {
    const key = somebody()
    await assert.rejects(changeOptOut(pool, key, false), {
      message: `${key.phone} is not opted out of messages from agent ${agentId} of account ${accountId}.`,
    })
    assert.equal(await recordOptOut(pool, said(key, 'STOP', 0)), true)
  })

  test('who names an agent that the account does not have is told so', async () => {
    for (const wrong of [
      { ...somebody(), agentId: 'nobody' },
      { ...somebody(), accountId: 999_999 },
    ]) {
      for (const optedOut of [true, false]) {
        await assert.rejects(changeOptOut(pool, wrong, optedOut), {
          message: `The agent ${wrong.agentId} is not assigned to account ${wrong.accountId}, or one of the two does not exist; see "herald agent list" and "herald account list".`,
        })
      }
    }
  })
})

describe('the list of who is out', () => {
  async function listed(id: number, pageRows: number, between: (page: OptOut[]) => Promise<void> = async () => {}): Promise<OptOut[]> {
    const all: OptOut[] = []
    for await (const page of listOptOuts(pool, id, pageRows)) {
      assert.ok(page.length > 0 && page.length <= pageRows)
      all.push(...page)
      await between(page)
    }
    return all
  }

  test('has everybody who is out, once, and nobody who is in again or of another account, however it is cut into pages', async () => {
    const mine = await createCaller(pool)
    const agents = [await createAssignedAgent(pool, mine.accountId), await createAssignedAgent(pool, mine.accountId)]
    const keys = agents.flatMap((agent) =>
      ['+48500100201', '+48500100202', '+48500100203'].map((phone) => ({ accountId: mine.accountId, agentId: agent, phone })),
    )
    for (const key of keys) await recordOptOut(pool, said(key, 'STOP', 0))
    await recordOptOut(pool, said({ accountId: mine.accountId, agentId: agents[0] as string, phone: '+48500100209' }, 'START', 0))
    const expected = keys.map((key) => ({ ...key, optedOut: true, source: 'word', changedAt: new Date(EARLIER) }))
    for (const pageRows of [1, 2, 3, 6, 7]) assert.deepEqual(await listed(mine.accountId, pageRows), expected)

    // One that is read goes, one that is still to come goes, one comes: whoever stays is there once.
    const turns = [
      () => recordOptOut(pool, said(keys[0] as OptOutKey, 'START', 1)),
      () => recordOptOut(pool, said(keys[5] as OptOutKey, 'START', 1)),
    ]
    const phones = (await listed(mine.accountId, 2, async () => void (await turns.shift()?.()))).map(
      ({ agentId: agent, phone }) => `${agent} ${phone}`,
    )
    assert.deepEqual(
      phones,
      keys.slice(0, 5).map(({ agentId: agent, phone }) => `${agent} ${phone}`),
    )
  })

  test('of an account that is not there is a mistake, of one that nobody has left is empty', async () => {
    await assert.rejects(listed(999_999, 10), { message: 'There is no account 999999; see "herald account list".' })
    const { accountId: empty } = await createCaller(pool)
    assert.deepEqual(await listed(empty, 10), [])
  })
})

function permutations<T>(items: T[]): T[][] {
  if (items.length < 2) return [items]
  return items.flatMap((item, index) => permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]))
}
