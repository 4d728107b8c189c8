import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { afterEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import { createHotPool, type Executor, transaction } from '../../src/db/pool.ts'
import { CHUNK, fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { importGroup } from '../../src/groups/import.ts'
import { createTemplate, deleteTemplate, replaceTemplate } from '../../src/templates/templates.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { until } from '../support/until.ts'
import { acceptedCampaign, assertCountersEqualRows, fillGroup, fillGroups, makeAll, phone, phones, recipientsOf } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages are removed between the tests' })
const seed = randomInt(2 ** 31)

/** A campaign of a new account to these groups. */
async function campaignTo(groups: string[][]) {
  const sender = await createSender(pool)
  await fillGroups(pool, sender.accountId, new Map(groups.map((members, index) => [index + 1, members])))
  const campaignId = await acceptedCampaign(pool, sender, { segmentIds: groups.map((_, index) => index + 1) })
  return { ...sender, campaignId }
}

function union(groups: string[][]): string[] {
  return [...new Set(groups.flat())].sort()
}

/** Each number has one message, which is queued and counted. */
async function assertMade(campaignId: string, expected: string[]): Promise<void> {
  const recipients = await recipientsOf(pool, campaignId)
  const [reached, wanted] = [new Set(recipients), new Set(expected)]
  // Not the lists themselves: the diff of two lists of thousands takes a minute.
  const wrong = {
    twice: recipients.length - reached.size,
    missing: [...wanted.difference(reached)],
    extra: [...reached.difference(wanted)],
  }
  assert.deepEqual({ ...wrong, missing: wrong.missing.slice(0, 3), extra: wrong.extra.slice(0, 3) }, { twice: 0, missing: [], extra: [] })
  const { rows } = await pool.query(
    `select count(*) as messages, count(q.message_id) as queued,
       count(*) filter (where q.campaign_id = m.campaign_id and q.priority = 2 and m.traffic = 'PROMOTION' and q.expires_at = m.expires_at) as fitting
     from messages m left join queue q on q.message_id = m.id where m.campaign_id = $1`,
    [campaignId],
  )
  const { length } = expected
  assert.deepEqual(rows[0], { messages: length, queued: length, fitting: length })
  const campaign = await findCampaign(pool, campaignId)
  assert.deepEqual([campaign.recipients, campaign.counts.ACCEPTED], [length, length])
  const counted = await pool.query('select coalesce(sum(accepted), 0)::int as accepted from report_deltas where campaign_id = $1', [
    campaignId,
  ])
  assert.deepEqual(counted.rows, [{ accepted: length }])
}

afterEach(async () => {
  await ownerOf(pool).query('truncate queue, expiries, messages, campaigns, report_totals, report_deltas')
})

/** Imports a file of an operator. */
async function importInto(accountId: number, number: number, numbers: string[]): Promise<void> {
  const source = (async function* () {
    yield Buffer.from(['phone', ...numbers].join('\n'))
  })()
  await importGroup(pool, { accountId, number, source })
}

describe('the fan-out of a campaign', () => {
  test('reaches each number once for groups that overlap, differ in size or are empty', async () => {
    const groups = [phones(0, 4_000), [], phones(3_990, 20), phones(2_000, 1), phones(0, 1_000), [], phones(90_000, 200)]
    const { campaignId } = await campaignTo(groups)
    const chunks = await makeAll(pool)
    assert.ok(
      chunks.every((made) => made <= CHUNK),
      `${chunks}`,
    )
    await assertMade(campaignId, union(groups))
  })

  test('takes few chunks for 100 groups with separate ranges of numbers', async () => {
    const groups = Array.from({ length: 100 }, (_, index) => phones(index * 1_000, 60 + index))
    const { campaignId } = await campaignTo(groups)
    const chunks = await makeAll(pool)
    assert.ok(chunks.length <= 12, `10,950 messages took ${chunks.length} chunks`)
    await assertMade(campaignId, union(groups))
  })

  test('completes with no message for empty groups', async () => {
    const { campaignId } = await campaignTo([[], []])
    assert.deepEqual(await makeAll(pool), [0])
    assert.equal((await findCampaign(pool, campaignId)).recipients, 0)
  })

  test('reaches each number once around the size of a chunk', async () => {
    for (const count of [CHUNK - 1, CHUNK, CHUNK + 1]) {
      const { campaignId } = await campaignTo([phones(0, count)])
      await makeAll(pool)
      assert.equal(new Set(await recipientsOf(pool, campaignId)).size, count)
      await assertCountersEqualRows(pool, campaignId)
    }
  })

  test('leaves out members added after its start, and the same group number of another account', async () => {
    const { campaignId, accountId } = await campaignTo([phones(0, 10)])
    const stranger = await createSender(pool)
    await fillGroup(pool, stranger.accountId, 1, phones(500, 10))
    await startDue(pool)
    await importInto(accountId, 1, phones(5, 20))
    await makeAll(pool)
    await assertMade(campaignId, phones(0, 10))
  })

  test('leaves out an import that commits after its start', async () => {
    const { campaignId, accountId } = await campaignTo([phones(0, 10)])
    let importing: Promise<void> | undefined
    await transaction(pool, async (tx) => {
      await tx.query('select from groups where account_id = $1 and number = 1 for update', [accountId])
      importing = importInto(accountId, 1, phones(5, 20))
      await until('the import waits for its last step', async () => {
        return (await ownerOf(pool).query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
          .rowCount
      })
      await startDue(pool)
    })
    await importing
    await makeAll(pool)
    await assertMade(campaignId, phones(0, 10))
  })

  test('includes members added between its acceptance and its start', async () => {
    const { campaignId, accountId } = await campaignTo([phones(0, 10)])
    await fillGroup(pool, accountId, 1, phones(10, 5))
    await pool.query('delete from group_members where account_id = $1 and phone = $2', [accountId, phone(3)])
    await makeAll(pool)
    await assertMade(
      campaignId,
      phones(0, 15).filter((number) => number !== phone(3)),
    )
  })

  test(`reaches exactly the union of any groups (fast-check, seed ${seed})`, async () => {
    // Dense and sparse, near and far groups; most runs take several chunks.
    const group = fc.record({ from: fc.nat(2_000), count: fc.nat(400), step: fc.integer({ min: 1, max: 9 }) })
    const groups = fc.oneof(
      fc.array(group, { minLength: 1, maxLength: 5, size: 'max' }),
      fc.array(group, { minLength: 60, maxLength: 100, size: 'max' }),
    )
    await fc.assert(
      fc.asyncProperty(groups, async (drawn) => {
        const members = drawn.map(({ from, count, step }) => Array.from({ length: count }, (_, index) => phone(from + index * step)))
        const { campaignId } = await campaignTo(members)
        await makeAll(pool)
        await assertMade(campaignId, union(members))
      }),
      { numRuns: 5, seed, endOnFailure: true },
    )
  })
})

/** Starts a chunk, and calls `meanwhile` with its connection while it waits in the middle of its inserts. */
async function duringChunk(meanwhile: (tx: Executor, pid: number) => Promise<unknown>): Promise<PromiseSettledResult<unknown>> {
  const worker = createHotPool({ connectionString: url }, () => {})
  let chunk: Promise<[PromiseSettledResult<unknown>]> | undefined
  try {
    await transaction(pool, async (tx) => {
      await tx.query('lock table queue in share mode')
      chunk = Promise.allSettled([fanOut(worker, erased)])
      const pid = await until('it waits in the middle', async () => {
        const { rows } = await pool.query<{ pid: number }>(`select pid from pg_locks where relation = 'queue'::regclass and not granted`)
        return rows[0]?.pid
      })
      await meanwhile(tx, pid)
    })
    return (await (chunk as NonNullable<typeof chunk>))[0]
  } finally {
    await worker.end()
  }
}

describe('each number gets exactly one message', () => {
  test('when the worker dies in the middle of every chunk', async () => {
    const groups = [phones(0, 1_500), phones(1_000, 1_300)]
    const { campaignId } = await campaignTo(groups)
    await startDue(pool)
    for (let isLeft = true; isLeft; ) {
      const before = await findCampaign(pool, campaignId)
      const { status } = await duringChunk((_tx, pid) => ownerOf(pool).query('select pg_terminate_backend($1)', [pid]))
      assert.equal(status, 'rejected')
      assert.deepEqual(await findCampaign(pool, campaignId), before, 'nothing is left of the chunk')
      await assertCountersEqualRows(pool, campaignId)
      isLeft = (await fanOut(pool, erased)).created > 0 && (await findCampaign(pool, campaignId)).recipients < 2_300
    }
    await makeAll(pool)
    await assertMade(campaignId, phones(0, 2_300))
  })

  test('when several workers fan out concurrently', async () => {
    const groups = [phones(0, 2_000), phones(1_000, 2_000)]
    const first = await campaignTo(groups)
    const second = await campaignTo([phones(0, 2_500)])
    await Promise.all([makeAll(pool), makeAll(pool), makeAll(pool)])
    await makeAll(pool)
    await assertMade(first.campaignId, phones(0, 3_000))
    await assertMade(second.campaignId, phones(0, 2_500))
  })

  test('when the campaign is paused during a chunk and resumed later', async () => {
    const { campaignId } = await campaignTo([phones(0, 1_200)])
    await startDue(pool)
    let paused: Promise<unknown> | undefined
    await duringChunk(async () => {
      paused = moveCampaign(pool, campaignId, 'PAUSED')
    })
    await paused
    assert.deepEqual(await fanOut(pool, erased), { created: 0, mayBeMore: false })
    assert.equal((await recipientsOf(pool, campaignId)).length, CHUNK)
    await moveCampaign(pool, campaignId, 'RUNNING')
    await makeAll(pool)
    await assertMade(campaignId, phones(0, 1_200))
  })

  test('and a small campaign does not wait for a large one', async () => {
    const large = await campaignTo([phones(0, 1_200)])
    await startDue(pool)
    await fanOut(pool, erased)
    const small = await campaignTo([phones(0, 10)])
    await startDue(pool)
    await fanOut(pool, erased)
    assert.deepEqual(
      [(await recipientsOf(pool, large.campaignId)).length, (await recipientsOf(pool, small.campaignId)).length],
      [CHUNK, 10],
    )
  })
})

test('names a campaign whose fan-out fails, skips it for others, and continues it later', async () => {
  const [broken, other] = [await campaignTo([phones(0, 5)]), await campaignTo([phones(0, 7)])]
  await startDue(pool)
  await ownerOf(pool).query(`create function fail() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`)
  await ownerOf(pool).query(
    `create trigger fail before update on campaigns for each row when (old.id = '${broken.campaignId}') execute function fail()`,
  )
  assert.equal((await fanOut(pool, erased)).failed?.campaignId, broken.campaignId)
  assert.deepEqual(await fanOut(pool, erased, { skipped: [broken.campaignId] }), { created: 7, mayBeMore: true })
  assert.deepEqual(await fanOut(pool, erased, { skipped: [broken.campaignId] }), { created: 0, mayBeMore: false })
  await assertMade(other.campaignId, phones(0, 7))
  await ownerOf(pool).query('drop function fail cascade')
  await makeAll(pool)
  await assertMade(broken.campaignId, phones(0, 5))
})

test('keeps the content of its acceptance when the template is replaced or deleted', async () => {
  const sender = await createSender(pool)
  const { accountId } = sender
  await fillGroup(pool, accountId, 1, phones(0, 3))
  const template = (content: string) => ({
    name: 'T',
    basic: false,
    status: 'APPROVED' as const,
    message: { type: 'MESSAGE' as const, content },
  })
  const { id } = await createTemplate(pool, accountId, template('one'))
  const first = await acceptedCampaign(pool, sender, { message: { templateId: id } })
  await replaceTemplate(pool, accountId, id, template('two'))
  const second = await acceptedCampaign(pool, sender, { message: { templateId: id } })
  await deleteTemplate(pool, accountId, id)
  await makeAll(pool)
  for (const [campaignId, content] of [
    [first, 'one'],
    [second, 'two'],
  ] as const) {
    const { rows } = await pool.query(
      `select distinct c.message ->> 'content' as content, count(*) from messages m join contents c on c.id = m.content_id where m.campaign_id = $1 group by 1`,
      [campaignId],
    )
    assert.deepEqual(rows, [{ content, count: 3 }])
  }
})
