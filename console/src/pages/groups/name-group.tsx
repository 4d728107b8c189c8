import { useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-groups.ts'
import { newNumber, pathOf, type Segment } from './segments.ts'

type Props = { title: string; group?: Segment; onDone?: () => void; onClose: () => void }

/** Renames a group. Without one, makes an empty group, and opens it. */
export function NameGroup({ title, group, onDone, onClose }: Props) {
  const { accountId } = useFrame().account
  const [name, setName] = useState(group?.name ?? '')
  const number = useRef(group?.segmentId)
  const save = async () => {
    const wanted = name.trim()
    if (group === undefined) number.current = await newNumber(accountId, wanted, number.current)
    await ask(pathOf(accountId, number.current as number), { method: 'PUT', body: { name: wanted } })
    if (group === undefined) go({ accountId, path: ['groups', String(number.current)] })
    onDone?.()
    onClose()
  }
  return (
    <FormDialog title={title} run={save} onClose={onClose}>
      {() => <TextField label={say.name} value={name} onInput={setName} required autocomplete="off" />}
    </FormDialog>
  )
}
