import { TextField } from '../../kit/controls.tsx'
import * as say from '../../words/en-templates.ts'
import { whereOf } from './where.ts'

/** A field with variables, as the check has it. */
export type FieldVariables = { path: string; names: string[]; required: string[]; charactersLeft?: number; bytesLeft?: number }

/** The values that a person has typed, by the names of the variables. An empty value counts as none. */
export type Values = Record<string, string>

export const namesOf = (fields: FieldVariables[]) => [...new Set(fields.flatMap(({ names }) => names))]

/** The values that a request has for these variables. */
export function givenValues(names: string[], values: Values): { variables?: Values } {
  const given = names.flatMap((name) => (values[name] ? [[name, values[name]]] : []))
  return given.length === 0 ? {} : { variables: Object.fromEntries(given) }
}

/** The values for a check: three dots for each required variable without a sample. None if the person has given no sample at all. */
export function sampleValues(fields: FieldVariables[], values: Values): { variables?: Values } {
  const { variables } = givenValues(namesOf(fields), values)
  if (variables === undefined) return {}
  return { variables: { ...Object.fromEntries(fields.flatMap(({ required }) => required.map((name) => [name, '…']))), ...variables } }
}

type Props = { fields: FieldVariables[]; values: Values; onChange: (values: Values) => void }

/** A field for the value of each variable, with the space that there is for it. */
export function VariableFields({ fields, values, onChange }: Props) {
  const spaceOf = (name: string) =>
    fields
      .filter(({ names, charactersLeft, bytesLeft }) => names.includes(name) && (charactersLeft ?? bytesLeft) !== undefined)
      .map(({ path, charactersLeft, bytesLeft }) => say.space(whereOf(path), charactersLeft, bytesLeft))
      .join(' ')
  return (
    <>
      {namesOf(fields).map((name) => (
        <TextField
          key={name}
          label={name}
          value={values[name] ?? ''}
          onInput={(value) => onChange({ ...values, [name]: value })}
          autocomplete="off"
          hint={spaceOf(name)}
        />
      ))}
    </>
  )
}
