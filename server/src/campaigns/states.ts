export const CAMPAIGN_STATUSES = ['SCHEDULED', 'RUNNING', 'PAUSED', 'COMPLETED', 'CANCELLED'] as const
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number]

/**
 * The allowed moves: for each status, the statuses that a campaign may come from. The guards of all statements that move a campaign are
 * made from this table.
 */
export const CAMPAIGN_MOVES = {
  RUNNING: ['SCHEDULED', 'PAUSED'],
  PAUSED: ['RUNNING'],
  COMPLETED: ['RUNNING'],
  CANCELLED: ['SCHEDULED', 'RUNNING', 'PAUSED'],
} as const satisfies Partial<Record<CampaignStatus, readonly CampaignStatus[]>>

/** SQL condition on a stored status. */
export function campaignMayBecome(status: keyof typeof CAMPAIGN_MOVES, column: string): string {
  return `${column} in (${CAMPAIGN_MOVES[status].map((from) => `'${from}'`).join(', ')})`
}

/** A step that deletes the references of campaigns to the templates that their buttons send. `over` names a step with campaigns that are over. */
export const dropReferences = (over: string) => `
  unreferred as (
    delete from campaign_references where campaign_id = any (array(select id from ${over}))
  )`
