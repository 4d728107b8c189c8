import { useState } from 'preact/hooks'
import { useAll } from '../../../app/all.ts'
import { linkTo } from '../../../app/place.ts'
import { useFrame } from '../../../app/session.tsx'
import { TextField } from '../../../kit/controls.tsx'
import { Reading } from '../../../kit/reading.tsx'
import { pages } from '../../../words/en.ts'
import { nothingFound } from '../../../words/en-kit.ts'
import * as say from '../../../words/en-wizard.ts'
import { AudienceFacts, type Counted } from './audience.tsx'
import { GROUPS, type StepProps } from './draft.ts'

/** `members` is undefined if the group was deleted after it had been chosen. */
type Group = { segmentId: number; name?: string; members?: number }

/** Groups, and whom they reach together. */
export function GroupsStep({ draft, change, wrong, counted }: StepProps & { counted: Counted }) {
  const { accountId } = useFrame().account
  const { value: items, ...read } = useAll<Group>('segments')
  const [text, setText] = useState('')
  const wanted = text.trim().toLowerCase()
  const isChosen = (id: number) => draft.groups.includes(id)
  const gone = draft.groups.filter((id) => !items?.some(({ segmentId }) => segmentId === id))
  const all = [...gone.map((segmentId): Group => ({ segmentId })), ...(items ?? [])]
  const shown = all.filter(({ segmentId, name = '' }) => isChosen(segmentId) || `${segmentId} ${name}`.toLowerCase().includes(wanted))
  const toggle = (id: number) =>
    change({ groups: isChosen(id) ? draft.groups.filter((each) => each !== id) : [...draft.groups, id].sort((a, b) => a - b) })
  return (
    <div class="form">
      {items && <TextField label={say.findGroup} value={text} onInput={setText} autocomplete="off" />}
      <fieldset class="camp-groups" aria-describedby="camp-groups-hint">
        <legend>{pages.groups}</legend>
        <Reading value={items} {...read} />
        {items?.length === 0 && (
          <p>
            {say.noGroup} <a href={linkTo({ accountId, path: ['groups', 'new'] })}>{say.toGroups}</a>
          </p>
        )}
        {items && items.length > 0 && shown.length === 0 && <p class="soft">{nothingFound}</p>}
        <div class="camp-group-list">
          {items &&
            shown.map(({ segmentId, name, members }) => (
              <label key={segmentId}>
                <input type="checkbox" checked={isChosen(segmentId)} onChange={() => toggle(segmentId)} />
                <span>
                  {say.groupName(segmentId, name)}
                  <small>{members === undefined ? say.groupGone : say.groupNote(segmentId, members)}</small>
                </span>
              </label>
            ))}
        </div>
        <p id="camp-groups-hint" class="hint is-wrong" role="alert">
          {wrong(GROUPS)}
        </p>
      </fieldset>
      <AudienceFacts counted={counted} />
    </div>
  )
}
