import { useState } from 'preact/hooks'
import { EVENT_KINDS } from '../../../../server/src/events/kinds.ts'
import { post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { useFrame } from '../../app/session.tsx'
import { CodeBlock } from '../../kit/code-block.tsx'
import { Button, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-webhooks.ts'
import { SecretDialog } from './secret.tsx'

/** Adds an endpoint, and shows its secret, which can't be read later. */
export function NewEndpoint({ onClose }: { onClose: () => void }) {
  const { account, withPassword } = useFrame()
  const [url, setUrl] = useState('')
  const [types, setTypes] = useState<string[]>([])
  const [secret, setSecret] = useState<string>()
  // Only a Herald with a simulated network posts to its own machine.
  const carriers = useCarriers()
  const isSimulated = carriers.simulator !== undefined
  const submit = async () => {
    const body = { url, ...(types.length > 0 && { types }) }
    const create = () => post<{ secret: string }>(`/accounts/${account.accountId}/webhook-endpoints`, body)
    setSecret((await withPassword(create)).secret)
  }
  const toggle = (type: string) => setTypes(types.includes(type) ? types.filter((each) => each !== type) : [...types, type])
  if (secret !== undefined) return <SecretDialog title={say.added} secret={secret} onClose={onClose} />
  return (
    <FormDialog title={say.add} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField
            label={say.url}
            value={url}
            onInput={setUrl}
            placeholder="https://hooks.example.com/herald"
            required
            hint={isSimulated ? say.urlHintSimulated : say.urlHint}
            problem={wrongAt('/url')}
          />
          {carriers.problem && <Problem problem={carriers.problem} onRetry={carriers.reload} />}
          {isSimulated && <NoServer onUse={setUrl} />}
          <fieldset class="types">
            <legend>{say.types}</legend>
            <p class="hint">{say.typesHint}</p>
            {EVENT_KINDS.map((type) => (
              <label>
                <input type="checkbox" checked={types.includes(type)} onChange={() => toggle(type)} /> <code>{type}</code>
              </label>
            ))}
          </fieldset>
        </>
      )}
    </FormDialog>
  )
}

const RECEIVER_URL = 'http://127.0.0.1:9000/'
/** Works in every shell: double quotes outside, single quotes inside, and no `$`, `!` or backtick, which a shell would replace. */
const RECEIVER = `node -e "require('http').createServer((q, s) => q.pipe(process.stdout, { end: false }) && q.on('end', () => s.end(console.log()))).listen(9000, '127.0.0.1')"`

/** A server for a person who has none. */
function NoServer({ onUse }: { onUse: (url: string) => void }) {
  return (
    <details class="no-server">
      <summary>{say.noServer}</summary>
      <p class="hint">{say.noServerHint}</p>
      <CodeBlock text={RECEIVER} label={say.command} />
      <Button onClick={() => onUse(RECEIVER_URL)}>{say.useAddress(RECEIVER_URL)}</Button>
    </details>
  )
}
