import type { ComponentChildren } from 'preact'
import { Pill } from '../../kit/display.tsx'
import type { Tone } from '../../kit/tone.ts'

type Props = { name: string; note: string | number; tone: Tone; state: string; children: ComponentChildren }

/** A network or a process: its name, how it is, and its figures. */
export function StatusCard({ name, note, tone, state, children }: Props) {
  return (
    <li class={`card ${tone === 'bad' ? 'is-lost tone-bad' : ''}`}>
      <div class="title-row">
        <h3>{name}</h3>
        <span class="note">{note}</span>
        <span class="spring" />
        <Pill tone={tone}>{state}</Pill>
      </div>
      {children}
    </li>
  )
}
