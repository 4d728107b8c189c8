import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import { createToken } from '../../src/people/tokens.ts'
import { createTestDatabase } from '../support/database.ts'
import { openStream, type TestStream } from '../support/server-sent.ts'
import { call, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'campaigns and their counts are written by hand' })
// A process that only serves requests: no loop completes the campaigns.
const settings = { HERALD_DATABASE_URL, HERALD_LIMITS: 'memory' }
const service = await startTestService(settings, { roles: ['api'], streamLimits: { checkEveryMs: 100 } })
const newAccount = async () => (await createAccount(pool, 'Test', MODULES)).accountId

/** A running campaign, without messages. */
async function runCampaign(accountId: number): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, fan_out_completed_at, recipients)
     values (uuid_v7(), $1, 'agent', 'Spring', '{1}', false, 1, 'RUNNING', now(), now(), now(), 3) returning id`,
    [accountId],
  )
  return rows[0]?.id as string
}

const count = (accountId: number, id: string, counters: string, values: string) =>
  pool.query(
    `insert into report_deltas (account_id, campaign_id, hour, ${counters}) values ($1, $2, date_trunc('hour', now(), 'UTC'), ${values})`,
    [accountId, id],
  )

const campaignsOf = (stream: TestStream) => stream.received.filter(({ event }) => event === 'campaign').map(({ data }) => data)
const untilStatus = (stream: TestStream, status: string, sent: number) =>
  until(`it is ${status}, ${sent} sent`, () => campaignsOf(stream).some(({ status: is, counts }) => is === status && counts.SENT === sent))

test('the counters of a campaign come at first, when they change, and once more when the campaign no longer runs', async () => {
  const [accountId, other] = [await newAccount(), await newAccount()]
  const [id] = [await runCampaign(accountId), await runCampaign(other)]
  await count(accountId, id, 'accepted', '3')
  const expiresAt = new Date(Date.now() + 3_600_000)
  const { secret } = await createToken(pool, { name: 'console', role: 'viewer', accountIds: [accountId], expiresAt })
  const headers = { authorization: `Bearer ${secret}` }
  const follow = () => openStream(`${service.url}/admin/v1/stream?accountId=${accountId}`, headers)
  const streams = [await follow(), await follow()] as const
  const [stream] = streams
  await untilStatus(stream, 'RUNNING', 0)
  await count(accountId, id, 'claimed, sent', '2, 2')
  await untilStatus(stream, 'RUNNING', 2)
  const { body } = await call(`${service.url}/admin/v1/accounts/${accountId}/campaigns/${id}`, { headers })
  assert.deepEqual(campaignsOf(stream).at(-1), body)
  await pool.query(`update campaigns set status = 'PAUSED' where id = $1`, [id])
  for (const each of streams) await untilStatus(each, 'PAUSED', 2)
  for (const each of streams) {
    const texts = campaignsOf(each).map((campaign) => JSON.stringify(campaign))
    assert.equal(new Set(texts).size, texts.length, 'each state came once')
    assert.ok(
      campaignsOf(each).every(({ campaignId }) => campaignId === id),
      'nothing came of the other account',
    )
  }
})
