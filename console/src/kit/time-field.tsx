import { TextField } from './controls.tsx'
import { fromField, toField } from './local-time.ts'

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
