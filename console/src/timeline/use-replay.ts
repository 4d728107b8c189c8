import { useState } from 'preact/hooks'
import { type ApiProblem, post } from '../app/api.ts'
import { useFrame } from '../app/session.tsx'

/** Posts one event to one endpoint again, if the person wants it. `onDone`: called when Herald has accepted that. */
export function useReplay(endpointId: number, eventId: string, onDone: () => void) {
  const { account } = useFrame()
  const [state, setState] = useState<'ready' | 'busy' | 'done' | ApiProblem>('ready')
  const replay = () => {
    setState('busy')
    post(`/accounts/${account.accountId}/webhook-endpoints/${endpointId}/replay`, { eventId }).then(
      () => {
        setState('done')
        onDone()
      },
      (problem: ApiProblem) => setState(problem),
    )
  }
  return { state, replay }
}
