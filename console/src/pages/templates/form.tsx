import { useRef } from 'preact/hooks'
import { fieldsOf, isFilled } from '../../../../server/src/content/untrusted.ts'
import { Choice, TextField } from '../../kit/controls.tsx'
import { Icon } from '../../kit/icon.tsx'
import * as sendWords from '../../words/en-send.ts'
import * as say from '../../words/en-templates.ts'
import { type Editing, Fields } from './field-view.tsx'
import { FIELDS } from './fields.ts'
import { TextArea } from './inputs.tsx'
import { ButtonsField, CardsField } from './parts.tsx'
import { type ContentType, isContentType, jsonOf, readJson, TYPE_ICONS, TYPES, type Work } from './template.ts'

export type FormProps = {
  work: Work
  editing: Editing
  onChange: (more: Partial<Work>) => void
  problemOf: (field: 'name' | 'description') => string | undefined
}

/** What a template has besides its content. */
export function TemplateFields({ work, onChange, problemOf }: Omit<FormProps, 'editing'>) {
  return (
    <>
      <TextField
        label={say.name}
        value={work.name}
        onInput={(name) => onChange({ name })}
        autocomplete="off"
        problem={work.name === '' ? undefined : problemOf('name')}
      />
      <TextField
        label={say.description}
        value={work.description}
        onInput={(description) => onChange({ description })}
        autocomplete="off"
        problem={problemOf('description')}
      />
      <Choice
        label={say.service}
        value={work.basic ? 'basic' : 'rich'}
        options={[
          { value: 'rich', text: say.rcs },
          { value: 'basic', text: say.rcsBasic },
        ]}
        onChange={(service) => onChange({ basic: service === 'basic' })}
      />
    </>
  )
}

/** The content as fields. */
export function ContentForm({ editing }: { editing: Editing }) {
  const { type } = fieldsOf(editing.message)
  return (
    <>
      <TypeChoice editing={editing} />
      {isContentType(type) ? (
        <>
          <Fields key={type} names={FIELDS[type]} at={[]} editing={editing} />
          {type === 'CAROUSEL' && <CardsField editing={editing} />}
          <ButtonsField path={['buttons']} editing={editing} />
        </>
      ) : (
        <p class="note">{say.noForm}</p>
      )}
    </>
  )
}

/** A wrong click loses nothing: the content of each type is kept while the page is open. */
function TypeChoice({ editing }: { editing: Editing }) {
  const { type } = fieldsOf(editing.message)
  const kept = useRef(new Map<unknown, unknown>())
  const choose = (next: ContentType) => {
    kept.current.set(type, editing.message)
    editing.set([], kept.current.get(next) ?? convertedTo(next, editing.message))
  }
  return (
    <fieldset class="content-types">
      <legend>{say.what}</legend>
      {TYPES.map((each) => (
        <label>
          <input type="radio" name="type" checked={each === type} onChange={() => choose(each)} />
          <span>
            <Icon name={TYPE_ICONS[each]} size={18} />
            {say.types[each]}
          </span>
        </label>
      ))}
    </fieldset>
  )
}

/** A content of another type with the text and the buttons, if it can have them. */
function convertedTo(type: ContentType, message: unknown): object {
  const { content, buttons } = fieldsOf(message)
  const hasText = FIELDS[type].includes('content')
  return {
    type,
    ...(hasText && isFilled(content) && { content }),
    ...(type !== 'MESSAGE' && { data: type === 'CAROUSEL' ? { cards: [{ title: '' }, { title: '' }] } : {} }),
    ...(buttons !== undefined && { buttons }),
  }
}

/** The content as JSON. A text that is no JSON yet is kept, and the content stays what it was. */
export function JsonView({ work, onChange, problem }: Pick<FormProps, 'work' | 'onChange'> & { problem: string | undefined }) {
  const shown = jsonOf(work)
  const type = (json: string) => {
    const read = readJson(json)
    onChange('value' in read ? { message: read.value, json } : { json })
  }
  const read = readJson(shown)
  return (
    <TextArea
      label={sendWords.json}
      value={shown}
      rows={Math.min(34, Math.max(14, shown.split('\n').length + 1))}
      onInput={type}
      isCode
      problem={'message' in read ? say.notJson(read.message) : problem}
    />
  )
}
