import { Pill, type Tone } from '../../kit/display.tsx'
import type { IconName } from '../../kit/icon.tsx'
import { Icon } from '../../kit/icon.tsx'
import type { Message, SmsStatus, Status } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'

/** An SMS that waits for RCS to fail, or was not needed, says nothing. */
type ShownSms = Exclude<SmsStatus, 'WAITING' | 'NOT_NEEDED'>
const isShown = (status: SmsStatus): status is ShownSms => status !== 'WAITING' && status !== 'NOT_NEEDED'

type Look = { tone: Tone; icon: IconName }

/** The statuses of messages and of SMS. */
const LOOKS: Record<Status | ShownSms, Look> = {
  ACCEPTED: { tone: 'wait', icon: 'clock' },
  SENDING: { tone: 'wait', icon: 'send' },
  SCHEDULED: { tone: 'wait', icon: 'clock' },
  SENT: { tone: 'info', icon: 'send' },
  DELIVERED: { tone: 'good', icon: 'check' },
  READ: { tone: 'good', icon: 'eye' },
  FAILED: { tone: 'bad', icon: 'x' },
  EXPIRED: { tone: 'bad', icon: 'clock' },
  SKIPPED: { tone: 'warn', icon: 'hand' },
}

/** The status of a message, and of its SMS once the message has fallen back to it. */
export function StatusPills({ message: { status, smsFallback } }: { message: Message }) {
  const sms = smsFallback && isShown(smsFallback.status) ? smsFallback.status : undefined
  return (
    <span class="statuses">
      <Pill {...LOOKS[status]}>{sms ? say.rcs(say.statuses[status]) : say.statuses[status]}</Pill>
      {sms && (
        <>
          <Icon name="arrow-right" size={14} class="soft" label={say.followedBy} />
          <Pill {...LOOKS[sms]}>{say.smsStatuses[sms]}</Pill>
        </>
      )}
    </span>
  )
}
