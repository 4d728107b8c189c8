import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { progressLine } from '../../src/cli/campaign.ts'
import { withdrawCancelled } from '../../src/delivery/campaigns/withdraw.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, spawnHerald, testFailures } from '../support/process.ts'
import { until } from '../support/until.ts'

// campaigns/moves.test.ts has which moves are possible; these tests have what an operator sees.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'messages are failed by hand' })
const env = { HERALD_DATABASE_URL }

/** A running campaign with its three messages. */
async function runningCampaign() {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, phones(0, 3))
  const campaignId = await acceptedCampaign(pool, sender, { name: 'Żółty sale' })
  await made(campaignId, 3)
  return { ...sender, campaignId }
}

/** Repeats the fan-out, since concurrent tests skip what another one has locked. */
async function made(campaignId: string, recipients: number): Promise<void> {
  await until('its messages are created', async () => {
    await makeAll(pool)
    return (await findCampaign(pool, campaignId)).recipients === recipients
  })
}

/** Completes a campaign in the database: one message was sent, two failed. */
async function end(campaignId: string): Promise<void> {
  await pool.query(
    `with failed as (
       update messages set status = 'FAILED', failed_at = accepted_at, failure_reason = 'REJECTED', failure_description = 'No.'
       where campaign_id = $1 and recipient <> $2
     ), unqueued as (
       delete from queue where campaign_id = $1
     ), counted as (
       insert into report_deltas (account_id, campaign_id, hour, sent, failed, unsent)
       select account_id, id, date_trunc('hour', now(), 'UTC'), 1, 2, 2 from campaigns where id = $1
     )
     update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`,
    [campaignId, phones(0, 1)[0]],
  )
}

const json = (value: unknown) => JSON.parse(JSON.stringify(value))

