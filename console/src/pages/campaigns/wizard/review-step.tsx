import type { ComponentChildren } from 'preact'
import type { Violation } from '../../../app/api.ts'
import { TextField } from '../../../kit/controls.tsx'
import { Facts } from '../../../kit/display.tsx'
import { pages } from '../../../words/en.ts'
import * as campaignWords from '../../../words/en-campaigns.ts'
import { typeToConfirm } from '../../../words/en-kit.ts'
import * as say from '../../../words/en-wizard.ts'
import { exactTimeOf } from '../../../words/numbers.ts'
import { AudienceFacts, type Counted, reachOf } from './audience.tsx'
import type { Template } from './content-step.tsx'
import { type Draft, smsParts } from './draft.ts'
import { StepLinks } from './frame.tsx'

type Props = {
  draft: Draft
  missing: Violation[]
  counted: Counted
  template: Template | undefined
  agentName: string
  typed: string
  onType: (text: string) => void
}

/** Everything at a glance. The person types to how many it goes. */
export function ReviewStep({ draft, missing, counted, template, agentName, typed, onType }: Props) {
  const { name, groups, starts, scheduledAt, expiresAt, hasSms, sender } = draft
  const reach = counted.value && reachOf(counted.value)
  const parts = hasSms ? smsParts(draft) : 0
  const facts: [name: string, value: ComponentChildren][] = [
    [say.name, name],
    [say.steps.content, `${template?.name ?? '…'}, ${agentName}`],
    [pages.groups, campaignWords.groups(groups)],
    [say.start, starts === 'now' ? say.startsNow : scheduledAt && exactTimeOf(scheduledAt)],
    [say.expires, expiresAt ? exactTimeOf(expiresAt) : say.after48Hours],
    [say.steps.sms, hasSms ? `${say.smsBy(sender, parts)}${reach ? say.inAll(parts * reach.reached) : ''}` : say.rcsOnly],
  ]
  return (
    <div class="form">
      {missing.length > 0 && (
        <div class="problem" role="alert">
          <p>{missing.map(({ reason }) => reason).join(' ')}</p>
          <StepLinks of={missing} />
        </div>
      )}
      <Facts facts={facts} />
      <AudienceFacts counted={counted} />
      {reach !== undefined && reach.reached > 0 && (
        <TextField label={typeToConfirm(String(reach.reached))} value={typed} onInput={onType} autocomplete="off" />
      )}
    </div>
  )
}
