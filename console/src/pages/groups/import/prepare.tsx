import { useState } from 'preact/hooks'
import { useFrame } from '../../../app/session.tsx'
import { Button, Select, TextField } from '../../../kit/controls.tsx'
import { Sure } from '../../../kit/sure.tsx'
import * as groupWords from '../../../words/en-groups.ts'
import * as say from '../../../words/en-import.ts'
import type { Segment } from '../segments.ts'
import type { Columns } from './columns.ts'
import type { Wanted } from './jobs.ts'
import { Preview } from './preview.tsx'
import type { Chosen } from './read-file.ts'

type Props = {
  chosen: Chosen
  groups: Segment[]
  /** The number of the group, in the address. */
  into: string
  onChange: (columns: Columns) => void
  onOther: () => void
  onStart: (wanted: Wanted) => void
}

const NEW = 'new'

/** The second step: which group, which columns, and whether the first lines are right. */
export function Prepare({ chosen, groups, into, onChange, onOther, onStart }: Props) {
  const { accountId } = useFrame().account
  const { file, columns } = chosen
  const [isAsking, setAsking] = useState(false)
  const [choice, setChoice] = useState(into)
  // The name of the file is a good name for a new group.
  const [name, setName] = useState(file.name.replace(/\.\w+$/, '').slice(0, 200))
  const group = groups.find(({ segmentId }) => String(segmentId) === choice)
  const [lines, isExact] = linesOf(chosen)
  const hasPhone = columns.columns.some(({ use }) => use === 'phone')
  const target = group ? { accountId, segmentId: group.segmentId } : { accountId, name: name.trim() }
  const start = async () => onStart({ ...chosen, target })
  const close = () => setAsking(false)
  const submit = (event: Event) => {
    event.preventDefault()
    if (group && group.members > 0) setAsking(true)
    else void start()
  }
  return (
    <form class="import-form" onSubmit={submit}>
      <section class="card import-part">
        <FileLine {...chosen} onOther={onOther} />
        <div class="import-target">
          <Select label={say.into} value={group ? choice : NEW} options={optionsOf(groups)} onChange={setChoice} />
          {!group && <TextField label={groupWords.name} value={name} onInput={setName} required autocomplete="off" />}
        </div>
      </section>
      <p class="import-wrong" role="status">
        {!hasPhone && say.noPhone}
      </p>
      <Preview chosen={chosen} onChange={onChange} />
      <div class="form-end">
        <Button kind="primary" type="submit" icon="upload" disabled={!hasPhone || lines === 0 || (!group && name.trim() === '')}>
          {say.start(lines, isExact)}
        </Button>
      </div>
      {isAsking && group && (
        <Sure title={say.sureTitle(groupWords.nameOf(group))} action={say.sureNow} run={start} onDone={close} onClose={close}>
          <p>{say.sure(group.members)}</p>
        </Sure>
      )}
    </form>
  )
}

const optionsOf = (groups: Segment[]) => [
  { value: NEW, text: say.newGroup },
  ...groups.map((group) => ({ value: String(group.segmentId), text: say.option(group) })),
]

/** How many lines a file has, and whether that is exact. */
const linesOf = ({ head: { lines }, columns }: Chosen) => [lines.count - (columns.hasHeader ? 1 : 0), lines.isExact] as const

function FileLine({ onOther, ...chosen }: Chosen & { onOther: () => void }) {
  return (
    <p class="import-file">
      <b>{chosen.file.name}</b>
      <span class="note">{say.fileNote(...linesOf(chosen), chosen.head.separator)}</span>
      <span class="spring" />
      <Button onClick={onOther}>{say.other}</Button>
    </p>
  )
}
