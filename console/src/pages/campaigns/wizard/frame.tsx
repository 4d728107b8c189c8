import { useEffect, useRef } from 'preact/hooks'
import { ApiProblem, type Violation } from '../../../app/api.ts'
import { linkTo, type Target } from '../../../app/place.ts'
import { useFrame } from '../../../app/session.tsx'
import { Button } from '../../../kit/controls.tsx'
import { Problem } from '../../../kit/problem.tsx'
import { pages } from '../../../words/en.ts'
import * as say from '../../../words/en-wizard.ts'
import { STEPS, type Step, stepOf } from './draft.ts'

export const placeOfStep = (accountId: number, step: Step): Target => ({ accountId, path: ['campaigns', 'new'], query: { step } })

export function Steps({ step }: { step: Step }) {
  const { accountId } = useFrame().account
  return (
    <nav aria-label={say.stepsLabel}>
      <ol class="camp-steps">
        {STEPS.map((each, index) => (
          <li>
            <a href={linkTo(placeOfStep(accountId, each))} {...(each === step && { 'aria-current': 'step' })}>
              <b>{index + 1}</b> {say.steps[each]}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  )
}

/** Has the focus after each step, so that the keyboard and screen readers begin at its top. */
export function StepHead({ step }: { step: Step }) {
  const heading = useRef<HTMLHeadingElement>(null)
  const last = useRef(step)
  useEffect(() => {
    if (last.current !== step) heading.current?.focus()
    last.current = step
  }, [step])
  return (
    <h2 ref={heading} tabIndex={-1}>
      {say.steps[step]}
    </h2>
  )
}

/** Why the campaign was not created, with the steps to change. */
export function Refused({ problem, onAnew }: { problem: ApiProblem; onAnew: () => void }) {
  const { accountId } = useFrame().account
  if (problem.code !== 'RCS_IDEMPOTENCY_CONFLICT')
    return (
      <Problem problem={problem}>
        <StepLinks of={problem.details} />
      </Problem>
    )
  // The response to an earlier request was lost. What the API says of the key would tell the person nothing.
  return (
    <Problem problem={new ApiProblem(409, { code: '', details: [{ path: '', reason: say.alreadyCreated }] })}>
      <a class="button plain" href={linkTo({ accountId, path: ['campaigns'] })}>
        {pages.campaigns}
      </a>
      <Button onClick={onAnew}>{say.startAnew}</Button>
    </Problem>
  )
}

/** The steps on which something is missing or wrong. */
export function StepLinks({ of }: { of: Violation[] }) {
  const { accountId } = useFrame().account
  return (
    <>
      {[...new Set(of.filter(({ path }) => path !== '').map(stepOf))].map((step) => (
        <a class="button plain" href={linkTo(placeOfStep(accountId, step))}>
          {say.steps[step]}
        </a>
      ))}
    </>
  )
}
