import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { CHUNK, fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { applyRetention } from '../../src/delivery/retention.ts'
import { nameGroup, removeGroup, removeMember } from '../../src/groups/groups.ts'
import { putMembers } from '../../src/groups/put-members.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { untilBlocked } from '../delivery/locks.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { acceptedCampaign, makeAll, phone, phones, recipientsOf } from './support.ts'

// A campaign sends to the members that its groups had when it started, whatever happens to them since.

const { pool, hotPool } = await createTestDatabase()
const seed = randomInt(2 ** 31)

async function setUp(members: string[]) {
  const sender = await createSender(pool)
  const group = { accountId: sender.accountId, number: 1 }
  const add = async (...added: string[]) => {
    for (let from = 0; from < added.length; from += 1_000) {
      await putMembers(
        pool,
        group,
        added.slice(from, from + 1_000).map((member) => ({ phone: member })),
      )
    }
  }
  const create = async (...added: string[]) => {
    await nameGroup(pool, { ...group, name: 'A' })
    await add(...added)
  }
  await create(...members)
  return {
    ...sender,
    group,
    add,
    create,
    remove: (member: string) => removeMember(pool, group, member),
    removeAll: () => removeGroup(pool, group),
    accept: () => acceptedCampaign(pool, sender),
    start: async () => {
      const campaignId = await acceptedCampaign(pool, sender)
      await startDue(hotPool)
      return campaignId
    },
  }
}

const kept = async (accountId: number) =>
  (await pool.query('select phone from removed_members where account_id = $1 order by phone', [accountId])).rowCount

describe('a campaign', () => {
  test('still sends to members, and to a whole group, that were removed during its fan-out', async () => {
    const members = phones(0, 2 * CHUNK + 300)
    const { start, remove, removeAll, create, add } = await setUp(members)
    const campaignId = await start()
    await fanOut(hotPool, erased)
    await remove(phone(0))
    await remove(phone(CHUNK + 5))
    await add(phone(CHUNK + 5), phone(50_000))
    await fanOut(hotPool, erased)
    await removeAll()
    await create(phone(2 * CHUNK + 7), phone(60_000))
    await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, campaignId), members)
    const next = await start()
    await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, next), [phone(2 * CHUNK + 7), phone(60_000)])
  })

  test('sends to nobody twice if its last recipient so far is erased, and the one before was removed', async () => {
    const members = phones(0, CHUNK + 3)
    const { accountId, start, remove } = await setUp(members)
    const campaignId = await start()
    await fanOut(hotPool, erased)
    const [before = '', last = ''] = members.slice(CHUNK - 2)
    await remove(before)
    await erasePerson(pool, erased, { phone: last, accountId })
    await makeAll(hotPool)
    const recipients = await recipientsOf(pool, campaignId)
    assert.deepEqual(
      recipients.filter((recipient) => members.includes(recipient)),
      members.filter((member) => member !== last),
    )
    assert.equal(recipients.length, members.length)
  })

  test('that is scheduled sends to nobody of a group that is removed before it starts', async () => {
    const { accept, removeAll } = await setUp(phones(0, 3))
    const campaignId = await accept()
    await removeAll()
    await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, campaignId), [])
  })

  test('that starts while its group is being removed sends to all members', async () => {
    const members = phones(0, CHUNK + 10)
    const { start, removeAll } = await setUp(members)
    const holder = await pool.connect()
    await holder.query('begin; lock table removed_members in share mode')
    const removing = removeAll()
    await untilBlocked(pool, 1)
    const campaignId = await start()
    await fanOut(hotPool, erased)
    await holder.query('commit')
    holder.release()
    await removing
    await makeAll(hotPool)
    assert.deepEqual(await recipientsOf(pool, campaignId), members)
  })

  test('sends to the members that its groups had at its start, whatever changes before its fan-out', async () => {
    const some = fc.subarray(phones(0, 6), { minLength: 1 })
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), who: some }),
      fc.record({ do: fc.constant('remove' as const), who: some }),
      fc.record({ do: fc.constantFrom('remove-all', 'start', 'fan-out'), who: fc.constant<string[]>([]) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const { start, add, remove, removeAll, create } = await setUp([])
        let members = new Set<string>()
        const expected = new Map<string, string[]>()
        const actions = {
          add: async (who: string[]) => {
            await add(...who)
            members = members.union(new Set(who))
          },
          remove: async (who: string[]) => {
            for (const member of who) await remove(member)
            members = members.difference(new Set(who))
          },
          'remove-all': async () => {
            await removeAll()
            await create()
            members = new Set()
          },
          start: async () => void expected.set(await start(), [...members].sort()),
          'fan-out': () => fanOut(hotPool, erased),
        }
        for (const { do: action, who } of steps) await actions[action as keyof typeof actions](who)
        await makeAll(hotPool)
        for (const [campaignId, recipients] of expected) assert.deepEqual(await recipientsOf(pool, campaignId), recipients)
      }),
      { seed, numRuns: 30 },
    )
  })
})

test('retention deletes removed members after an hour, unless a campaign in fan-out needs them', async () => {
  const { accountId, start, remove, accept } = await setUp(phones(0, 3))
  const campaignId = await start()
  await moveCampaign(pool, campaignId, 'PAUSED')
  await remove(phone(1))
  const age = () =>
    pool.query(`update removed_members set removed_at = removed_at - interval '61 minutes' where account_id = $1`, [accountId])
  await age()
  await applyRetention(pool)
  assert.equal(await kept(accountId), 1)
  await moveCampaign(pool, campaignId, 'RUNNING')
  await makeAll(hotPool)
  assert.deepEqual(await recipientsOf(pool, campaignId), phones(0, 3))
  await remove(phone(2))
  await accept()
  await applyRetention(pool)
  assert.equal(await kept(accountId), 1, 'the other was removed just now')
  await age()
  await applyRetention(pool)
  assert.equal(await kept(accountId), 0)
})
