import type { useTemplates } from '../../app/templates.ts'
import { Choice, Field, Select } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as sendWords from '../../words/en-send.ts'

// What the composer and the page that sends a message have in common.

type AreaProps = {
  label: string
  hint?: string
  problem: string | undefined
  value: string
  rows: number
  onInput: (text: string) => void
  isCode?: boolean
  required?: boolean
}

export function TextArea({ label, hint, problem, onInput, isCode = false, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {({ id, describedBy }) => (
        <textarea
          class={isCode ? 'input code' : 'input'}
          id={id}
          aria-describedby={describedBy}
          aria-invalid={problem !== undefined}
          spellcheck={!isCode}
          onInput={(event) => onInput(event.currentTarget.value)}
          {...rest}
        />
      )}
    </Field>
  )
}

type SelectProps = {
  label: string
  value: string
  onChange: (templateId: string) => void
  problem?: string | undefined
  /** Read once for all fields of a page. */
  all: ReturnType<typeof useTemplates>
}

/** One of the approved templates. A value that is none of them stays as it is. */
export function TemplateSelect({ label, value, onChange, problem, all: { templates, problem: failed, reload } }: SelectProps) {
  const approved = templates?.filter(({ status }) => status === 'APPROVED')
  const options = (approved ?? []).map(({ id, name }) => ({ value: String(id), text: name }))
  if (!options.some((option) => option.value === value)) {
    const draft = templates?.find(({ id }) => String(id) === value)
    options.unshift({ value, text: draft?.name ?? (value || sendWords.chooseTemplate) })
  }
  return (
    <>
      <Select
        label={label}
        value={value}
        onChange={onChange}
        options={options}
        required
        hint={problem ?? (approved?.length === 0 && sendWords.noTemplate)}
      />
      {failed && <Problem problem={failed} onRetry={reload} />}
    </>
  )
}

/** Whether recipients whom RCS does not reach get an SMS. */
export function SmsChoice({ hasSms, onChange }: { hasSms: boolean; onChange: (more: { hasSms: boolean }) => void }) {
  return (
    <Choice
      label={sendWords.sms}
      value={hasSms ? 'yes' : 'no'}
      onChange={(value) => onChange({ hasSms: value === 'yes' })}
      options={[
        { value: 'no', text: sendWords.noSms },
        { value: 'yes', text: sendWords.withSms },
      ]}
    />
  )
}
