import { useFrame } from '../../../app/session.tsx'
import { TextField } from '../../../kit/controls.tsx'
import { SmsMeter } from '../../../kit/sms-meter.tsx'
import * as sendWords from '../../../words/en-send.ts'
import * as say from '../../../words/en-wizard.ts'
import { SmsChoice, TextArea } from '../../templates/inputs.tsx'
import { SENDER, SMS_TEXT, type StepProps, sentText } from './draft.ts'

/** What recipients get whom RCS does not reach. */
export function SmsStep({ draft, change, wrong }: StepProps) {
  const { account } = useFrame()
  if (!account.modules.includes('sms')) return <p>{say.noModule}</p>
  return (
    <div class="form">
      <SmsChoice hasSms={draft.hasSms} onChange={change} />
      {draft.hasSms && <SmsFields draft={draft} change={change} wrong={wrong} />}
    </div>
  )
}

function SmsFields({ draft, change, wrong }: StepProps) {
  const sent = sentText(draft)
  return (
    <>
      <TextField
        label={sendWords.fields.sender}
        value={draft.sender}
        onInput={(sender) => change({ sender })}
        problem={wrong(SENDER)}
        autocomplete="off"
      />
      <div>
        <TextArea
          label={sendWords.fields.smsText}
          problem={wrong(SMS_TEXT)}
          rows={3}
          value={draft.smsText}
          onInput={(smsText) => change({ smsText })}
        />
        {draft.smsText !== '' && <SmsMeter text={sent} />}
        {sent !== draft.smsText && <p class="hint">{say.asSent(sent)}</p>}
      </div>
    </>
  )
}
