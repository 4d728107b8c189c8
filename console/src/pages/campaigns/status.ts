import type { IconName } from '../../kit/icon.tsx'
import type { Tone } from '../../kit/tone.ts'
import type { CampaignStatus } from './campaign.ts'

export const STATUS_LOOKS: Record<CampaignStatus, { tone: Tone; icon: IconName }> = {
  SCHEDULED: { tone: 'info', icon: 'clock' },
  RUNNING: { tone: 'good', icon: 'play' },
  PAUSED: { tone: 'warn', icon: 'pause' },
  COMPLETED: { tone: 'plain', icon: 'check' },
  CANCELLED: { tone: 'bad', icon: 'ban' },
}
