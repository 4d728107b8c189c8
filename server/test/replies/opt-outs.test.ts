import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { transaction } from '../../src/db/pool.ts'
import {
  changeOptOut,
  findOptOuts,
  listOptOuts,
  type OptOut,
  type OptOutChange,
  type OptOutKey,
  recordOptOut,
  setOptOut,
} from '../../src/replies/opt-outs.ts'
import { createTestDatabase } from '../support/database.ts'
import { createAssignedAgent, createCaller } from '../support/service.ts'

const { hotPool: pool } = await createTestDatabase()
const { accountId } = await createCaller(pool)
const agentId = await createAssignedAgent(pool, accountId)
const EARLIER = Date.parse('2026-01-31T08:00:00Z')

let people = 0
function newKey(): OptOutKey {
  people += 1
  return { accountId, agentId, phone: `+4850010${String(people).padStart(4, '0')}` }
}

function said(key: OptOutKey, word: 'STOP' | 'START', second: number): OptOutChange {
  return { ...key, optedOut: word === 'STOP', source: 'word', at: new Date(EARLIER + second * 1_000) }
}

const record = (change: OptOutChange) => transaction(pool, (tx) => recordOptOut(tx, change))

async function isOut({ accountId, agentId, phone }: OptOutKey): Promise<boolean | undefined> {
  const { rows } = await pool.query('select opted_out as out from opt_outs where account_id = $1 and agent_id = $2 and phone = $3', [
    accountId,
    agentId,
    phone,
  ])
  return rows[0]?.out
}

describe('an opt-out or opt-in', () => {
  test('changes something once, and nothing when it is repeated', async () => {
    const key = newKey()
    const changes: boolean[] = []
    for (const [second, word] of (['START', 'STOP', 'STOP', 'START', 'START', 'STOP'] as const).entries()) {
      changes.push(await record(said(key, word, second)))
    }
    assert.deepEqual(changes, [false, true, false, true, false, true])
    assert.equal(await isOut(key), true)
  })

  test('is decided by the latest time, in any order of arrival', async () => {
    const words = (['STOP', 'START', 'STOP', 'START'] as const).map((word, second) => ({ word, second }))
    for (const all of [words.slice(0, 3), words.slice(1)]) {
      for (const order of permutations(all)) {
        const key = newKey()
        let state = false
        for (const { word, second } of order) {
          const changed = await record(said(key, word, second))
          if (changed) state = !state
          assert.equal(await isOut(key), state, 'it returns whether it changed the state')
        }
        assert.equal(state, all.at(-1)?.word === 'STOP', JSON.stringify(order))
      }
    }
  })

  test('changes something once for concurrent calls', async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = newKey()
      const atOnce = async (word: 'STOP' | 'START', second: number) =>
        (await Promise.all(Array.from({ length: 10 }, (_, index) => record(said(key, word, second + index))))).filter(Boolean).length
      assert.equal(await atOnce('STOP', 0), 1, 'the first of a new number')
      assert.equal(await atOnce('STOP', 10), 0)
      assert.equal(await atOnce('START', 20), 1)
    }
  })

  test('is decided by the latest time for concurrent calls', async () => {
    for (let round = 0; round < 5; round += 1) {
      const key = newKey()
      const seconds = Array.from({ length: 10 }, (_, index) => (index * 7 + round) % 10)
      await Promise.all(seconds.map((second) => record(said(key, (second + round) % 2 === 0 ? 'STOP' : 'START', second))))
      assert.equal(await isOut(key), (9 + round) % 2 === 0)
    }
  })

  test('with a time in the future does not block later ones', async () => {
    const key = newKey()
    const inAYear = new Date(Date.now() + 365 * 86_400_000)
    await record({ ...key, optedOut: true, source: 'word', at: inAYear })
    assert.equal(await record({ ...key, optedOut: false, source: 'word', at: inAYear }), true)
    assert.equal(await record({ ...key, optedOut: true, source: 'operator' }), true)
  })

  test('is for one agent of one account and one number', async () => {
    const key = newKey()
    const other = await createCaller(pool)
    const others = [
      newKey(),
      { ...key, agentId: await createAssignedAgent(pool, accountId) },
      { accountId: other.accountId, agentId: await createAssignedAgent(pool, other.accountId), phone: key.phone },
    ]
    await record(said(key, 'STOP', 0))
    for (const apart of others) assert.equal(await isOut(apart), undefined)
  })

  test('is rolled back with its transaction', async () => {
    const key = newKey()
    const rolledBack = transaction(pool, async (tx) => {
      assert.equal(await recordOptOut(tx, said(key, 'STOP', 0)), true)
      throw new Error('rolled back')
    })
    await assert.rejects(rolledBack, /rolled back/)
    assert.equal(await isOut(key), undefined)
  })
})

