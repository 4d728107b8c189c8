import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import * as say from '../words/en-kit.ts'
import { Icon, type IconName } from './icon.tsx'

type ButtonProps = {
  icon?: IconName
  kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  type?: 'button' | 'submit'
  isBusy?: boolean
  children?: ComponentChildren
} & Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'type' | 'icon'>

/** `isBusy`: a press does nothing. The button is not disabled then, since a disabled button loses the focus. */
export function Button({ icon, kind = 'plain', type = 'button', isBusy = false, onClick, children, ...rest }: ButtonProps) {
  const wait = (event: Event) => event.preventDefault()
  return (
    <button type={type} class={`button ${kind}`} aria-busy={isBusy} aria-disabled={isBusy} {...rest} onClick={isBusy ? wait : onClick}>
      {icon && <Icon name={icon} size={15} />}
      {children}
    </button>
  )
}

/** Sends the form that it is in. */
export function Submit({ text, icon }: { text: string; icon?: IconName }) {
  return (
    <Button kind="primary" type="submit" {...(icon && { icon })}>
      {text}
    </Button>
  )
}

type LinkProps = Pick<ButtonProps, 'icon' | 'kind' | 'children'> & { href: string; download?: boolean; onClick?: () => void }

/** A link that looks like a button. `download`: it leads to a file. */
export function ButtonLink({ href, icon, kind = 'plain', download = false, onClick, children }: LinkProps) {
  return (
    <a class={`button ${kind}`} href={href} {...(download && { download: '' })} {...(onClick && { onClick })}>
      {icon && <Icon name={icon} size={15} />}
      {children}
    </a>
  )
}

/** `isCopied` is true for a second after a copy. `said` is the text for the person; if the browser refused to copy, it stays until the next try. */
export function useCopy(text: string): { isCopied: boolean; said: string; copy: () => void } {
  const [said, setSaid] = useState('')
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async () => {
    clearTimeout(timer.current)
    try {
      // Absent on a page that came by http from another machine.
      await navigator.clipboard.writeText(text)
    } catch {
      return setSaid(say.notCopied)
    }
    setSaid(say.copied)
    timer.current = setTimeout(() => setSaid(''), 1_000)
  }
  return { isCopied: said === say.copied, said, copy: () => void copy() }
}

/** Copies its text. For a second it says that it did. `isIcon`: the text itself stands beside it, or has no space. */
export function Copy({ text, label, isIcon = false }: { text: string; label?: string; isIcon?: boolean }) {
  const { isCopied, said, copy } = useCopy(text)
  return (
    <button type="button" class={isIcon ? 'copy is-icon' : 'copy'} title={say.copy} aria-label={say.copyText(label ?? text)} onClick={copy}>
      {!isIcon && <code>{label ?? text}</code>}
      <Icon name={isCopied ? 'check' : 'copy'} size={12} />
      <span class={isCopied ? 'sr' : ''} role="status">
        {said}
      </span>
    </button>
  )
}

type FieldProps = {
  label: string
  hint?: ComponentChildren
  problem?: string | undefined
  children: (ids: { id: string; describedBy: string }) => ComponentChildren
}

/** A label, its control, and a hint, or what is wrong with the value. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, describedBy: `${id}-hint` })}
      <p id={`${id}-hint`} class={problem === undefined ? 'hint' : 'hint is-wrong'}>
        {problem ?? hint}
      </p>
    </div>
  )
}

type TextProps = {
  label: string
  value: string
  onInput: (value: string) => void
  hint?: ComponentChildren
  problem?: string | undefined
  type?: 'text' | 'email' | 'password' | 'date' | 'datetime-local'
  autocomplete?: string
  placeholder?: string
  required?: boolean
  minLength?: number
}

export function TextField({ label, value, onInput, hint, problem, type = 'text', ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {({ id, describedBy }) => (
        <input
          class="input"
          id={id}
          // The types of Preact tell the kinds of input apart by their roles.
          type={type as 'text'}
          aria-describedby={describedBy}
          aria-invalid={problem !== undefined}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
          {...rest}
        />
      )}
    </Field>
  )
}

type Option<T> = { value: T; text: string }

export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T
  options: Option<T>[]
  onChange: (value: T) => void
}) {
  const name = useId()
  return (
    <fieldset class="segmented">
      <legend class="sr">{label}</legend>
      {options.map((option) => (
        <label>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  )
}

export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  hint,
  problem,
  required = false,
}: {
  label: string
  value: T
  options: Option<T>[]
  onChange: (value: T) => void
  hint?: ComponentChildren
  problem?: string | undefined
  /** A form can't be sent with the option whose value is empty. */
  required?: boolean
}) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {({ id, describedBy }) => (
        <select
          class="input"
          id={id}
          aria-describedby={describedBy}
          aria-invalid={problem !== undefined}
          required={required}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value as T)}
        >
          {options.map((option) => (
            <option value={option.value}>{option.text}</option>
          ))}
        </select>
      )}
    </Field>
  )
}
