import { useState } from 'preact/hooks'
import type { useTemplates } from '../../app/templates.ts'
import { Button, Choice, TextField } from '../../kit/controls.tsx'
import { Pill } from '../../kit/display.tsx'
import { sentenceOf } from '../../kit/problem.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import { shownUrl } from '../../phone/meant.ts'
import { loading } from '../../words/en-kit.ts'
import * as say from '../../words/en-templates.ts'
import { isShown, KINDS, OPTIONS, pathOf } from './fields.ts'
import { TemplateSelect, TextArea } from './inputs.tsx'
import type { Images } from './use-drawn.ts'
import { type Path, textAt, valueAt } from './values.ts'

/** The content that is edited, and what is known about it. */
export type Editing = {
  message: unknown
  set: (path: Path, value: unknown) => void
  /** What the check says about a value. */
  problemAt: (path: Path) => string | undefined
  images: Images
  templates: ReturnType<typeof useTemplates>
  lookAgain: (url: string) => void
}

/** The fields of a part of the content. */
export function Fields({ names, at, editing }: { names: string[]; at: Path; editing: Editing }) {
  const paths = names.map((name) => pathOf(name, at)).filter((path) => isShown(editing.message, path))
  return (
    <>
      {paths.map((path) => (
        <FieldView key={path.at(-1)} path={path} editing={editing} />
      ))}
    </>
  )
}

/** What is missing is not wrong before a person has been there. The list of the check has it from the start. */
function FieldView({ path, editing }: { path: Path; editing: Editing }) {
  const name = String(path.at(-1))
  const value = textAt(editing.message, path)
  const [isTouched, setTouched] = useState(value !== '')
  const set = (next: unknown) => {
    setTouched(true)
    editing.set(path, next === '' ? undefined : next)
  }
  const shared = { label: say.fields[name] ?? name, problem: isTouched ? editing.problemAt(path) : undefined, value }
  const kind = KINDS[name]
  switch (kind) {
    case 'text':
      return <TextArea {...shared} rows={4} onInput={set} />
    case 'number':
    case 'list':
      return <Typed {...shared} value={valueAt(editing.message, path)} isList={kind === 'list'} onChange={set} />
    case 'time':
      return <TimeField {...shared} onChange={set} />
    case 'template':
      return <TemplateSelect {...shared} onChange={(templateId) => set(templateId && Number(templateId))} all={editing.templates} />
  }
  if (OPTIONS[name]) return <Choices {...shared} name={name} options={OPTIONS[name]} onChange={set} />
  return (
    <TextField
      {...shared}
      onInput={set}
      autocomplete="off"
      hint={kind === 'image' && <ImageNote url={shownUrl(value)} editing={editing} />}
    />
  )
}

type Shared = { label: string; problem: string | undefined }

type TypedProps = Shared & { value: unknown; isList: boolean; onChange: (value: unknown) => void }

/** A number, or a list with one value a line. What was typed stays as long as it means the value, such as `52.` on the way to 52.2. */
function Typed({ value, isList, onChange, ...shared }: TypedProps) {
  const [text, setText] = useState('')
  const meaningOf = isList ? listOf : numberOf
  const type = (typed: string) => {
    setText(typed)
    onChange(meaningOf(typed))
  }
  const isSame = JSON.stringify(meaningOf(text)) === JSON.stringify(value)
  const shown = isSame ? text : [value].flat().join('\n')
  return isList ? (
    <TextArea {...shared} value={shown} rows={3} onInput={type} />
  ) : (
    <TextField {...shared} value={shown} onInput={type} autocomplete="off" />
  )
}

/** A text that is no number is left to the check. */
function numberOf(typed: string): unknown {
  const text = typed.trim()
  return text === '' ? undefined : Number.isNaN(Number(text)) ? typed : Number(text)
}

function listOf(typed: string): unknown {
  const lines = typed.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? undefined : lines
}

type ChoicesProps = Shared & { name: string; options: string[]; value: string; onChange: (value: string | undefined) => void }

function Choices({ label, problem, name, options, value, onChange }: ChoicesProps) {
  const names = name === 'cardWidth' ? say.widths : say.options
  const usual = options.find((option) => option === 'MEDIUM') ?? options[0]
  return (
    <div class="field">
      <span class="field-name" aria-hidden="true">
        {label}
      </span>
      <Choice
        label={label}
        value={value || usual || ''}
        options={options.map((option) => ({ value: option, text: names[option] ?? option }))}
        onChange={(next) => onChange(next === usual ? undefined : next)}
      />
      {problem !== undefined && <p class="hint is-wrong">{problem}</p>}
    </div>
  )
}

/** What Herald found at the address, as a phone would. */
function ImageNote({ url, editing: { images, lookAgain } }: { url: string; editing: Editing }) {
  if (!images.has(url)) return null
  const image = images.get(url)
  if (image === undefined) return <span role="status">{loading}</span>
  if ('problem' in image) {
    return (
      <span class="image-note">
        <Pill tone="bad" icon="circle-alert">
          {image.problem.details[0]?.reason ?? sentenceOf(image.problem)}
        </Pill>
        <Button kind="quiet" icon="refresh-cw" onClick={() => lookAgain(url)}>
          {say.lookAgain}
        </Button>
      </span>
    )
  }
  return (
    <Pill tone="good" icon="check">
      {say.imageFacts(image.width, image.height, image.bytes)}
    </Pill>
  )
}
