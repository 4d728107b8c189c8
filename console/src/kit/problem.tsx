import type { ComponentChildren } from 'preact'
import type { ApiProblem } from '../app/api.ts'
import { problems } from '../words/en.ts'
import * as say from '../words/en-kit.ts'
import { Button, Copy } from './controls.tsx'
import { Icon } from './icon.tsx'

type Props = { problem: ApiProblem; onRetry?: () => void; children?: ComponentChildren }

/** What went wrong, in a sentence, with the id to quote and a way to try again. `children`: another way out. */
export function Problem({ problem, onRetry, children }: Props) {
  return (
    <div class="problem" role="alert">
      <Icon name="circle-alert" size={18} />
      <div>
        <p>{sentenceOf(problem)}</p>
        {problem.requestId && (
          <p class="problem-id">
            {say.request} <Copy text={problem.requestId} />
          </p>
        )}
      </div>
      {onRetry && (
        <Button icon="refresh-cw" onClick={onRetry}>
          {say.retry}
        </Button>
      )}
      {children}
    </div>
  )
}

/** The sentence of the console says it all. The API either repeats it in terms of the request, or has a sentence of its own that says more. */
const WHOLE = new Set([
  'RCS_UNAUTHORIZED',
  'RCS_MESSAGE_NOT_FOUND',
  'RCS_TEMPLATE_NOT_FOUND',
  'RCS_CAMPAIGN_NOT_FOUND',
  'RCS_EVENT_NOT_FOUND',
  'RCS_INVALID_CURSOR',
])

export function sentenceOf({ status, code, details }: ApiProblem): string {
  const known = problems[code as keyof typeof problems]
  const reasons = details.map(({ path, reason }) => (path === '' ? reason : `${path.slice(1)} ${reason}`)).join(' ')
  if (status === 0) return problems.NO_RESPONSE
  if (known !== undefined && WHOLE.has(code)) return details.find(({ path }) => path === '')?.reason ?? known
  return [known, reasons].filter(Boolean).join(' ') || say.failed(code)
}

/** What is wrong with one field of a form, by its path in the body. */
export const problemAt = (problem: ApiProblem | undefined, path: string) => problem?.details.find((each) => each.path === path)?.reason
