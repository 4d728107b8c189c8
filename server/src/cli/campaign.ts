import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { findCampaign, listCampaigns, moveCampaign, retryCampaign } from '../campaigns/campaigns.ts'
import type { Campaign } from '../campaigns/schemas.ts'
import type { Pool } from '../db/pool.ts'
import { accountIdArgument, report, reportingCommand, table, textArgument, withDatabase } from './command.ts'

const MOST_LISTED = 100
const WATCH_EVERY_MS = 1_000
const BAR_WIDTH = 30

const id = ['<campaign-id>', 'its id', textArgument(100)] as const

function inWords({ campaignId, name, status, recipients, counts }: Campaign): string {
  const parts = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  return `Campaign ${campaignId} (${name}) is ${status}: ${recipients} messages${parts.length > 0 ? `, ${parts.join(', ')}` : ''}.`
}

const list = reportingCommand('list', `show the campaigns of an account, the newest ${MOST_LISTED}`)
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const campaigns = await withDatabase((pool) => listCampaigns(pool, accountId, MOST_LISTED))
    const rows = campaigns.map((campaign) => [
      campaign.campaignId,
      campaign.name,
      campaign.status,
      campaign.scheduledAt,
      campaign.recipients,
      campaign.counts.ACCEPTED,
    ])
    report(options, campaigns, () => table(['ID', 'NAME', 'STATUS', 'SCHEDULED', 'MESSAGES', 'WAITING'], rows))
  })

function movingCommand(name: string, description: string, move: (pool: Pool, campaignId: string) => Promise<Campaign>): Command {
  return reportingCommand(name, description)
    .argument(...id)
    .option('--watch', 'stay, and show how it goes on')
    .action(async (campaignId: string, options) => {
      await withDatabase(async (pool) => {
        const campaign = await move(pool, campaignId)
        report(options, options.watch ? await watched(pool, campaign) : campaign, inWords)
      })
    })
}

/** Shows it once a second until nothing more can change by itself: a line that is written anew on a terminal, else a line each. */
async function watched(pool: Pool, first: Campaign): Promise<Campaign> {
  let before = { handedOver: handedOver(first), at: performance.now() }
  for (let campaign = first; ; campaign = await findCampaign(pool, first.campaignId)) {
    const now = { handedOver: handedOver(campaign), at: performance.now() }
    const perSecond = now.at > before.at ? ((now.handedOver - before.handedOver) * 1_000) / (now.at - before.at) : 0
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${progressLine(campaign, perSecond)}` : `${progressLine(campaign, perSecond)}\n`)
    before = now
    if (isOver(campaign)) {
      if (process.stderr.isTTY) process.stderr.write('\n')
      return campaign
    }
    await sleep(WATCH_EVERY_MS)
  }
}

function handedOver({ recipients, counts }: Campaign): number {
  return recipients - counts.ACCEPTED
}

function isOver({ status, counts }: Campaign): boolean {
  return status === 'COMPLETED' || (status === 'CANCELLED' && counts.ACCEPTED === 0)
}

export function progressLine(campaign: Campaign, perSecond: number): string {
  const { status, recipients, counts } = campaign
  const done = handedOver(campaign)
  const share = recipients === 0 ? (isOver(campaign) ? 1 : 0) : done / recipients
  const filled = Math.round(share * BAR_WIDTH)
  const bar = `${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}`
  const left = counts.ACCEPTED > 0 && perSecond >= 1 ? `, ${duration(counts.ACCEPTED / perSecond)} left` : ''
  return `${status} [${bar}] ${Math.floor(share * 100)} %, ${done} of ${recipients}, ${Math.round(perSecond)} a second${left}`
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3_600)} h`
}

export const campaignCommand = new Command('campaign')
  .description('campaigns: pause, resume, cancel, repeat, watch')
  .addCommand(list)
  .addCommand(movingCommand('show', 'show how far a campaign is', findCampaign))
  .addCommand(
    movingCommand('pause', 'hand nothing more over until it is resumed', (pool, campaignId) => moveCampaign(pool, campaignId, 'PAUSED')),
  )
  .addCommand(movingCommand('resume', 'go on with a paused campaign', (pool, campaignId) => moveCampaign(pool, campaignId, 'RUNNING')))
  .addCommand(
    movingCommand('cancel', 'withdraw what has not been handed over; this can’t be undone', (pool, campaignId) =>
      moveCampaign(pool, campaignId, 'CANCELLED'),
    ),
  )
  .addCommand(movingCommand('retry', 'start a new campaign to those whose message failed', retryCampaign))
