import * as say from '../words/en-timeline.ts'
import { shortDuration } from '../words/numbers.ts'
import type { Dot, Lanes, Span } from './lanes.ts'
import './lanes.css'

const percent = (x: number) => `${(x * 100).toFixed(2)}%`

/** The lanes of a message. It is a picture of the list below, so screen readers get only its name. */
export function LanesChart({ lanes, spans, dots, axis }: Lanes) {
  const left = (atMs: number) => ({ left: percent(axis.x(atMs)) })
  const between = ({ fromMs, toMs }: Pick<Span, 'fromMs' | 'toMs'>) => ({ ...left(fromMs), width: percent(axis.x(toMs) - axis.x(fromMs)) })
  return (
    <div class="lanes" role="img" aria-label={say.lanesLabel}>
      <div class="lanes-names">
        {lanes.map((lane) => (
          <span>{say.lanes[lane]}</span>
        ))}
      </div>
      <div class="lanes-plot">
        {axis.marks.map(({ atMs, sinceStartMs }) => (
          <span class={`lanes-mark ${axis.cuts.some(({ toMs }) => toMs === atMs) ? 'is-after-cut' : ''}`} style={left(atMs)}>
            <small>{sinceStartMs === 0 ? '0' : `+${shortDuration(sinceStartMs)}`}</small>
          </span>
        ))}
        {lanes.map((lane) => (
          <div class="lanes-rail">
            {spans
              .filter((span) => span.lane === lane)
              .map((span) => (
                <SpanBar span={span} style={between(span)} />
              ))}
            {dots
              .filter((dot) => dot.lane === lane)
              .map((dot: Dot) => (
                <i class={`lanes-dot tone-${dot.tone}`} style={left(dot.atMs)} />
              ))}
          </div>
        ))}
        {axis.cuts.map((cut) => (
          <span class="lanes-cut" style={between(cut)} />
        ))}
      </div>
    </div>
  )
}

function SpanBar({ span: { tone, label }, style }: { span: Span; style: Record<string, string> }) {
  return (
    <span class={`lanes-span tone-${tone} ${tone === 'wait' ? 'is-waiting' : ''}`} style={style}>
      {label && <b>{label}</b>}
    </span>
  )
}
