import { useState } from 'preact/hooks'
import * as say from '../words/en-kit.ts'
import { number, share } from '../words/numbers.ts'
import type { Tone } from './display.tsx'

/** `isWide`: narrow pages have no room for the column. */
type Column = { name: string; values: number[]; isWide?: boolean }
type Series = Column & { tone: Tone }

/** `more`: what only the table has. */
type LinesProps = { series: Series[]; labels: string[]; title: string; more?: Column[] }

const WIDTH = 760
const HEIGHT = 260
const LEFT = 44
const RIGHT = 26
const TOP = 8
const BOTTOM = 22
const MAX_LABELS = 8
/** A longer table is drawn when it is opened: with a year of hours, it has 70,000 cells. */
const MAX_CLOSED_ROWS = 200

const compact = new Intl.NumberFormat('en', { notation: 'compact' })

/** Lines over time. The table below has the same numbers, for people who can't see the lines. */
export function Lines({ series, labels, title, more = [] }: LinesProps) {
  const [isOpen, setOpen] = useState(false)
  const top = niceTop(Math.max(...series.flatMap(({ values }) => values)))
  const x = (index: number) => LEFT + (labels.length < 2 ? 0 : (index / (labels.length - 1)) * (WIDTH - LEFT - RIGHT))
  const y = (value: number) => TOP + (1 - value / top) * (HEIGHT - BOTTOM - TOP)
  const every = Math.ceil(labels.length / MAX_LABELS)
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g>
            <line class="chart-grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(top * share)} y2={y(top * share)} />
            <text class="chart-text" x={LEFT - 8} y={y(top * share) + 3.5} text-anchor="end">
              {compact.format(top * share)}
            </text>
          </g>
        ))}
        {series.map(({ tone, values }) =>
          // A line of one point would not be seen.
          values.length === 1 ? (
            <circle class={`chart-line tone-${tone}`} cx={x(0)} cy={y(values[0] ?? 0)} r="4" />
          ) : (
            values.length > 1 && (
              <path
                class={`chart-line tone-${tone}`}
                d={`M${values.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}`}
              />
            )
          ),
        )}
        {labels.map((label, index) =>
          index % every === 0 ? (
            <text class="chart-text" x={x(index)} y={HEIGHT - 5} text-anchor="middle">
              {label}
            </text>
          ) : null,
        )}
      </svg>
      <figcaption>
        {series.map(({ name, tone }) => (
          <span class={`tone-${tone}`}>
            <i /> {name}
          </span>
        ))}
      </figcaption>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{say.asTable}</summary>
        {(isOpen || labels.length <= MAX_CLOSED_ROWS) && <DataTable columns={[...series, ...more]} labels={labels} title={title} />}
      </details>
    </figure>
  )
}

function DataTable({ columns, labels, title }: { columns: Column[]; labels: string[]; title: string }) {
  return (
    <table>
      <caption class="sr">{title}</caption>
      <thead>
        <tr>
          <th scope="col">{say.time}</th>
          {columns.map(({ name, isWide }) => (
            <th scope="col" class={isWide ? 'num is-wide' : 'num'}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {labels.map((label, index) => (
          <tr>
            <th scope="row">{label}</th>
            {columns.map(({ values, isWide }) => (
              <td class={isWide ? 'num is-wide' : 'num'}>{number.format(values[index] ?? 0)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The steps, each with its share of the first one. */
export function Funnel({ steps }: { steps: { name: string; value: number; tone: Tone }[] }) {
  const first = steps[0]?.value ?? 0
  // A range may have the delivery of a message that was accepted before it.
  const shareOf = (value: number) => (first === 0 ? 0 : Math.min(1, value / first))
  return (
    <ol class="funnel">
      {steps.map(({ name, value, tone }) => (
        <li class={`tone-${tone}`}>
          <span>{name}</span>
          <b>{number.format(value)}</b>
          <i style={{ width: `${shareOf(value) * 100}%` }} />
          <small>{first === 0 ? '' : share(shareOf(value))}</small>
        </li>
      ))}
    </ol>
  )
}

/** Rounds up to a number whose quarters are round, since the grid has four parts. */
function niceTop(value: number): number {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 1)
  return [4, 8, 12, 16, 20, 40, 60, 80, 100].map((factor) => factor * power).find((top) => top >= value) ?? value
}
