import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { retryCampaign } from '../../src/campaigns/retry.ts'
import type { MessageContent } from '../../src/content/content.ts'
import type { Executor } from '../../src/db/pool.ts'
import { completeDone, startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { type ApiError, ERRORS } from '../../src/errors.ts'
import { createTemplate, deleteTemplate, replaceTemplate } from '../../src/templates/templates.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { sending, TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'
import { acceptedCampaign, fillGroup, makeAll } from './support.ts'

// A template can't be deleted while a button of a campaign that is not over sends it.

const { pool } = await createTestDatabase()

async function setUp() {
  const sender = await createSender(pool)
  const { accountId } = sender
  await fillGroup(pool, accountId, 1, [])
  const inputOf = (message: object) => ({ name: 'T', basic: false, status: 'APPROVED' as const, message: message as MessageContent })
  const statusOf = (work: Promise<unknown>, success: number) =>
    work.then(
      () => success,
      (error: ApiError) => ERRORS[error.code]?.status ?? Promise.reject(error),
    )
  return {
    accountId,
    template: async (message: object = TEXT) => (await createTemplate(pool, accountId, inputOf(message))).id,
    replace: (id: number, message: object) => replaceTemplate(pool, accountId, id, inputOf(message)),
    remove: (id: number) => statusOf(deleteTemplate(pool, accountId, id), 204),
    accept: (message: object, db: Executor = pool) => acceptedCampaign(db, sender, { message: message as { inline: MessageContent } }),
    /** Returns the status of the response. */
    send: (message: object) => statusOf(acceptedCampaign(pool, sender, { message: message as { inline: MessageContent } }), 202),
  }
}

async function untilOneWaits(): Promise<void> {
  await until('one waits for the other', async () => {
    const { rowCount } = await ownerOf(pool).query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rowCount === 1
  })
}

/** Sends the empty campaign until it is completed. */
async function complete(): Promise<void> {
  await makeAll(pool)
  await completeDone(pool)
}

describe('a template that a button of a campaign sends', () => {
  test('can be deleted when the campaign is over, not before', async () => {
    const { accountId, template, remove, accept } = await setUp()
    const target = await template()
    const campaignId = await accept({ inline: sending(target, target) })
    const cancelled = await accept({ inline: sending(target) })
    const used = [campaignId, cancelled].map((id) => ({ path: '', reason: `is used by a button of campaign ${id}` }))
    await assert.rejects(deleteTemplate(pool, accountId, target), { code: 'RCS_TEMPLATE_IN_USE', details: used.toSorted(byReason) })
    await moveCampaign(pool, cancelled, 'CANCELLED')
    for (const step of [
      () => startDue(pool),
      () => moveCampaign(pool, campaignId, 'PAUSED'),
      () => moveCampaign(pool, campaignId, 'RUNNING'),
    ]) {
      await step()
      await assert.rejects(deleteTemplate(pool, accountId, target), { details: used.slice(0, 1) })
    }
    await complete()
    assert.equal(await remove(target), 204)
  })

  test('can’t be deleted although the template of the campaign no longer sends it, or was deleted', async () => {
    const { template, replace, remove, accept } = await setUp()
    const [target, other] = [await template(), await template()]
    const user = await template(sending(target))
    const first = await accept({ templateId: user })
    await replace(user, sending(other))
    const second = await accept({ templateId: user })
    assert.deepEqual([await remove(user), await remove(target), await remove(other)], [204, 409, 409])
    await moveCampaign(pool, first, 'CANCELLED')
    assert.deepEqual([await remove(target), await remove(other)], [204, 409])
    await moveCampaign(pool, second, 'CANCELLED')
    assert.equal(await remove(other), 204)
  })

  test('is kept for a retry; a retry whose template was deleted before is possible', async () => {
    const { template, remove, accept } = await setUp()
    const [target, gone] = [await template(), await template()]
    const cards = [
      { title: 'A', buttons: sending(gone).buttons },
      { title: 'B', buttons: [{ ...sending(target).buttons[0], id: 'c' }] },
    ]
    const campaignId = await accept({ inline: { type: 'CAROUSEL', data: { cards } } })
    await complete()
    assert.equal(await remove(gone), 204)
    const { campaignId: retried } = await retryCampaign(pool, campaignId)
    assert.equal(await remove(target), 409)
    await moveCampaign(pool, retried, 'CANCELLED')
    assert.equal(await remove(target), 204)
  })

  for (const [end, outcome, used, removed] of [
    ['commit', 'fails after its commit', 404, 409],
    ['rollback', 'succeeds after its rollback', 202, 204],
  ] as const) {
    for (const user of ['inline content', 'a template'] as const) {
      test(`delays a concurrent campaign with ${user} while it is being deleted; the campaign ${outcome}`, async () => {
        const { accountId, template, send } = await setUp()
        const target = await template()
        const templateId = user === 'a template' ? await template(sending(target)) : 0
        const client = await pool.connect()
        await client.query('begin')
        for (const id of [templateId, target])
          await client.query('delete from templates where account_id = $1 and id = $2', [accountId, id])
        const using = send(templateId === 0 ? { inline: sending(target) } : { templateId })
        await untilOneWaits()
        await client.query(end)
        client.release()
        assert.equal(await using, used)
      })
    }

    test(`delays a concurrent deletion while a campaign is being accepted; the deletion ${outcome}`, async () => {
      const { template, remove, accept } = await setUp()
      const target = await template()
      const client = await pool.connect()
      await client.query('begin')
      await accept({ inline: sending(target) }, client)
      const removing = remove(target)
      await untilOneWaits()
      await client.query(end)
      client.release()
      assert.equal(await removing, removed)
    })
  }

  test('lets either the campaign or the deletion succeed if both come at the same moment', async () => {
    const { template, remove, send } = await setUp()
    for (let round = 0; round < 50; round += 1) {
      const target = await template()
      const statuses = await Promise.all([send({ inline: sending(target) }), remove(target)])
      assert.ok(['202 409', '404 204'].includes(statuses.join(' ')), statuses.join(' '))
    }
  })
})

function byReason(one: { reason: string }, other: { reason: string }): number {
  return one.reason < other.reason ? -1 : 1
}
