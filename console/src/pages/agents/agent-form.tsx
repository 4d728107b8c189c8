import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { Select, TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-agents.ts'
import { BILLING_TYPES } from './agent.tsx'

type Props = { onDone: (agentId: string) => void; onClose: () => void }

/** Registers an agent of the installation. */
export function AgentForm({ onDone, onClose }: Props) {
  const [agentId, setAgentId] = useState('')
  const [name, setName] = useState('')
  const [carrier, setCarrier] = useState('')
  const [billingType, setBillingType] = useState<(typeof BILLING_TYPES)[number]>('single')
  const register = async () => {
    // An agent without a carrier gets the only one that there is.
    await post('/agents', { agentId, name, billingType, ...(carrier && { carrier }) })
    onDone(agentId)
  }
  return (
    <FormDialog title={say.add} run={register} onClose={onClose}>
      {(wrongAt) => (
        <>
          <TextField
            label={say.id}
            hint={say.idHint}
            value={agentId}
            onInput={setAgentId}
            required
            autocomplete="off"
            problem={wrongAt('/agentId')}
          />
          <TextField label={say.name} value={name} onInput={setName} required autocomplete="off" problem={wrongAt('/name')} />
          <Select
            label={say.billingType}
            value={billingType}
            options={BILLING_TYPES.map((value) => ({ value, text: say.billing[value] }))}
            onChange={setBillingType}
            hint={billingType === 'basic' && say.basicHint}
          />
          <TextField
            label={say.carrier}
            hint={say.carrierHint}
            value={carrier}
            onInput={setCarrier}
            autocomplete="off"
            problem={wrongAt('/carrier')}
          />
        </>
      )}
    </FormDialog>
  )
}
