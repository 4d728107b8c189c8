import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { requireAccount } from '../accounts/accounts.ts'
import { findCampaign, moveCampaign, ownerOfCampaign } from '../campaigns/campaigns.ts'
import { type Cancellation, planCancel } from '../campaigns/cancel.ts'
import { listOwnCampaigns } from '../campaigns/list.ts'
import { planRetry, type RetryCount, retryCampaign } from '../campaigns/retry.ts'
import type { Campaign } from '../campaigns/schemas.ts'
import type { Pool } from '../db/pool.ts'
import { audited } from './audited.ts'
import { accountIdArgument, changingCommand, readingCommand, report, textArgument, withDatabase } from './command.ts'
import { confirm, confirmedCommand } from './confirm.ts'
import { quantity, statusLine, table } from './terminal.ts'

const MAX_LISTED = 100
const WATCH_EVERY_MS = 1_000
const BAR_WIDTH = 30

const id = ['<campaign-id>', 'its id', textArgument(100)] as const

function inWords({ campaignId, name, status, recipients, counts }: Campaign): string {
  const parts = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  return `Campaign ${campaignId} (${name}) is ${status}: ${quantity(recipients, 'message')}${parts.length > 0 ? `, ${parts.join(', ')}` : ''}.`
}

const list = readingCommand('list', `show the campaigns of an account, the newest ${MAX_LISTED}`)
  .argument('<account-id>', 'the account', accountIdArgument)
  .action(async (accountId: number, options) => {
    const campaigns = await withDatabase(async (pool) => {
      await requireAccount(pool, accountId)
      return (await listOwnCampaigns(pool, accountId, { limit: MAX_LISTED })).items
    })
    const rows = campaigns.map((campaign) => [
      campaign.campaignId,
      campaign.name,
      campaign.status,
      campaign.scheduledAt,
      campaign.recipients,
      unfinished(campaign),
    ])
    report(options, campaigns, () => table(['ID', 'NAME', 'STATUS', 'SCHEDULED', 'MESSAGES', 'WAITING'], rows))
  })

type Options = { json?: boolean; watch?: boolean; yes?: boolean; includeCancelled?: boolean }
type Move = (pool: Pool, campaignId: string, options: Options, command: Command) => Promise<Campaign>

function movingCommand(command: Command, move: Move): Command {
  return command
    .argument(...id)
    .option('--watch', 'keep running, and show the progress every second')
    .action(async (campaignId: string, options: Options, self: Command) => {
      await withDatabase(async (pool) => {
        const campaign = await move(pool, campaignId, options, self)
        report(options, options.watch ? await watch(pool, campaign) : campaign, inWords)
      })
    })
}

const show = movingCommand(readingCommand('show', 'show the progress of a campaign'), findCampaign)

const moveTo =
  (status: 'PAUSED' | 'RUNNING' | 'CANCELLED'): Move =>
  async (pool, campaignId, _options, command) => {
    const before = (db: Pool) => findCampaign(db, campaignId)
    const change = (db: Pool) => moveCampaign(db, campaignId, status)
    return await audited(pool, command, { accountId: await ownerOfCampaign(pool, campaignId), subject: campaignId, before, change })
  }

const pause = movingCommand(
  changingCommand('pause', 'send no more messages until the campaign is resumed', 'pauseCampaign'),
  moveTo('PAUSED'),
)

const resume = movingCommand(changingCommand('resume', 'continue a paused campaign', 'resumeCampaign'), moveTo('RUNNING'))

const cancel = movingCommand(
  confirmedCommand('cancel', "withdraw the messages that have not been sent; this can't be undone", 'cancelCampaign'),
  async (pool, campaignId, options, command) => {
    const plan = await planCancel(pool, campaignId)
    if (plan !== undefined) await confirm(options, cancelledInWords(plan))
    return await moveTo('CANCELLED')(pool, campaignId, options, command)
  },
)