describe('herald campaign', { concurrency: 3 }, () => {
  test('show, pause, resume and cancel print the campaign, in words and as JSON', async () => {
    const { campaignId } = await runningCampaign()
    const words = (status: string) => `Campaign ${campaignId} (Żółty sale) is ${status}: 3 messages, 3 ACCEPTED.\n`
    const shown = await runHerald(['campaign', 'show', campaignId], env)
    assert.deepEqual(shown, { code: 0, stdout: words('RUNNING'), stderr: '' })
    const paused = await runHerald(['campaign', 'pause', campaignId], env)
    assert.deepEqual(paused, { code: 0, stdout: words('PAUSED'), stderr: '' })
    assert.deepEqual(await heraldJson(['campaign', 'resume', campaignId], env), json(await findCampaign(pool, campaignId)))
    const cancelled = await heraldJson(['campaign', 'cancel', campaignId, '--yes'], env)
    // A test beside this one withdraws the messages of all cancelled campaigns.
    const { counts: _, ...campaign } = json(await findCampaign(pool, campaignId))
    assert.deepEqual({ ...cancelled, counts: _ }, { ...campaign, counts: _ })
    assert.equal(cancelled.status, 'CANCELLED')
  })

  test('list shows the campaigns of the account, as a table and as JSON', async () => {
    const { accountId, campaignId } = await runningCampaign()
    const campaign = await findCampaign(pool, campaignId)
    assert.deepEqual(await heraldJson(['campaign', 'list', `${accountId}`], env), [json(campaign)])
    const { stdout } = await runHerald(['campaign', 'list', `${accountId}`], env)
    const [head, row, ...others] = stdout.trimEnd().split('\n')
    assert.match(head as string, /^ID +NAME +STATUS +SCHEDULED +MESSAGES +WAITING$/)
    assert.deepEqual(row?.split(/ {2,}/), [campaignId, 'Żółty sale', 'RUNNING', campaign.scheduledAt.toISOString(), '3', '3'])
    assert.deepEqual(others, [])
  })

  test('retry starts a new campaign to the recipients whose message failed', async () => {
    const { campaignId } = await runningCampaign()
    await end(campaignId)
    const { retryOf, status, campaignId: repeated } = await heraldJson(['campaign', 'retry', campaignId, '--yes'], env)
    assert.deepEqual([retryOf, status], [campaignId, 'SCHEDULED'])
    await made(repeated, 2)
  })

  test('retry after cancel skips withdrawn messages unless --include-cancelled is given', async () => {
    const { campaignId } = await runningCampaign()
    await heraldJson(['campaign', 'cancel', campaignId, '--yes'], env)
    await until('all is withdrawn', async () => {
      await withdrawCancelled(pool)
      const { rows } = await pool.query('select withdrawn_at from campaigns where id = $1', [campaignId])
      return rows[0].withdrawn_at !== null
    })
    const refused = await runHerald(['campaign', 'retry', campaignId, '--yes'], env)
    const error = `The campaign ${campaignId} has no failures except 3 messages withdrawn when it was cancelled; --include-cancelled sends them.\n`
    assert.deepEqual(refused, { code: 1, stdout: '', stderr: error })
    assert.deepEqual((await pool.query('select from campaigns where retry_of = $1', [campaignId])).rows, [])
    const { campaignId: repeated } = await heraldJson(['campaign', 'retry', campaignId, '--include-cancelled', '--yes'], env)
    await made(repeated, 3)
  })

  test('--watch on a pipe writes a line per poll, and the campaign at its end', async () => {
    const { campaignId } = await runningCampaign()
    const { output, ended } = spawnHerald(['campaign', 'show', campaignId, '--watch', '--json'], env)
    await until('it shows its progress', () => output.stderr.split('\n').length > 2)
    assert.equal(output.stdout, '')
    await end(campaignId)
    assert.equal(await ended, 0)
    const lines = output.stderr.trimEnd().split('\n')
    assert.equal(lines[0], `RUNNING [${'-'.repeat(30)}] 0 %, 0 of 3, 0 a second`)
    assert.match(lines.at(-1) as string, /^COMPLETED \[#{30}\] 100 %, 3 of 3, \d+ a second$/)
    assert.equal(output.stderr.includes('\u001b'), false, 'no terminal codes')
    assert.deepEqual(JSON.parse(output.stdout), json(await findCampaign(pool, campaignId)))
  })

  const NOBODY = '00000000-0000-7000-8000-000000000000'
  const FAILURES: [args: string[], error: RegExp][] = [
    [['show', NOBODY], /^There is no campaign 00000000-0000-7000-8000-000000000000; see "herald campaign list ACCOUNT_ID"\.\n$/],
    [['list', '999999'], /^There is no account 999999; see "herald account list"\.\n$/],
  ]
  testFailures(['campaign'], FAILURES, env)

  test('an impossible change of status fails with an error that names the current and the required status', async () => {
    const { campaignId } = await runningCampaign()
    const retried = await runHerald(['campaign', 'retry', campaignId], env)
    const tooEarly = `The campaign ${campaignId} is RUNNING; retry it once it is COMPLETED or CANCELLED.\n`
    assert.deepEqual(retried, { code: 1, stdout: '', stderr: tooEarly })
    await end(campaignId)
    const paused = await runHerald(['campaign', 'pause', campaignId], env)
    const tooLate = `The campaign ${campaignId} is COMPLETED; only a campaign that is RUNNING can be paused.\n`
    assert.deepEqual(paused, { code: 1, stdout: '', stderr: tooLate })
  })

  test('the progress line has the bar, the rate and the time left', async () => {
    const { campaignId } = await runningCampaign()
    const campaign = await findCampaign(pool, campaignId)
    const counts = { ...campaign.counts, ACCEPTED: 9_000, SENT: 600, FAILED: 400 }
    const line = (waiting: number, perSecond: number) =>
      progressLine({ ...campaign, recipients: 10_000, counts: { ...counts, ACCEPTED: waiting } }, perSecond)
    assert.equal(line(9_000, 100), `RUNNING [###${'-'.repeat(27)}] 10 %, 1000 of 10000, 100 a second, 2 min left`)
    assert.equal(line(9_000, 200.4), `RUNNING [###${'-'.repeat(27)}] 10 %, 1000 of 10000, 200 a second, 45 s left`)
    assert.equal(line(9_000, 0), `RUNNING [###${'-'.repeat(27)}] 10 %, 1000 of 10000, 0 a second`)
    assert.equal(line(9_000, 1), `RUNNING [###${'-'.repeat(27)}] 10 %, 1000 of 10000, 1 a second, 3 h left`)
    assert.equal(line(1, 10), `RUNNING [${'#'.repeat(30)}] 99 %, 9999 of 10000, 10 a second, 1 s left`)
    assert.equal(progressLine({ ...campaign, recipients: 0, counts: { ...counts, ACCEPTED: 0 } }, 0).includes(' 0 %'), true)
  })
})
