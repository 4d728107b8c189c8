import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { findCampaign, moveCampaign } from '../../../src/campaigns/campaigns.ts'
import { until } from '../../../test/support/until.ts'
import { fillGroup, requestCampaign } from '../../load/campaigns.ts'
import { newMessage } from '../../load/probes.ts'
import type { Lifecycle } from '../../load/requests.ts'
import { say } from '../../support/progress.ts'
import { USUAL_FAULTS } from '../../topology/network.ts'
import { type Crash, countRows, DELIVERING, endLeases, nodeOf, repeatUntilAccepted, TIMEOUT_MS, whileKilled } from './support.ts'

// Workers are killed while a campaign is fanned out and sent, and just after it was paused or cancelled.

const GROUPS = 20
// Calls take so long that a campaign of 2,000 messages takes two seconds. The fan-out of a thousand messages takes about 60 ms.
const CALL_MS = 200
const CHUNK_MS = 60
const LONGEST_LIFE_MS = 300

type Campaign = { id: string; people: number }

let campaigns = 0
/** Each phone is in all groups but one, and reads its message. */
async function startCampaign(crash: Crash, people: number, lifecycle: Lifecycle): Promise<Campaign> {
  const { checkPool, caller, requested } = crash
  campaigns += 1
  await crash.network.ask('faults', { ...USUAL_FAULTS, api: { ...USUAL_FAULTS.api, latency: { rate: 1, ms: CALL_MS } } }, 'PUT')
  const phones = Array.from({ length: people }, (_, n) => `+487${campaigns}${String(n).padStart(5, '0')}${10 + (n % 90)}`)
  const segmentIds = Array.from({ length: GROUPS }, (_, n) => campaigns * 100 + n)
  for (const [n, group] of segmentIds.entries())
    await fillGroup(
      checkPool,
      caller.accountId,
      group,
      phones.filter((_, person) => person % GROUPS !== n),
    )
  const text = `Scripted campaign ${campaigns}.`
  const body = { name: 'Scripted', agentId: caller.agentId, segmentIds, message: { inline: { type: 'MESSAGE', content: text } } }
  const times = { stopAfterMs: 0, resumeAfterMs: 0, startInMs: undefined, lifeMs: undefined }
  const { ids } = await requestCampaign(caller, requested, { lifecycle, phones, body, contents: { text }, ...times })
  assert.ok(ids[0] !== undefined, 'the campaign is accepted')
  return { id: ids[0], people }
}

/** `made`: messages that exist. `out`: messages that have left the queue. */
async function progress({ checkPool }: Crash, { id }: Campaign) {
  const { recipients, counts } = await findCampaign(checkPool, id)
  const { rows } = await checkPool.query('select fan_out_completed_at is not null as "isFannedOut" from campaigns where id = $1', [id])
  return { made: recipients, out: recipients - counts.ACCEPTED, isFannedOut: rows[0].isFannedOut as boolean }
}

const LEASED = 'queue where campaign_id = $1 and leased_until > now()'

/** Returns when messages are being created or, after the fan-out, being sent. */
async function untilInTheMidst(crash: Crash, campaign: Campaign): Promise<void> {
  const { made, isFannedOut } = await progress(crash, campaign)
  const goal = made + Math.max((crash.random() * (campaign.people - made)) / 4, 1)
  const isInTheMidst = async () => {
    const now = await progress(crash, campaign)
    return isFannedOut ? now.out === now.made || (await countRows(crash, LEASED, [campaign.id])) > 0 : now.made >= goal || now.isFannedOut
  }
  await until('the campaign makes progress', isInTheMidst, TIMEOUT_MS)
  await sleep(crash.random() * (isFannedOut ? LONGEST_LIFE_MS : CHUNK_MS))
}

