import { useState } from 'preact/hooks'
import { type ApiProblem, post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { Choice, Field, Submit } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Ago } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { toField } from '../messages/query.ts'
import { type Endpoint, pathOf } from './endpoints.ts'

/** `alreadyDue`: events that are posted now anyway. */
type Replayed = { replayed: number; alreadyDue: number }

const A_DAY_MS = 86_400_000

type Props = {
  endpoint: Endpoint
  /** Since when the endpoint has missed events, if it has just been enabled. */
  missedSince: string | undefined
  onClose: () => void
  onReplayed: (said: string, which: 'failed' | 'all') => void
  onChanged: () => void
}

/**
 * Posts events again: those that failed, or all, since a time. It suggests every event that failed, or all events that the endpoint missed while
 * it was disabled. The time since when the endpoint fails is no suggestion: an event may have been recorded long before its first attempt.
 */
export function ReplayDialog({ endpoint, missedSince, onClose, onReplayed, onChanged }: Props) {
  const { account } = useFrame()
  const [which, setWhich] = useState<'failed' | 'all'>(missedSince === undefined ? 'failed' : 'all')
  const [chosen, setChosen] = useState<string>()
  const since = chosen ?? (which === 'failed' ? '' : toField(missedSince ?? new Date(Date.now() - A_DAY_MS).toISOString()))
  const [problem, setProblem] = useState<ApiProblem>()
  const submit = async () => {
    setProblem(undefined)
    const body = { failed: which === 'failed', ...(since !== '' && { from: new Date(since).toISOString() }) }
    await post<Replayed>(pathOf(account.accountId, endpoint.endpointId, '/replay'), body).then(
      (done) => {
        onReplayed(words.webhooks.replayed(done.replayed + done.alreadyDue), which)
        onChanged()
        onClose()
      },
      (error: ApiProblem) => setProblem(error),
    )
  }
  return (
    <Dialog
      title={words.webhooks.replay}
      onClose={onClose}
      onSubmit={submit}
      actions={<Submit icon="history" text={words.webhooks.replayNow[which === 'failed' && since === '' ? 'everyFailed' : which]} />}
    >
      {missedSince !== undefined && (
        <p>
          {words.webhooks.missed} <Ago at={missedSince} />.
        </p>
      )}
      <Choice
        label={words.webhooks.which}
        value={which}
        onChange={setWhich}
        options={[
          { value: 'failed', text: words.webhooks.onlyFailed },
          { value: 'all', text: words.webhooks.allEvents },
        ]}
      />
      <Field label={words.webhooks.recordedSince} hint={words.webhooks.replayHint[which]}>
        {({ id, describedBy }) => (
          <input
            class="input"
            type="datetime-local"
            id={id}
            aria-describedby={describedBy}
            required={which === 'all'}
            value={since}
            onInput={(event) => setChosen(event.currentTarget.value)}
          />
        )}
      </Field>
      {problem && <Problem problem={problem} />}
    </Dialog>
  )
}
