import { useEffect, useState } from 'preact/hooks'
import { useAll } from '../../../app/all.ts'
import type { Place } from '../../../app/place.ts'
import { Crumbs } from '../../../kit/crumbs.tsx'
import { PageHead } from '../../../kit/display.tsx'
import { useKeptFocus } from '../../../kit/kept-focus.ts'
import { Reading } from '../../../kit/reading.tsx'
import * as say from '../../../words/en-import.ts'
import type { Segment } from '../segments.ts'
import { ChooseFile } from './choose-file.tsx'
import './import.css'
import { JobCard } from './job-card.tsx'
import { useJob } from './jobs.ts'
import { Prepare } from './prepare.tsx'
import type { Chosen } from './read-file.ts'

/** Imports a file into a group: choose it, say what its columns have, look at its first lines, and watch. */
export function ImportPage({ place }: { place: Place }) {
  const { value: groups, problem, reload } = useAll<Segment>('segments')
  const { job, start, forget, leave } = useJob()
  const [chosen, setChosen] = useState<Chosen>()
  useEffect(() => leave, [])
  const isDone = job?.state.is === 'done'
  useEffect(() => {
    if (isDone) reload()
  }, [isDone, reload])
  const again = () => {
    forget()
    setChosen(undefined)
  }
  return (
    <>
      <Crumbs page="groups">{say.open}</Crumbs>
      <PageHead title={say.open} />
      <div ref={useKeptFocus<HTMLDivElement>()} tabIndex={-1} class="import-steps">
        {job && <JobCard job={job} onRepeat={() => start(job)} onAgain={again} {...(chosen && { onBack: forget })} />}
        {/* Hidden during the import: after a failure, what the person has filled in is still there. */}
        <div hidden={job !== undefined}>
          {chosen === undefined && <ChooseFile onChosen={setChosen} />}
          {chosen && <Reading value={groups} problem={problem} reload={reload} />}
          {chosen && groups && (
            <Prepare
              chosen={chosen}
              groups={groups}
              into={place.query.get('into') ?? ''}
              onChange={(columns) => setChosen({ ...chosen, columns })}
              onOther={again}
              onStart={start}
            />
          )}
        </div>
      </div>
    </>
  )
}
