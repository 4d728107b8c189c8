import { Icon } from '../kit/icon.tsx'
import * as say from '../words/en-timeline.ts'
import { clockOf, dayOf, exactTimeOf } from '../words/numbers.ts'
import type { ExplainedRule, ExplainedStep } from './explain.ts'
import { WebhookLine } from './webhook-line.tsx'
import type { WebhookCall } from './webhooks.ts'
import './timeline.css'

type Props = {
  steps: ExplainedStep[]
  others: WebhookCall[]
  /** Called after a replay. */
  onReplay: () => void
}

/** What became of a message, step by step: what happened, why, and which webhooks were called. */
export function Timeline({ steps, others, onReplay }: Props) {
  const firstSms = steps.findIndex(({ lane }) => lane === 'sms')
  return (
    <ol class="tl">
      {steps.map((step, index) => (
        <li class={`tl-step tone-${step.tone} ${isBehind(steps, firstSms, index) ? 'is-behind' : ''}`}>
          {index === firstSms && index > 0 && !step.codes.includes('NOT_NEEDED') && (
            <p class="tl-turn">
              <Icon name="arrow-right" size={14} /> {say.fallsBack}
            </p>
          )}
          <span class="tl-node">
            <Icon name={step.icon} size={15} />
          </span>
          <StepBody step={step} beforeMs={steps[index - 1]?.atMs} onReplay={onReplay} />
        </li>
      ))}
      {others.length > 0 && (
        <li class="tl-others">
          <h3>{say.webhook.others}</h3>
          {others.map((call) => (
            <WebhookLine call={call} onReplay={onReplay} />
          ))}
        </li>
      )}
    </ol>
  )
}

/** Steps of the SMS, and of the recipient after it, are indented: they follow the fallback. */
const isBehind = (steps: ExplainedStep[], firstSms: number, index: number) =>
  firstSms !== -1 && index >= firstSms && steps[index]?.lane !== 'rcs'

type BodyProps = { step: ExplainedStep; beforeMs: number | undefined; onReplay: () => void }

function StepBody({ step, beforeMs, onReplay }: BodyProps) {
  const { atMs, title, codes, why, network, rules, webhooks } = step
  const waitedMs = atMs - (beforeMs ?? atMs)
  const isOtherDay = beforeMs === undefined || dayOf(beforeMs) !== dayOf(atMs)
  return (
    <div class="tl-body">
      <header>
        <h3>{title}</h3>
        {codes.map((code) => (
          <code class="tl-code">{code}</code>
        ))}
        <time dateTime={new Date(atMs).toISOString()} title={exactTimeOf(atMs)}>
          {isOtherDay && `${dayOf(atMs)}, `}
          {clockOf(atMs)}
          {waitedMs > 0 && <b class="tl-after">{say.after(waitedMs)}</b>}
        </time>
      </header>
      <p>{why}</p>
      {rules.length > 0 && <Rules rules={rules} />}
      {network && (
        <details class="tl-network" open>
          <summary>
            <Icon name="chevron-right" size={13} class="tl-caret" /> {say.networkSaid}
          </summary>
          <blockquote>
            <code>{network}</code>
          </blockquote>
        </details>
      )}
      {webhooks.map((call) => (
        <WebhookLine call={call} onReplay={onReplay} />
      ))}
    </div>
  )
}

const RESULTS = {
  passed: { class: 'tone-good', icon: 'check' },
  failed: { class: 'tone-bad', icon: 'x' },
  'not-required': { class: 'tone-plain', icon: 'circle-dot' },
} as const

/** Not only the rule that holds the SMS back: every rule, with what it was checked against. */
function Rules({ rules }: { rules: ExplainedRule[] }) {
  return (
    <ul class="tl-rules" aria-label={say.rulesLabel}>
      {rules.map(({ name, result, facts }) => (
        <li class={RESULTS[result].class}>
          <Icon name={RESULTS[result].icon} size={13} label={say.results[result]} />
          <b>{name}</b>
          <span>{facts}</span>
        </li>
      ))}
    </ul>
  )
}
