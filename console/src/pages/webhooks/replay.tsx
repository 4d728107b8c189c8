import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { Choice, TextField } from '../../kit/controls.tsx'
import { Ago } from '../../kit/display.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { fromField, toField } from '../../kit/local-time.ts'
import * as say from '../../words/en-webhooks.ts'

/** `alreadyDue`: events that are posted now anyway. */
type Replayed = { replayed: number; alreadyDue: number }

const A_DAY_MS = 86_400_000

type Props = {
  /** The path of the endpoint. */
  path: string
  /** Since when the endpoint has missed events, if it has just been enabled. */
  missedSince: string | undefined
  onClose: () => void
  onReplayed: (said: string, isAll: boolean) => void
}

/**
 * Posts events again: those that failed, or all, since a time. It suggests every event that failed, or all events that the endpoint missed while
 * it was disabled. The time since when the endpoint fails is no suggestion: an event may have been recorded long before its first attempt.
 */
export function ReplayDialog({ path, missedSince, onClose, onReplayed }: Props) {
  const [which, setWhich] = useState<'failed' | 'all'>(missedSince ? 'all' : 'failed')
  const [chosen, setChosen] = useState<string>()
  const isAll = which === 'all'
  const since = chosen ?? (isAll ? toField(missedSince ?? new Date(Date.now() - A_DAY_MS).toISOString()) : '')
  const submit = async () => {
    const { replayed, alreadyDue } = await post<Replayed>(`${path}/replay`, { failed: !isAll, from: fromField(since) })
    onReplayed(say.replayed(replayed + alreadyDue), isAll)
  }
  return (
    <FormDialog
      title={say.replay}
      action={isAll ? say.replayAll : since ? say.replayFailed : say.replayEveryFailed}
      run={submit}
      onClose={onClose}
    >
      {() => (
        <>
          {missedSince && (
            <p>
              {say.missed} <Ago at={missedSince} />.
            </p>
          )}
          <Choice
            label={say.which}
            value={which}
            onChange={setWhich}
            options={[
              { value: 'failed', text: say.onlyFailed },
              { value: 'all', text: say.allEvents },
            ]}
          />
          <TextField
            label={say.recordedSince}
            type="datetime-local"
            hint={say.replayHint[which]}
            required={isAll}
            value={since}
            onInput={setChosen}
          />
        </>
      )}
    </FormDialog>
  )
}
