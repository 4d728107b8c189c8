import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { curlOf } from '../../kit/as-curl.tsx'
import { CodeBlock } from '../../kit/code-block.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-keys.ts'
import { pathOf, type Restrictions } from './key.tsx'
import { bodyOf, fieldsOf, restrictionFields } from './restrictions.tsx'

/** The secret is in this response only. */
type Created = Restrictions & { integrationKey: string; secret: string }

type Props = {
  title?: string
  /** What the form begins with. */
  restrictions?: Restrictions
  onCreated?: (integrationKey: string) => void
  onClose: () => void
}

/** Creates a key, and shows its secret, which can't be read later. */
export function NewKey({ title = say.add, restrictions = {}, onCreated, onClose }: Props) {
  const { account, withPassword } = useFrame()
  const [fields, setFields] = useState(fieldsOf(restrictions))
  const [created, setCreated] = useState<Created>()
  const submit = async () => {
    const key = await withPassword(() => post<Created>(pathOf(account.accountId), bodyOf(fields)))
    setCreated(key)
    onCreated?.(key.integrationKey)
  }
  if (created !== undefined) return <Created item={created} onClose={onClose} />
  return (
    <FormDialog title={title} run={submit} onClose={onClose}>
      {(wrongAt) => restrictionFields({ fields, onChange: setFields, wrongAt })}
    </FormDialog>
  )
}

/** Shows a key with its secret, and a command that tries them. */
function Created({ item: { integrationKey, secret, scopes }, onClose }: { item: Created; onClose: () => void }) {
  const credentials = `${integrationKey}:${secret}`
  return (
    <Dialog title={say.made} onClose={onClose} closesOutside={false}>
      <p>{say.copyHint}</p>
      <CodeBlock text={credentials} label={say.credentials} />
      <h3>{say.tryIt}</h3>
      <p class="hint">{scopes === undefined || scopes.includes('read') ? say.tryHint : say.mayNotRead}</p>
      <CodeBlock text={curlOf({ path: 'agents', credentials }, document.baseURI)} label={say.tryIt} />
    </Dialog>
  )
}
