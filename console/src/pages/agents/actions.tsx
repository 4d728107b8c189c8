import { useState } from 'preact/hooks'
import type { Agent } from '../../app/agents.ts'
import { ask, post } from '../../app/api.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { useKeptFocus } from '../../kit/kept-focus.ts'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-agents.ts'
import { type Own, ownPathOf, pathOf } from './agent.tsx'
import { EndAgent } from './end-agent.tsx'

type Open = 'rename' | 'deactivate' | 'unassign'
/** `own`: undefined if the agent is not assigned to the account, or not read yet. */
type Props = { agentId: string; own: Own | undefined; isAssigned: boolean; onChanged: (isUnassigned: boolean) => void }

/** What the person may do with the agent: an admin can end its use in the account, and only an operator can begin it. */
export function AgentActions({ agentId, own, isAssigned, onChanged }: Props) {
  const { accountId, role } = useFrame().account
  const [open, setOpen] = useState<Open>()
  const part = useKeptFocus<HTMLDivElement>()
  const { run, isBusy, problem, said, setSaid } = useRun(() => onChanged(false))
  const begin = (request: () => Promise<unknown>, text: string) => () => void run(() => request().then(() => text))
  const path = pathOf(accountId, agentId)
  const isOperator = role === 'operator'
  const active = own?.agent.active
  const close = () => setOpen(undefined)
  const done = (text: string) => () => {
    setSaid(text)
    close()
    onChanged(open === 'unassign')
  }
  /** The button that begins something ends it afterwards, so it keeps the focus. */
  const toggle = (isOn: boolean, ending: 'deactivate' | 'unassign', beginning: 'activate' | 'assign', onBegin: () => void) => (
    <Button
      icon={ending === 'deactivate' ? 'power' : isOn ? 'x' : 'plus'}
      kind={isOn ? 'danger' : 'primary'}
      isBusy={isBusy || (isAssigned && own === undefined)}
      onClick={isOn ? () => setOpen(ending) : onBegin}
    >
      {say.actions[isOn ? ending : beginning]}
    </Button>
  )
  return (
    <div ref={part} tabIndex={-1}>
      <div class="actions">
        {active && role !== 'viewer' && (
          <Button icon="pencil" onClick={() => setOpen('rename')}>
            {say.rename}
          </Button>
        )}
        {active !== undefined &&
          (active ? role !== 'viewer' : isOperator) &&
          toggle(
            active,
            'deactivate',
            'activate',
            begin(() => post(`${path}/activate`), say.activated),
          )}
        {isOperator &&
          toggle(
            isAssigned,
            'unassign',
            'assign',
            begin(() => ask(path, { method: 'PUT', body: {} }), say.assigned),
          )}
        <AsCurl path={path.slice(1)} isAdmin />
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      {open === 'rename' && own && <Rename agent={own.agent} onDone={done(say.renamed)} onClose={close} />}
      {(open === 'deactivate' || open === 'unassign') && own && (
        <EndAgent how={open} agent={own.agent} known={own.use} onDone={done(say.ended[open])} onClose={close} />
      )}
    </div>
  )
}

function Rename({ agent, onDone, onClose }: { agent: Agent; onDone: () => void; onClose: () => void }) {
  const { accountId } = useFrame().account
  const [displayName, setDisplayName] = useState(agent.displayName ?? '')
  const save = async () => {
    await ask(ownPathOf(accountId, agent.agentId), { method: 'PATCH', body: { displayName } })
    onDone()
  }
  return (
    <FormDialog title={say.rename} action={say.save} run={save} onClose={onClose}>
      {(wrongAt) => (
        <TextField
          label={say.displayName}
          hint={say.renameHint}
          value={displayName}
          onInput={setDisplayName}
          autocomplete="off"
          problem={wrongAt('/displayName')}
        />
      )}
    </FormDialog>
  )
}
