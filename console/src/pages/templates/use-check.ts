import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiProblem, post, type Violation } from '../../app/api.ts'
import { useThrottled } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import type { FieldVariables } from './variables.tsx'

type TextFact = { path: string; characters: number; maxCharacters: number; bytes: number; maxBytes?: number }

export type Facts = {
  texts: TextFact[]
  buttons: { path: string; count: number; maxCount: number }[]
  cards: { path: string; characters: number; iphoneCharacters: number }[]
  billingClass: 'basic' | 'single'
  features: string[]
  iphone: { path: string; note: string }[]
}
/** `rendered`: the content with its values, if it has variables. */
export type Check = { valid: boolean; violations: Violation[]; facts: Facts | null; rendered?: unknown; variables?: FieldVariables[] }

/** The result is there within 200 ms of a key press. A person types up to ten keys a second. */
const CHECK_EVERY_MS = 100

/**
 * Checks a body with each change, one request at a time. `isCurrent`: the result is of this body, not of an earlier one. Undefined: there is
 * nothing to check yet. The body may depend on the variables that the last check has found.
 */
export function useCheck(bodyWith: (variables: FieldVariables[]) => object | undefined) {
  const { accountId } = useFrame().account
  const [state, setState] = useState<{ text?: string; check?: Check; problem?: ApiProblem }>({})
  const body = bodyWith(state.check?.variables ?? [])
  const text = body && JSON.stringify(body)
  const latest = useRef(text)
  latest.current = text
  const isBusy = useRef(false)
  const checkLatest = async () => {
    // The end of the present request starts the next one.
    if (isBusy.current) return
    isBusy.current = true
    for (let sent: string | undefined; sent !== latest.current; ) {
      sent = latest.current
      if (sent === undefined) break
      const checked = sent
      await post<Check>(`/accounts/${accountId}/templates/check`, JSON.parse(sent)).then(
        (check) => setState({ text: checked, check }),
        (problem: ApiProblem) => setState((last) => ({ ...last, text: checked, problem })),
      )
    }
    isBusy.current = false
  }
  const checkSoon = useThrottled(() => void checkLatest(), CHECK_EVERY_MS)
  useEffect(() => {
    if (text !== undefined) checkSoon()
  }, [text, checkSoon])
  return { check: state.check, problem: state.problem, isCurrent: state.text === text, retry: checkSoon }
}
