import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import * as kitWords from '../words/en-kit.ts'
import { dayOf, exactTimeOf } from '../words/numbers.ts'
import { Icon, type IconName } from './icon.tsx'
import type { Tone } from './tone.ts'

export type { Tone }

/** The text says the same as the colour, for people who can't tell colours apart. */
export function Pill({ tone, icon, children }: { tone: Tone; icon?: IconName; children: ComponentChildren }) {
  return (
    <span class={`pill tone-${tone}`}>
      {icon && <Icon name={icon} size={13} />}
      {children}
    </span>
  )
}

/** The head of a page. `children`: what can be done here. */
export function PageHead({ title, note, children }: { title: string; note?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="title-row">
      <h1>{title}</h1>
      {note && <span class="note">{note}</span>}
      <span class="spring" />
      {children}
    </div>
  )
}

type EmptyProps = { icon: IconName; title: string; isPage?: boolean; children?: ComponentChildren }

/** What a list shows when it has nothing, and what to do about it. `isPage`: the page has nothing else, so this is its heading. */
export function Empty({ icon, title, isPage = false, children }: EmptyProps) {
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <Heading>{title}</Heading>
      {children}
    </div>
  )
}

/** A fact of a list of facts: a `dl` with the class `facts`. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Facts with their names. Those without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ComponentChildren][] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== null)
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <Fact name={name}>{value}</Fact>
      ))}
    </dl>
  )
}

export function Loading() {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> {kitWords.loading}
    </p>
  )
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

/** The clocks of the browser and of Herald differ a little: what just happened is not in the future. */
const CLOCKS_DIFFER_MS = 30_000

/** A time as people say it, with the exact one on hover. */
export function Ago({ at }: { at: string | Date }) {
  const date = new Date(at)
  const [, drawAgain] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => drawAgain((times) => times + 1), 10_000)
    return () => clearInterval(timer)
  }, [])
  const ms = date.getTime() - Date.now()
  return (
    <time dateTime={date.toISOString()} title={exactTimeOf(date)}>
      {relative(ms > 0 && ms < CLOCKS_DIFFER_MS ? 0 : ms, date)}
    </time>
  )
}

/** Each unit, and how many of it make the next one. */
const UNITS = [
  ['second', 60],
  ['minute', 60],
  ['hour', 24],
  ['day', 7],
] as const

function relative(ms: number, date: Date): string {
  let value = Math.round(ms / 1_000)
  if (Math.abs(value) < 5) return kitWords.now
  for (const [unit, next] of UNITS) {
    if (Math.abs(value) < next) return RELATIVE.format(value, unit)
    value = Math.round(value / next)
  }
  return dayOf(date)
}
