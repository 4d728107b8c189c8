import { Choice } from '../../../kit/controls.tsx'
import { TimeField } from '../../../kit/time-field.tsx'
import * as say from '../../../words/en-wizard.ts'
import type { Draft, StepProps } from './draft.ts'

/** When it starts, and until when its messages may be delivered. */
export function TimeStep({ draft, change, wrong }: StepProps) {
  return (
    <div class="form">
      <h3>{say.start}</h3>
      <Choice<Draft['starts']>
        label={say.start}
        value={draft.starts}
        options={(['now', 'later'] as const).map((value) => ({ value, text: say.starts[value] }))}
        onChange={(starts) => change({ starts })}
      />
      {draft.starts === 'later' && (
        <TimeField
          label={say.startsAt}
          value={draft.scheduledAt}
          hint={say.startHint}
          problem={wrong('/scheduledAt')}
          onChange={(scheduledAt) => change({ scheduledAt })}
        />
      )}
      <TimeField
        label={say.expiresAt}
        value={draft.expiresAt}
        hint={say.expiresHint}
        problem={wrong('/expiresAt')}
        onChange={(expiresAt) => change({ expiresAt })}
      />
    </div>
  )
}
