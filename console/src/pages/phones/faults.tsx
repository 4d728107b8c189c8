import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { useCarriers } from '../../app/carriers.ts'
import { useResource } from '../../app/resource.ts'
import { useRun } from '../../app/run.ts'
import { Button } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-phones.ts'

type Part = 'api' | 'webhooks' | 'smpp'
type Fault = Record<string, number | string>
type FaultSet = { seed?: number; agents?: object } & Partial<Record<Part | 'token', Record<string, Fault>>>

/** The faults that a click sets. A rate of 1: each time. */
const FAULTS: [name: keyof typeof say.faults.names, part: Part, key: string, fault: Fault][] = [
  ['slow', 'api', 'latency', { rate: 1, ms: 3_000 }],
  ['serverError', 'api', 'serverError', { rate: 1, status: 503 }],
  ['tooMany', 'api', 'tooManyRequests', { rate: 1, retryAfterSeconds: 2 }],
  ['lost', 'webhooks', 'lost', { rate: 1 }],
  ['duplicated', 'webhooks', 'duplicated', { rate: 1 }],
  ['smsRefused', 'smpp', 'throttled', { rate: 1 }],
  ['smsLost', 'smpp', 'receiptLost', { rate: 1 }],
]

/** Switches faults of the simulated network on and off. Only for operators, since all accounts share the network. */
export function Faults() {
  const carriers = useCarriers()
  const carrier = carriers.simulator?.carrier
  const faults = useResource<FaultSet>(carrier === undefined ? undefined : pathOf(carrier))
  const [isOpen, setOpen] = useState(false)
  const on = namesOf(faults.value ?? {})
  // The path of the faults needs the carrier, so a problem of the carriers comes first.
  const read = carrier === undefined ? carriers : faults
  const open = () => {
    setOpen(true)
    // Another operator may have changed them.
    faults.reload()
  }
  return (
    <>
      <Button icon="triangle-alert" onClick={open}>
        <span class={on.length > 0 ? 'tone-bad faults-on' : ''}>{say.faults.button(on.length)}</span>
      </Button>
      {isOpen && (
        <Dialog title={say.faults.title} onClose={() => setOpen(false)}>
          <p class="soft">{say.faults.hint}</p>
          {read.problem && <Problem problem={read.problem} onRetry={read.reload} />}
          {faults.value === undefined && read.problem === undefined && <Loading />}
          {faults.value && carrier && <Switches carrier={carrier} faults={faults.value} onChange={faults.reload} />}
        </Dialog>
      )}
    </>
  )
}

const pathOf = (carrier: string) => `/carriers/${encodeURIComponent(carrier)}/faults`

/** All faults that are on, such as `api.latency`. */
function namesOf({ seed: _, agents: __, ...parts }: FaultSet): string[] {
  return Object.entries(parts).flatMap(([part, faults]) => Object.keys(faults ?? {}).map((key) => `${part}.${key}`))
}

function Switches({ carrier, faults, onChange }: { carrier: string; faults: FaultSet; onChange: () => void }) {
  const { run, isBusy, problem } = useRun(onChange)
  const on = namesOf(faults)
  const others = on.filter((name) => !FAULTS.some(([, part, key]) => name === `${part}.${key}`))
  const change = (request: () => Promise<unknown>) => void run(() => request().then(() => ''))
  return (
    <>
      <ul class="switches">
        {FAULTS.map(([name, part, key, fault]) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                role="switch"
                aria-checked={on.includes(`${part}.${key}`)}
                checked={on.includes(`${part}.${key}`)}
                // Not disabled meanwhile: it would lose the focus.
                onClick={(event) => isBusy && event.preventDefault()}
                onChange={({ currentTarget }) => {
                  const next = currentTarget.checked ? fault : undefined
                  change(() => setFault(carrier, [part, key], next))
                }}
              />
              {say.faults.names[name]}
            </label>
          </li>
        ))}
      </ul>
      {others.length > 0 && <p>{say.faults.others(others.join(', '))}</p>}
      {problem && <Problem problem={problem} />}
      <div class="form-end">
        <Button isBusy={isBusy} onClick={() => change(() => ask(pathOf(carrier), { method: 'DELETE' }))}>
          {say.faults.end}
        </Button>
      </div>
    </>
  )
}

/** Switches one fault. A request replaces all faults, so the others are read just before, as other operators may have left them. */
async function setFault(carrier: string, [part, key]: [Part, string], fault: Fault | undefined): Promise<void> {
  const faults = await ask<FaultSet>(pathOf(carrier))
  const { [key]: _, ...others } = faults[part] ?? {}
  const body = { ...faults, [part]: fault === undefined ? others : { ...others, [key]: fault } }
  await ask(pathOf(carrier), { method: 'PUT', body })
}
