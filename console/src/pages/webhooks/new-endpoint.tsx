import { useState } from 'preact/hooks'
import { EVENT_KINDS } from '../../../../server/src/events/kinds.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { useFrame } from '../../app/session.tsx'
import { CodeBlock } from '../../kit/code-block.tsx'
import { Button, Submit, TextField } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Problem, problemAt } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import { SecretDialog } from './secret.tsx'

/** Adds an endpoint, and shows its secret, which can't be read later. */
export function NewEndpoint({ onClose }: { onClose: () => void }) {
  const { account, withPassword } = useFrame()
  const [url, setUrl] = useState('')
  const [types, setTypes] = useState<string[]>([])
  const [problem, setProblem] = useState<ApiProblem>()
  const [secret, setSecret] = useState<string>()
  // Only a Herald with a simulated network posts to its own machine.
  const carriers = useCarriers()
  const isSimulated = carriers.simulator !== undefined
  const submit = async () => {
    setProblem(undefined)
    const body = { url, ...(types.length > 0 && { types }) }
    await withPassword(() => post<{ secret: string }>(`/accounts/${account.accountId}/webhook-endpoints`, body)).then(
      (created) => setSecret(created.secret),
      (error: ApiProblem) => setProblem(error),
    )
  }
  const toggle = (type: string) => setTypes(types.includes(type) ? types.filter((each) => each !== type) : [...types, type])
  if (secret !== undefined) return <SecretDialog title={words.webhooks.added} secret={secret} onClose={onClose} />
  return (
    <Dialog title={words.webhooks.add} onClose={onClose} onSubmit={submit} actions={<Submit text={words.webhooks.add} />}>
      <TextField
        label={words.webhooks.url}
        value={url}
        onInput={setUrl}
        placeholder="https://hooks.example.com/herald"
        required
        hint={isSimulated ? words.webhooks.urlHintSimulated : words.webhooks.urlHint}
        problem={problemAt(problem, '/url')}
      />
      {carriers.problem && <Problem problem={carriers.problem} onRetry={carriers.reload} />}
      {isSimulated && <NoServer onUse={setUrl} />}
      <fieldset class="types">
        <legend>{words.webhooks.types}</legend>
        <p class="hint">{words.webhooks.typesHint}</p>
        {EVENT_KINDS.map((type) => (
          <label>
            <input type="checkbox" checked={types.includes(type)} onChange={() => toggle(type)} /> <code>{type}</code>
          </label>
        ))}
      </fieldset>
      {problem && problemAt(problem, '/url') === undefined && <Problem problem={problem} />}
    </Dialog>
  )
}

const RECEIVER_URL = 'http://127.0.0.1:9000/'
/** Works in every shell: double quotes outside, single quotes inside, and no `$`, `!` or backtick, which a shell would replace. */
const RECEIVER = `node -e "require('http').createServer((q, s) => q.pipe(process.stdout, { end: false }) && q.on('end', () => s.end(console.log()))).listen(9000, '127.0.0.1')"`

/** A server for a person who has none. */
function NoServer({ onUse }: { onUse: (url: string) => void }) {
  return (
    <details class="no-server">
      <summary>{words.webhooks.noServer}</summary>
      <p class="hint">{words.webhooks.noServerHint}</p>
      <CodeBlock text={RECEIVER} label={words.webhooks.command} />
      <Button onClick={() => onUse(RECEIVER_URL)}>{words.webhooks.useAddress(RECEIVER_URL)}</Button>
    </details>
  )
}
