import { Pill, type Tone } from '../../kit/display.tsx'
import type { IconName } from '../../kit/icon.tsx'
import { Icon } from '../../kit/icon.tsx'
import type { Message, SmsStatus, Status } from '../../timeline/types.ts'
import { words } from '../../words/words.ts'

const { statuses, smsStatuses, rcs, followedBy } = words.messages

type Look = { tone: Tone; icon: IconName }

const LOOKS: Record<Status, Look> = {
  ACCEPTED: { tone: 'wait', icon: 'clock' },
  SENDING: { tone: 'wait', icon: 'send' },
  SENT: { tone: 'info', icon: 'send' },
  DELIVERED: { tone: 'good', icon: 'check' },
  READ: { tone: 'good', icon: 'eye' },
  FAILED: { tone: 'bad', icon: 'x' },
  EXPIRED: { tone: 'bad', icon: 'clock' },
}

const SMS_LOOKS: Record<SmsStatus, Look> = {
  WAITING: { tone: 'wait', icon: 'clock' },
  SCHEDULED: { tone: 'wait', icon: 'timer' },
  SENT: { tone: 'info', icon: 'send' },
  DELIVERED: { tone: 'good', icon: 'check' },
  FAILED: { tone: 'bad', icon: 'x' },
  NOT_NEEDED: { tone: 'plain', icon: 'check' },
  SKIPPED: { tone: 'warn', icon: 'hand' },
}

/** The status of a message, and of its SMS once the message has fallen back to it. */
export function StatusPills({ message: { status, smsFallback } }: { message: Message }) {
  const hasSms = smsFallback !== undefined && smsFallback.status !== 'WAITING' && smsFallback.status !== 'NOT_NEEDED'
  return (
    <span class="statuses">
      <Pill {...LOOKS[status]}>{hasSms ? rcs(statuses[status]) : statuses[status]}</Pill>
      {hasSms && (
        <>
          <Icon name="arrow-right" size={14} class="soft" label={followedBy} />
          <Pill {...SMS_LOOKS[smsFallback.status]}>{smsStatuses[smsFallback.status]}</Pill>
        </>
      )}
    </span>
  )
}