describe('an operator', () => {
  test('opts a number out repeatedly, and in again once', async () => {
    const key = newKey()
    const [{ changedAt, ...out }] = (await changeOptOut(pool, key, true)).after as [OptOut]
    assert.deepEqual(out, { ...key, optedOut: true, block: false, source: 'operator' })
    assert.ok(Math.abs(changedAt.getTime() - Date.now()) < 60_000)
    assert.equal((await changeOptOut(pool, key, true)).after[0]?.optedOut, true)
    const tries = await Promise.allSettled([1, 2, 3].map(() => changeOptOut(pool, key, false)))
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal(await isOut(key), false)
  })

  test('is rejected when the number is not opted out, and a later STOP still counts', async () => {
    const key = newKey()
    await assert.rejects(changeOptOut(pool, key, false), {
      message: `${key.phone} is not opted out of messages from agent ${agentId} of account ${accountId}.`,
    })
    assert.equal(await record(said(key, 'STOP', 0)), true)
  })

  test('is rejected for an agent that is not assigned to the account', async () => {
    for (const [wrong, message] of [
      [{ ...newKey(), agentId: 'nobody' }, 'There is no agent nobody; see "herald agent list".'],
      [{ ...newKey(), accountId: 999_999 }, 'There is no account 999999; see "herald account list".'],
    ] as const) {
      for (const optedOut of [true, false]) {
        await assert.rejects(changeOptOut(pool, wrong, optedOut), { message })
      }
    }
  })
})

describe('a change for all agents', () => {
  /** Times of texts have milliseconds, those of changes microseconds: in the same millisecond, a later text could seem earlier. */
  async function nextMillisecond(): Promise<Date> {
    const begin = Date.now()
    while (Date.now() === begin) await setImmediate()
    return new Date()
  }

  /** An account with two agents, and the states of a number by agent: `out`, `in`, `blocked`, or `-` if there was no change. */
  async function twoAgents() {
    const { accountId: account } = await createCaller(pool)
    const agents = [await createAssignedAgent(pool, account), await createAssignedAgent(pool, account)] as [string, string]
    const phone = '+48500100200'
    const stateOf = ({ optedOut, block }: OptOut) => (block ? 'blocked' : optedOut ? 'out' : 'in')
    const states = async (ids: string[] = agents) => {
      const found = new Map((await findOptOuts(pool, { accountId: account, phone })).map((each) => [each.agentId, stateOf(each)]))
      return ids.map((id) => found.get(id) ?? '-').join(' ')
    }
    const set = (optedOut: boolean, { agentId: one, block = false }: { agentId?: string; block?: boolean } = {}) =>
      setOptOut(pool, { accountId: account, agentId: one, phone, optedOut, block, source: 'api' })
    const say = async (word: 'STOP' | 'START', agent: string, at?: Date) =>
      await record({
        accountId: account,
        agentId: agent,
        phone,
        optedOut: word === 'STOP',
        source: 'word',
        at: at ?? (await nextMillisecond()),
      })
    return { account, agents, phone, states, set, say }
  }

  test('counts for agents that are assigned later', async () => {
    const { account, agents, states, set } = await twoAgents()
    await set(true, { block: true })
    const later = await createAssignedAgent(pool, account)
    assert.equal(await states([...agents, later]), 'blocked blocked blocked')
    await set(false)
    assert.equal(await states([...agents, later]), 'in in in')
  })

  test('and a change for one agent count by their times, the latest first', async () => {
    const { agents, states, set, say } = await twoAgents()
    const [first, second] = agents
    const hourAgo = new Date(Date.now() - 3_600_000)
    await set(true, { agentId: first, block: true })
    assert.equal(await states(), 'blocked -')
    await set(true)
    assert.equal(await states(), 'out out')
    await set(false, { agentId: second })
    assert.equal(await states(), 'out in')
    assert.equal(await say('START', first, hourAgo), false, 'it was written before the account opted them out')
    assert.equal(await states(), 'out in')
    assert.equal(await say('START', first), true)
    assert.equal(await states(), 'in in')
    assert.equal(await say('STOP', second), true)
    assert.equal(await states(), 'in out')
    await set(false)
    assert.equal(await states(), 'in in')
    assert.equal(await say('STOP', second, hourAgo), false)
    assert.equal(await states(), 'in in')
  })

  test('with a block is ended by the account, not by START, and STOP keeps it', async () => {
    for (const isOfOne of [false, true]) {
      const { agents, states, set, say } = await twoAgents()
      const [first, second] = agents
      const of = isOfOne ? { agentId: first } : {}
      await set(true, { ...of, block: true })
      assert.equal(await say('START', first), false)
      assert.equal(await say('STOP', first), false)
      assert.equal(await say('START', first), false)
      assert.equal(await states(), `blocked ${isOfOne ? '-' : 'blocked'}`)
      await set(true, of)
      assert.equal(await states(), `out ${isOfOne ? '-' : 'out'}`)
      assert.equal(await say('START', second), !isOfOne)
      assert.equal(await say('START', first), true)
    }
  })

  test('that opts in writes nothing if the recipient is not opted out, and a STOP from before still counts', async () => {
    const { agents, states, set, say } = await twoAgents()
    await set(false)
    assert.equal(await states(), '- -')
    assert.equal(await say('STOP', agents[0], new Date(EARLIER)), true)
  })

  test('is not lost if START and STOP arrive at the same time', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { agents, states, set, say } = await twoAgents()
      const words = agents.flatMap((agent) => [say('START', agent), say('STOP', agent), say('START', agent)])
      await Promise.all([...words, set(true, { block: true })])
      assert.equal(await states(), 'blocked blocked')
    }
  })
})

