import * as kitWords from '../words/en-kit.ts'

/** How much of a limit is used. Beyond it, the text and the colour say so. */
export function Meter({ label, value, max }: { label: string; value: number; max: number }) {
  return (
    <div class={`meter ${value > max ? 'is-over' : ''}`}>
      <span>{label}</span>
      <meter min={0} max={max} value={Math.min(value, max)} high={max * 0.9} aria-label={label} />
      <small>{kitWords.ofLimit(value, max)}</small>
    </div>
  )
}

/** How far something has got. Without `value`, nobody knows yet how much there is. */
export function Progress({ label, value, max }: { label: string; value?: number; max: number }) {
  return <progress class="progress" aria-label={label} {...(value !== undefined && { value, max: Math.max(max, 1) })} />
}