/** Everybody gets it once, which the checks compare. */
export async function killDuringFanOut(crash: Crash): Promise<void> {
  const campaign = await startCampaign(crash, crash.isFull ? 20_000 : 6_000, 'untouched')
  const hits = { fanOut: 0, sending: 0 }
  for (let kills = 1; kills <= (crash.isFull ? 40 : 5); kills++) {
    await untilInTheMidst(crash, campaign)
    await whileKilled(
      crash,
      DELIVERING.toSorted(() => crash.random() - 0.5),
      async () => {
        const { made, out, isFannedOut } = await progress(crash, campaign)
        if (!isFannedOut) hits.fanOut += 1
        if ((await countRows(crash, LEASED, [campaign.id])) > 0) hits.sending += 1
        await endLeases(crash, DELIVERING, ['queue', 'sms_queue'])
        say(`${kills} times all workers were killed: ${made} messages made, ${out} out`)
      },
    )
  }
  assert.ok(hits.fanOut > 0 && hits.sending > 0, `not both were hit: ${JSON.stringify(hits)}`)
}

/** Messages without an attempt: those that wait, and those that a worker withdrew between the cancellation and its death. */
const UNSENT = `
  select message_id as id from queue where campaign_id = $1 and lease is null and attempts = 0 and task = 'send'
  union all
  select id from messages m where campaign_id = $1 and failure_reason = 'CAMPAIGN_CANCELLED'
    and not exists (select from message_events e where e.message_id = m.id and e.kind = 'attempt-failed')`

/** Stops the campaign when some of it is out, kills all workers, and records that nothing leaves before `afterwards`. */
async function stopAndKill(
  crash: Crash,
  campaign: Campaign,
  to: 'PAUSED' | 'CANCELLED',
  afterwards: () => Promise<unknown>,
): Promise<void> {
  const { checkPool, random, scripted, requested, caller } = crash
  const goal = 1 + (random() * campaign.people) / 4
  await until('some are out', async () => (await progress(crash, campaign)).out >= goal, TIMEOUT_MS)
  await moveCampaign(checkPool, campaign.id, to)
  await sleep(random() * CALL_MS)
  let waiting: string[] = []
  await whileKilled(crash, DELIVERING, async () => {
    waiting = (await checkPool.query<{ id: string }>(UNSENT, [campaign.id])).rows.map(({ id }) => id)
    await endLeases(crash, DELIVERING, ['queue', 'sms_queue'])
    await nodeOf(crash, 'delivery-1').start()
  })
  const isEnded = async () => (await countRows(crash, LEASED, [campaign.id])) === 0
  await until('no lease of it runs', isEnded, TIMEOUT_MS)
  const from = Date.now()
  const { made } = await progress(crash, campaign)
  // When a later message is sent, the workers have looked at all that was due before.
  for (let looks = 0; looks < 3; looks++) {
    const one = newMessage(requested, caller)
    await repeatUntilAccepted(crash, [one])
    const isSent = async () => (await countRows(crash, `messages where id = $1 and status <> 'ACCEPTED'`, [one.ids[0]])) === 1
    await until('a message beside it is sent', isSent, TIMEOUT_MS)
  }
  assert.ok(waiting.length > 0, 'nothing of it waited')
  assert.equal((await progress(crash, campaign)).made, made)
  scripted.halts ??= []
  scripted.halts.push({ campaignId: campaign.id, waiting, from, to: to === 'PAUSED' ? Date.now() : Number.POSITIVE_INFINITY })
  say(`${to}: ${made} messages made, ${waiting.length} waiting`)
  await afterwards()
}

export async function killAfterPause(crash: Crash): Promise<void> {
  const campaign = await startCampaign(crash, crash.isFull ? 5_000 : 2_000, 'paused')
  await stopAndKill(crash, campaign, 'PAUSED', async () => {
    const { out } = await progress(crash, campaign)
    await moveCampaign(crash.checkPool, campaign.id, 'RUNNING')
    await until('it goes on', async () => (await progress(crash, campaign)).out > out, TIMEOUT_MS)
    await sleep(crash.random() * LONGEST_LIFE_MS)
    await whileKilled(crash, DELIVERING, () => endLeases(crash, DELIVERING, ['queue', 'sms_queue']))
  })
}

export async function killAfterCancel(crash: Crash): Promise<void> {
  const campaign = await startCampaign(crash, crash.isFull ? 5_000 : 2_000, 'cancelled')
  await stopAndKill(crash, campaign, 'CANCELLED', async () => {
    const left = 'campaigns c where c.id = $1 and (c.withdrawn_at is null or exists (select from queue q where q.campaign_id = c.id))'
    await until('nothing of it is left', async () => (await countRows(crash, left, [campaign.id])) === 0, TIMEOUT_MS)
  })
}
