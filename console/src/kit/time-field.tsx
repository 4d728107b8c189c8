import { TextField } from './controls.tsx'

type Props = {
  label: string
  value: string | undefined
  hint?: string
  problem?: string | undefined
  onChange: (time: string | undefined) => void
}

/** A time of the API, which a person sees and changes in the zone of the browser. */
export function TimeField({ value, onChange, ...rest }: Props) {
  return <TextField {...rest} type="datetime-local" value={toField(value)} onInput={(text) => onChange(fromField(text))} />
}

/** A time of the API as a value of a date field, which is in the browser's zone. */
export function toField(time: string | undefined): string {
  const date = new Date(time ?? '')
  if (Number.isNaN(date.getTime())) return ''
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

export function fromField(value: string): string | undefined {
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
