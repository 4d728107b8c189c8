import type { DeliveryWindow } from '../../timeline/types.ts'

export type CampaignStatus = 'SCHEDULED' | 'RUNNING' | 'PAUSED' | 'COMPLETED' | 'CANCELLED'
type MessageStatus = 'ACCEPTED' | 'SENDING' | 'SENT' | 'DELIVERED' | 'READ' | 'FAILED' | 'EXPIRED'

/** A campaign, as the API returns it. */
export type Campaign = {
  campaignId: string
  clientReferenceId?: string
  name: string
  agentId: string
  /** Empty if it retries another campaign. */
  segmentIds: number[]
  retryOf?: string
  retriedBy?: string
  status: CampaignStatus
  createdAt: string
  scheduledAt: string
  startedAt?: string
  completedAt?: string
  cancelledAt?: string
  expiresAt?: string
  deliveryWindow?: DeliveryWindow
  /** Grows while the campaign starts. */
  recipients: number
  counts: Record<MessageStatus, number>
}

/** Messages that are not handed over yet, and may still be. */
export const waiting = ({ counts }: Campaign) => counts.ACCEPTED + counts.SENDING

/** Messages that the network took, and that have not failed or expired since. The API also counts what a cancellation withdrew as FAILED. */
export const handedOver = ({ counts }: Campaign) => counts.SENT + counts.DELIVERED + counts.READ

/** Messages that no longer wait, whatever became of them. They say how fast a campaign goes, as on the command line. */
export const processed = (campaign: Campaign) => campaign.recipients - waiting(campaign)

/** Whether nothing more is sent. A cancelled campaign withdraws its messages in the background. */
export const isOver = (campaign: Campaign) =>
  campaign.status === 'COMPLETED' || (campaign.status === 'CANCELLED' && waiting(campaign) === 0)

export const pathOfCampaign = (accountId: number, campaignId: string, more = '') =>
  `/accounts/${accountId}/campaigns/${encodeURIComponent(campaignId)}${more}`

/** `processed` at some moments, the latest last. */
export type Sample = { atMs: number; processed: number }

const WINDOW_MS = 30_000
const LEAST_MS = 2_000

/** Adds a sample, and drops those that are too old to say how fast it is now. */
export function withSample(samples: Sample[], sample: Sample): Sample[] {
  return [...samples.filter(({ atMs }) => atMs > sample.atMs - WINDOW_MS), sample]
}

/** Messages a second. Undefined: not known yet. */
export function rateOf(samples: Sample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined || last.atMs - first.atMs < LEAST_MS) return undefined
  return ((last.processed - first.processed) * 1_000) / (last.atMs - first.atMs)
}
