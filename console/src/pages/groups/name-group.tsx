import { useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-groups.ts'
import { newGroup, pathOf, type Segment, type Target } from './segments.ts'

type Props = { title: string; group?: Segment; onDone?: () => void; onClose: () => void }

/** Renames a group. Without one, makes an empty group, and opens it. */
export function NameGroup({ title, group, onDone, onClose }: Props) {
  const { accountId } = useFrame().account
  const [name, setName] = useState(group?.name ?? '')
  const target = useRef<Target>({ accountId }).current
  const save = async () => {
    const wanted = name.trim()
    if (group) await ask(pathOf(accountId, group.segmentId), { method: 'PUT', body: { name: wanted } })
    else {
      await newGroup(target, wanted)
      go({ accountId, path: ['groups', String(target.segmentId)] })
    }
    onDone?.()
    onClose()
  }
  return (
    <FormDialog title={title} run={save} onClose={onClose}>
      {() => <TextField label={say.name} value={name} onInput={setName} required autocomplete="off" />}
    </FormDialog>
  )
}