function cancelledInWords({ campaign, waiting, waitingSms, notCreated }: Cancellation): string {
  const parts = [`about ${quantity(waiting, 'waiting message is withdrawn', 'waiting messages are withdrawn')}`]
  if (waitingSms > 0) parts.push(`about ${quantity(waitingSms, 'waiting SMS is not sent', 'waiting SMS are not sent')}`)
  if (notCreated > 0) parts.push(`up to ${quantity(notCreated, 'more message is never created', 'more messages are never created')}`)
  return `cancel the campaign ${campaign.campaignId} (${campaign.name}) for good: ${new Intl.ListFormat('en').format(parts)}`
}

const retry = movingCommand(
  confirmedCommand('retry', 'start a new campaign to the recipients whose message failed', 'retryCampaign').option(
    '--include-cancelled',
    'also to the recipients whose message was withdrawn when the campaign was cancelled',
  ),
  async (pool, campaignId, { includeCancelled = false, ...options }, command) => {
    await confirm(options, retriedInWords(await planRetry(pool, campaignId, { includeCancelled }), includeCancelled))
    return await audited(pool, command, {
      accountId: await ownerOfCampaign(pool, campaignId),
      subject: campaignId,
      change: (db) => retryCampaign(db, campaignId, { includeCancelled }),
    })
  },
)

/** Names the most frequent reasons first. */
function retriedInWords(
  { campaign, messages, reasons, withdrawn, isMore }: RetryCount & { campaign: Campaign },
  includeCancelled: boolean,
): string {
  const kinds = Object.entries(reasons)
    .toSorted(([, one], [, other]) => other - one)
    .map(([reason, count]) => `${count.toLocaleString('en')} ${reason}`)
  const failed = `whose message of the campaign ${campaign.campaignId} (${campaign.name}) failed`
  // A large campaign may have its first failure after the part that was counted.
  const why = kinds.length === 0 ? '' : `: ${new Intl.ListFormat('en').format(kinds)}`
  const sent = `send ${isMore ? 'at least ' : ''}${quantity(messages, 'message')}, to the recipients ${failed}${why}`
  return withdrawn === 0 || includeCancelled
    ? sent
    : `${sent}; ${quantity(withdrawn, 'message that was', 'messages that were')} withdrawn when it was cancelled ${withdrawn === 1 ? 'is' : 'are'} left out`
}

/** Shows the progress once a second until the campaign is over: one rewritten line on a terminal, otherwise a line each time. */
async function watch(pool: Pool, first: Campaign): Promise<Campaign> {
  const status = statusLine({ each: true })
  let before = { handedOver: handedOver(first), at: performance.now() }
  for (let campaign = first; ; campaign = await findCampaign(pool, first.campaignId)) {
    const now = { handedOver: handedOver(campaign), at: performance.now() }
    const perSecond = now.at > before.at ? ((now.handedOver - before.handedOver) * 1_000) / (now.at - before.at) : 0
    status.show(progressLine(campaign, perSecond))
    before = now
    if (isOver(campaign)) {
      status.keep()
      return campaign
    }
    await sleep(WATCH_EVERY_MS)
  }
}

function unfinished({ counts }: Campaign): number {
  return counts.ACCEPTED + counts.SENDING
}

function handedOver(campaign: Campaign): number {
  return campaign.recipients - unfinished(campaign)
}

function isOver(campaign: Campaign): boolean {
  return campaign.status === 'COMPLETED' || (campaign.status === 'CANCELLED' && unfinished(campaign) === 0)
}

export function progressLine(campaign: Campaign, perSecond: number): string {
  const { status, recipients } = campaign
  const done = handedOver(campaign)
  const share = recipients === 0 ? (isOver(campaign) ? 1 : 0) : done / recipients
  const filled = Math.round(share * BAR_WIDTH)
  const bar = `${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}`
  const waiting = unfinished(campaign)
  const left = waiting > 0 && perSecond >= 1 ? `, ${duration(waiting / perSecond)} left` : ''
  return `${status} [${bar}] ${Math.floor(share * 100)} %, ${done} of ${recipients}, ${Math.round(perSecond)} a second${left}`
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3_600)} h`
}

export const campaignCommand = new Command('campaign')
  .description('show, pause, resume, cancel and retry campaigns')
  .addCommand(list)
  .addCommand(show)
  .addCommand(pause)
  .addCommand(resume)
  .addCommand(cancel)
  .addCommand(retry)
