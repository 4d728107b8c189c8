import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { saveChanges } from '../../app/changes.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago } from '../../kit/display.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { useKeptFocus } from '../../kit/kept-focus.ts'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-keys.ts'
import { isInUse, type Key, pathOf, statusOf } from './key.tsx'
import { bodyOf, fieldsOf, restrictionFields } from './restrictions.tsx'

type Open = 'change' | 'revoke'

/** The actions for a key. A revoked key has none: it never works again. */
export function KeyActions({ item: key, onChanged }: { item: Key; onChanged: () => void }) {
  const { account } = useFrame()
  const [open, setOpen] = useState<Open>()
  const [said, setSaid] = useState('')
  const part = useKeptFocus<HTMLDivElement>()
  const close = () => setOpen(undefined)
  const done = (text: string) => {
    setSaid(text)
    close()
    onChanged()
  }
  return (
    <div ref={part} tabIndex={-1}>
      <div class="actions">
        {statusOf(key) !== 'REVOKED' && (
          <>
            <Button icon="pencil" onClick={() => setOpen('change')}>
              {say.change}
            </Button>
            <Button icon="ban" kind="danger" onClick={() => setOpen('revoke')}>
              {say.revoke}
            </Button>
          </>
        )}
        <AsCurl path={pathOf(account.accountId, key.integrationKey).slice(1)} isAdmin />
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {open === 'change' && <ChangeKey item={key} onDone={() => done(say.changed)} onClose={close} />}
      {open === 'revoke' && <RevokeKey item={key} onDone={() => done(say.revoked)} onClose={close} />}
    </div>
  )
}

type DialogProps = { item: Key; onDone: () => void; onClose: () => void }

function ChangeKey({ item: key, onDone, onClose }: DialogProps) {
  const { account } = useFrame()
  const [before] = useState(fieldsOf(key))
  const [fields, setFields] = useState(before)
  const submit = async () => {
    await saveChanges(pathOf(account.accountId, key.integrationKey), bodyOf(before), bodyOf(fields))
    onDone()
  }
  return (
    <FormDialog title={say.change} action={say.save} run={submit} onClose={onClose}>
      {(wrongAt) => [<p>{say.changeHint}</p>, restrictionFields({ fields, onChange: setFields, wrongAt })]}
    </FormDialog>
  )
}

/** Asks before a key ends for good, and says whether a system still uses it. */
export function RevokeKey({ item: key, onDone, onClose }: DialogProps) {
  const { account } = useFrame()
  const { accountId } = account
  const { integrationKey } = key
  const { value, problem, reload } = useResource<{ items: Key[] }>(pathOf(accountId, undefined, '?status=ACTIVE&limit=2'))
  const isLast = value?.items.every((each) => each.integrationKey === integrationKey)
  return (
    <Sure
      title={say.revokeKey(integrationKey)}
      action={say.revoke}
      run={() => post(pathOf(accountId, integrationKey, '/revoke'))}
      onDone={onDone}
      onClose={onClose}
    >
      <LastUse item={key} />
      <p>
        {say.sureRevoke} {isLast && <b>{say.sureLast}</b>}
      </p>
      {problem && <Problem problem={problem} onRetry={reload} />}
    </Sure>
  )
}

function LastUse({ item: key }: { item: Key }) {
  if (key.lastUsedAt === undefined) return <p>{say.neverUsed}</p>
  return (
    <p class={isInUse(key) ? 'key-in-use' : ''}>
      {say.lastUsed} <Ago at={key.lastUsedAt} />. {isInUse(key) && say.sureInUse}
    </p>
  )
}
