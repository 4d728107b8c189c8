import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiProblem } from './api.ts'

/** Runs a request, which returns what to say when it has succeeded. */
export function useRun(onChanged: () => void) {
  const [problem, setProblem] = useState<ApiProblem>()
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  // The second click of a double click may come before the button is drawn as busy.
  const isRunning = useRef(false)
  const run = async (request: () => Promise<string>) => {
    if (isRunning.current) return
    isRunning.current = true
    setBusy(true)
    setProblem(undefined)
    setSaid('')
    await request().then(setSaid, (error: ApiProblem) => setProblem(error))
    isRunning.current = false
    setBusy(false)
    onChanged()
  }
  return { run, isBusy, problem, said, setSaid }
}

/** Whether the component is still on the page: after a slow request, the person may have gone elsewhere. */
export function useIsHere() {
  const isHere = useRef(true)
  useEffect(
    () => () => {
      isHere.current = false
    },
    [],
  )
  return isHere
}