describe('the list of opt-outs', () => {
  async function listed(id: number, pageRows: number, between: (page: OptOut[]) => Promise<void> = async () => {}): Promise<OptOut[]> {
    const all: OptOut[] = []
    for await (const page of listOptOuts(pool, id, pageRows)) {
      assert.ok(page.length > 0 && page.length <= pageRows)
      all.push(...page)
      await between(page)
    }
    return all
  }

  test('has each opted-out number of the account once, with any page size and during changes', async () => {
    const mine = await createCaller(pool)
    const agents = [await createAssignedAgent(pool, mine.accountId), await createAssignedAgent(pool, mine.accountId)]
    const keys = agents.flatMap((agent) =>
      ['+48500100201', '+48500100202', '+48500100203'].map((phone) => ({ accountId: mine.accountId, agentId: agent, phone })),
    )
    for (const key of keys) await record(said(key, 'STOP', 0))
    await record(said({ accountId: mine.accountId, agentId: agents[0] as string, phone: '+48500100209' }, 'START', 0))
    const expected = keys.map((key) => ({ ...key, optedOut: true, block: false, source: 'word', changedAt: new Date(EARLIER) }))
    for (const pageRows of [1, 2, 3, 6, 7]) assert.deepEqual(await listed(mine.accountId, pageRows), expected)

    // During the walk, a number that was listed and one that was not opt in again.
    const turns = [() => record(said(keys[0] as OptOutKey, 'START', 1)), () => record(said(keys[5] as OptOutKey, 'START', 1))]
    const phones = (await listed(mine.accountId, 2, async () => void (await turns.shift()?.()))).map(
      ({ agentId: agent, phone }) => `${agent} ${phone}`,
    )
    assert.deepEqual(
      phones,
      keys.slice(0, 5).map(({ agentId: agent, phone }) => `${agent} ${phone}`),
    )
  })

  test('has an opt-out of all agents once for each agent, unless a later change of the agent ended it', async () => {
    const mine = await createCaller(pool)
    const agents = [await createAssignedAgent(pool, mine.accountId), await createAssignedAgent(pool, mine.accountId)].sort()
    const change = (phone: string, optedOut: boolean, of?: string) =>
      setOptOut(pool, { accountId: mine.accountId, agentId: of, phone, optedOut, block: false, source: 'api' })
    await change('+48500100202', true, agents[0])
    await change('+48500100202', true)
    await change('+48500100203', true)
    await change('+48500100203', false, agents[0])
    await change('+48500100201', true, agents[1])
    await change('+48500100204', true, agents[1])
    await change('+48500100204', true)
    await change('+48500100204', false)
    const expected = [`${agents[0]} +48500100202`, ...[1, 2, 3].map((n) => `${agents[1]} +4850010020${n}`)]
    for (const pageRows of [1, 2, 3, 5]) {
      assert.deepEqual(
        (await listed(mine.accountId, pageRows)).map(({ agentId: agent, phone }) => `${agent} ${phone}`),
        expected,
      )
    }
  })

  test('is rejected for an unknown account, and empty for one without opt-outs', async () => {
    await assert.rejects(listed(999_999, 10), { message: 'There is no account 999999; see "herald account list".' })
    const { accountId: empty } = await createCaller(pool)
    assert.deepEqual(await listed(empty, 10), [])
  })
})

function permutations<T>(items: T[]): T[][] {
  if (items.length < 2) return [items]
  return items.flatMap((item, index) => permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]))
}
