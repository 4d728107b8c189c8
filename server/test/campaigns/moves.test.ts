import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { findCampaign, moveCampaign } from '../../src/campaigns/campaigns.ts'
import { OperatorError } from '../../src/errors.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { acceptedCampaign, fillGroup, phones } from './support.ts'

// The changes of status that an operator may make: the diagram of the contract, as a table.

const { pool } = await createTestDatabase()
const sender = await createSender(pool)
await fillGroup(pool, sender.accountId, 1, phones(0, 1))

const STATES = {
  SCHEDULED: '',
  RUNNING: ', started_at = now()',
  PAUSED: ', started_at = now()',
  COMPLETED: ', started_at = now(), completed_at = now()',
  CANCELLED: ', cancelled_at = now()',
} as const
type Status = keyof typeof STATES

async function campaignIn(status: Status): Promise<string> {
  const campaignId = await acceptedCampaign(pool, sender)
  await pool.query(`update campaigns set status = $2 ${STATES[status]} where id = $1`, [campaignId, status])
  return campaignId
}

/** From each status: the possible next ones. To repeat the status is possible. */
const POSSIBLE = {
  SCHEDULED: ['CANCELLED'],
  RUNNING: ['RUNNING', 'PAUSED', 'CANCELLED'],
  PAUSED: ['RUNNING', 'PAUSED', 'CANCELLED'],
  COMPLETED: [],
  CANCELLED: ['CANCELLED'],
} as const satisfies Record<Status, Status[]>

const REFUSALS = {
  RUNNING: 'only a campaign that is PAUSED can be resumed',
  PAUSED: 'only a campaign that is RUNNING can be paused',
  CANCELLED: 'only a campaign that is SCHEDULED or RUNNING or PAUSED can be cancelled',
} as const

describe('a campaign', () => {
  for (const from of Object.keys(STATES) as Status[]) {
    for (const to of ['RUNNING', 'PAUSED', 'CANCELLED'] as const) {
      const isPossible = (POSSIBLE[from] as readonly Status[]).includes(to)
      test(`${isPossible ? 'moves' : 'does not move'} from ${from} to ${to}`, async () => {
        const campaignId = await campaignIn(from)
        const before = await findCampaign(pool, campaignId)
        if (isPossible) {
          const { status, cancelledAt, ...others } = await moveCampaign(pool, campaignId, to)
          assert.deepEqual([status, cancelledAt !== undefined], [to, to === 'CANCELLED'])
          const { status: _, cancelledAt: __, ...othersBefore } = before
          assert.deepEqual(others, othersBefore)
          return
        }
        const message = `The campaign ${campaignId} is ${from}; ${REFUSALS[to]}.`
        await assert.rejects(moveCampaign(pool, campaignId, to), (error) => error instanceof OperatorError && error.message === message)
        assert.deepEqual(await findCampaign(pool, campaignId), before)
      })
    }
  }
})

test('ends CANCELLED after a concurrent pause, resumption and cancellation', async () => {
  for (let round = 0; round < 10; round += 1) {
    const campaignId = await campaignIn('RUNNING')
    await Promise.allSettled((['PAUSED', 'CANCELLED', 'RUNNING', 'PAUSED'] as const).map((to) => moveCampaign(pool, campaignId, to)))
    assert.equal((await findCampaign(pool, campaignId)).status, 'CANCELLED')
  }
})

test('rejects an unknown id with a sentence that names it', async () => {
  for (const id of [randomUUID(), 'spring', '', "' or 1=1"]) {
    const message = `There is no campaign ${id}; see "herald campaign list ACCOUNT_ID".`
    await assert.rejects(moveCampaign(pool, id, 'PAUSED'), { message })
    await assert.rejects(findCampaign(pool, id), { message })
  }
})
