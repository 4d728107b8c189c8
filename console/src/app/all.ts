import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type ApiProblem, askAll } from './api.ts'
import { useFrame } from './session.tsx'

type State<Item> = { value?: Item[]; problem?: ApiProblem }

/** All items of a list of the account, which a page searches, or a person chooses from. `value` is undefined until they are read. */
export function useAll<Item>(list: string, isNeeded = true) {
  const { accountId } = useFrame().account
  const [state, setState] = useState<State<Item>>({})
  const reads = useRef(0)
  const reload = useCallback(() => {
    reads.current += 1
    const read = reads.current
    // An older response may arrive later.
    const show = (next: State<Item>) => read === reads.current && setState(({ value }) => ({ ...(value && { value }), ...next }))
    askAll<Item>(`/accounts/${accountId}/${list}`).then(
      (value) => show({ value }),
      (problem: ApiProblem) => show({ problem }),
    )
  }, [accountId, list])
  useEffect(() => {
    if (isNeeded) reload()
  }, [reload, isNeeded])
  return { ...state, reload }
}
