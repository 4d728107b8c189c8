import { useState } from 'preact/hooks'
import { ApiProblem, ask } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { Select, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-opt-outs.ts'
import * as replyWords from '../../words/en-replies.ts'

type Props = {
  /** The number that the person has looked for. */
  phone: string
  agents: { value: string; text: string }[]
  onDone: (said: string) => void
  onClose: () => void
}

/** Opts a recipient out who has asked for it by another way, such as on the telephone. */
export function NewOptOut({ phone: lookedFor, agents, onDone, onClose }: Props) {
  const { account } = useFrame()
  const [phone, setPhone] = useState(lookedFor)
  const [agentId, setAgentId] = useState('')
  const [stop, setStop] = useState<keyof typeof say.stopped>('campaigns')
  const save = async () => {
    const list = `/accounts/${account.accountId}/opt-outs`
    const number = encodeURIComponent(phone.trim())
    // An opt-out from campaigns replaces a block, and would let single messages through again.
    const found =
      stop === 'campaigns' ? await ask<{ items: { agentId: string; block: boolean }[] }>(`${list}?phone=${number}`) : { items: [] }
    if (found.items.some((item) => item.block && (agentId === '' || item.agentId === agentId)))
      throw new ApiProblem(409, { code: 'BLOCKED', details: [{ path: '', reason: say.isBlocked }] })
    const body = { ...(agentId !== '' && { agentId }), block: stop === 'all' }
    const { items } = await ask<{ items: object[] }>(`${list}/${number}`, { method: 'PUT', body })
    onDone(say.added(items.length))
  }
  return (
    <FormDialog title={say.add} run={save} onClose={onClose}>
      {() => (
        <>
          <TextField label={replyWords.number} value={phone} onInput={setPhone} placeholder="+48500100200" required autocomplete="off" />
          <Select
            label={replyWords.agent}
            value={agentId}
            options={[{ value: '', text: say.allAgents }, ...agents]}
            onChange={setAgentId}
          />
          <Select
            label={say.stop}
            value={stop}
            hint={say.stopHint[stop]}
            options={(['campaigns', 'all'] as const).map((value) => ({ value, text: say.stopped[value] }))}
            onChange={setStop}
          />
        </>
      )}
    </FormDialog>
  )
}
