import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-people.ts'
import { LinkDialog } from './link.tsx'
import { isSelf, type Person, usePaths } from './person.ts'

type Props = { person: Person; onChanged: () => void }

/** What can be done about a person. Only operators change the person; admins make links. */
export function PersonActions({ person, onChanged }: Props) {
  const { session } = useFrame()
  const { isOperator: canChange } = usePaths()
  const [open, setOpen] = useState<'link' | 'rename' | 'operator' | 'access'>()
  const mayLose = canChange && !isSelf(person, session)
  const isDisabled = person.disabledAt !== undefined
  const props = { person, onChanged, onClose: () => setOpen(undefined) }
  return (
    <div class="person-actions">
      {!isDisabled && (
        <Button icon="link" onClick={() => setOpen('link')}>
          {say.newLink}
        </Button>
      )}
      {canChange && (
        <Button icon="pencil" onClick={() => setOpen('rename')}>
          {say.rename}
        </Button>
      )}
      {mayLose && (
        <>
          <Button icon="shield-check" onClick={() => setOpen('operator')}>
            {person.isOperator ? say.notOperator : say.isOperator}
          </Button>
          <Button icon={isDisabled ? 'undo-2' : 'ban'} kind={isDisabled ? 'plain' : 'danger'} onClick={() => setOpen('access')}>
            {isDisabled ? say.letIn : say.lockOut}
          </Button>
        </>
      )}
      {open === 'link' && <LinkDialog {...props} />}
      {open === 'rename' && <RenameDialog {...props} />}
      {(open === 'operator' || open === 'access') && <RightsDialog {...props} isAccess={open === 'access'} />}
    </div>
  )
}

type DialogProps = Props & { onClose: () => void }

/** Changes a person, and has the page read the person again. */
function useChange({ person, onChanged, onClose }: DialogProps) {
  const { withPassword } = useFrame()
  const { person: pathOf } = usePaths()
  const done = () => {
    onClose()
    onChanged()
  }
  const change = (body: { name?: string; isOperator?: boolean; isDisabled?: boolean }) =>
    withPassword(() => ask(pathOf(person.personId), { method: 'PATCH', body }))
  return { change, done }
}

/** Asks before a person may do everything, or no longer, or may sign in, or no longer. */
function RightsDialog({ isAccess, ...props }: DialogProps & { isAccess: boolean }) {
  // The page reads the person again meanwhile. What is asked stays what the person pressed.
  const [{ isOperator, disabledAt, name, roles }] = useState(props.person)
  const { change, done } = useChange(props)
  const isDisabled = disabledAt !== undefined
  const access = isDisabled ? [say.letIn, say.sureLetIn(name)] : [say.lockOut, say.sureLockOut(name)]
  const operator = isOperator ? [say.notOperator, say.sureNotOperator(name, roles.length)] : [say.isOperator, say.sureOperator(name)]
  const [title = '', text] = isAccess ? access : operator
  const run = () => change(isAccess ? { isDisabled: !isDisabled } : { isOperator: !isOperator })
  return (
    <Sure title={title} action={title} run={run} onDone={done} onClose={props.onClose}>
      <p>{text}</p>
    </Sure>
  )
}

function RenameDialog(props: DialogProps) {
  const [name, setName] = useState(props.person.name)
  const { change, done } = useChange(props)
  return (
    <FormDialog title={say.rename} run={() => change({ name }).then(done)} onClose={props.onClose}>
      {(wrongAt) => <TextField label={say.name} value={name} onInput={setName} required autocomplete="off" problem={wrongAt('/name')} />}
    </FormDialog>
  )
}
