import { useState } from 'preact/hooks'
import { linkTo } from '../../../app/place.ts'
import { Announcement } from '../../../kit/announcement.tsx'
import { Button, ButtonLink } from '../../../kit/controls.tsx'
import { Progress } from '../../../kit/meter.tsx'
import { Problem } from '../../../kit/problem.tsx'
import { actions } from '../../../words/en.ts'
import * as say from '../../../words/en-import.ts'
import * as kitWords from '../../../words/en-kit.ts'
import { isRunning, type Job, MAX_REJECTED } from './jobs.ts'
import { saveRejected } from './rejected-file.ts'

type Props = {
  job: Job
  onRepeat: () => void
  /** To the choice of another file. */
  onAgain: () => void
  /** To the columns of the same file. */
  onBack?: () => void
}

/** The third step: how far the import has come, and what has come of it. */
export function JobCard({ job, onRepeat, onAgain, onBack }: Props) {
  const { state, file } = job
  const isDone = state.is === 'done' && state.result.imported > 0
  const heading = state.is === 'done' && !isDone ? 'failed' : state.is
  return (
    <section class="card import-job" aria-label={say.open}>
      <h2>{say.heading(heading, file.name)}</h2>
      {state.is === 'running' && <Running share={state.share} />}
      {state.is === 'failed' && <Problem problem={state.problem} onRetry={onRepeat} />}
      {state.is === 'done' && <Result job={job} state={state} />}
      <div class="form-end">
        {state.is === 'running' && state.share !== undefined && <Button onClick={job.cancel}>{kitWords.cancel}</Button>}
        {!isRunning(job) && !isDone && onBack && <Button onClick={onBack}>{say.back}</Button>}
        {!isRunning(job) && <Button onClick={onAgain}>{say.other}</Button>}
        {isDone && <Links {...job.target} />}
      </div>
    </section>
  )
}

function Links({ accountId, segmentId }: Job['target']) {
  return (
    <>
      <ButtonLink href={linkTo({ accountId, path: ['groups', String(segmentId)] })}>{say.openGroup}</ButtonLink>
      <ButtonLink kind="primary" href={linkTo({ accountId, path: ['campaigns', 'new'] })}>
        {actions.newCampaign}
      </ButtonLink>
    </>
  )
}

function Running({ share }: { share: number | undefined }) {
  const text = share === undefined ? say.writing : say.percent(Math.floor(100 * share))
  return (
    <>
      <Progress label={say.open} {...(share !== undefined && { value: share })} max={1} />
      <p class="note">{text}</p>
      <Announcement text={text} />
    </>
  )
}

const SHOWN = 5

function Result({ job: { file }, state: { result } }: { job: Job; state: Extract<Job['state'], { is: 'done' }> }) {
  const [isBusy, setBusy] = useState(false)
  const { imported, rejected } = result
  const download = async () => {
    setBusy(true)
    await saveRejected(file, rejected)
    setBusy(false)
  }
  return (
    <>
      <div role="status">
        <p>{say.imported(imported)}</p>
        {imported === 0 && <p>{say.nothing}</p>}
        {rejected.length > 0 && <p>{say.rejectedLines(rejected.length, rejected.length >= MAX_REJECTED)}</p>}
      </div>
      {rejected.length > 0 && (
        <>
          <ul class="reasons">
            {rejected.slice(0, SHOWN).map(({ line, reason }) => (
              <li>{say.lineAt(line, reason)}</li>
            ))}
          </ul>
          <p>
            <Button icon="download" isBusy={isBusy} onClick={() => void download()}>
              {say.download}
            </Button>
          </p>
        </>
      )}
    </>
  )
}
