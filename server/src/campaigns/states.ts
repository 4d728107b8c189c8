export const CAMPAIGN_STATUSES = ['SCHEDULED', 'RUNNING', 'PAUSED', 'COMPLETED', 'CANCELLED'] as const
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number]

/** From which statuses a campaign may come to which: the guards of all statements that move one are made from this. */
export const CAMPAIGN_MOVES = {
  RUNNING: ['SCHEDULED', 'PAUSED'],
  PAUSED: ['RUNNING'],
  COMPLETED: ['RUNNING'],
  CANCELLED: ['SCHEDULED', 'RUNNING', 'PAUSED'],
} as const satisfies Partial<Record<CampaignStatus, readonly CampaignStatus[]>>

/** As a condition on a stored status. */
export function campaignMayBecome(status: keyof typeof CAMPAIGN_MOVES, column: string): string {
  return `${column} in (${CAMPAIGN_MOVES[status].map((from) => `'${from}'`).join(', ')})`
}
