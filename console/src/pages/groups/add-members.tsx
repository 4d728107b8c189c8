import { useState } from 'preact/hooks'
import { ApiProblem, post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-groups.ts'
import { TextArea } from '../templates/inputs.tsx'
import { pathOf, type Segment } from './segments.ts'

const SHOWN_REASONS = 5

type Change = { added: number; rejected: { index: number; reason: string }[] }
type Props = { group: Segment; onClose: () => void; onAdded: (said: string) => void }

/** Adds some numbers by hand. For more, there is the import. */
export function AddMembers({ group, onClose, onAdded }: Props) {
  const { accountId } = useFrame().account
  const [text, setText] = useState('')
  // A number may have spaces.
  const numbers = [...new Set(text.split(/[\n,;\t]/).map((number) => number.trim()))].filter(Boolean)
  const add = async () => {
    const members = numbers.map((phone) => ({ phone }))
    const { added, rejected } = await post<Change>(pathOf(accountId, group.segmentId, '/members'), { members })
    onAdded(say.added(added))
    if (rejected.length === 0) return onClose()
    // What was rejected stays in the field, to be corrected.
    setText(rejected.map(({ index }) => numbers[index]).join('\n'))
    const details = rejected.slice(0, SHOWN_REASONS).map(({ reason }) => ({ path: '', reason: `${reason}.` }))
    throw new ApiProblem(400, { code: 'REJECTED', details })
  }
  return (
    <FormDialog title={say.addMembers} run={add} onClose={onClose}>
      {() => <TextArea label={say.numbers} hint={say.numbersHint} problem={undefined} rows={6} required value={text} onInput={setText} />}
    </FormDialog>
  )
}
