import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Button as PressButton, Select } from '../../kit/controls.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import type { Button } from '../../phone/content.ts'
import * as say from '../../words/en-templates.ts'
import { type Editing, Fields } from './field-view.tsx'
import { BUTTON_FIELDS, CARD_FIELDS } from './fields.ts'
import { BUTTON_ICONS, BUTTON_TYPES } from './template.ts'
import { listAt, type Path, textAt } from './values.ts'

type Summary = { icon: IconName; title: string; note?: string }

type ListProps = {
  part: 'card' | 'button'
  path: Path
  editing: Editing
  /** What a new part begins with. */
  fresh: () => object
  summaryOf: (at: Path) => Summary
  children: (at: Path) => ComponentChildren
}

/** The buttons or the cards of a content: each can be opened, moved and removed. */
function PartList({ part, path, editing, fresh, summaryOf, children }: ListProps) {
  const items = listAt(editing.message, path)
  const { keys, added, add, move, remove } = useParts(path, editing, items)
  const adding = useRef<HTMLFieldSetElement>(null)
  const removeAt = (index: number) => {
    remove(index)
    // The button that was pressed is gone.
    adding.current?.querySelector<HTMLElement>(':scope > .button')?.focus()
  }
  return (
    <fieldset class="field parts-field" ref={adding}>
      <legend>{say.fields[`${part}s`]}</legend>
      {items.length > 0 && (
        <ol class="parts">
          {items.map((_, index) => (
            <li key={keys[index]}>
              <details open={keys[index] === added}>
                <summary>
                  <Icon name="chevron-right" size={14} class="soft" />
                  <SummaryView {...summaryOf([...path, index])} name={say.parts[part](index + 1)} />
                </summary>
                <div class="form part-body">
                  {children([...path, index])}
                  <p class="part-actions">
                    <PressButton kind="quiet" onClick={(event) => move(index, -1, event)}>
                      {say.up}
                    </PressButton>
                    <PressButton kind="quiet" onClick={(event) => move(index, 1, event)}>
                      {say.down}
                    </PressButton>
                    <PressButton kind="quiet" onClick={() => removeAt(index)}>
                      {say.remove}
                    </PressButton>
                  </p>
                </div>
              </details>
            </li>
          ))}
        </ol>
      )}
      <PressButton kind="quiet" icon="plus" onClick={() => add(fresh())}>
        {say.addPart[part]}
      </PressButton>
    </fieldset>
  )
}

const SummaryView = ({ icon, title, note, name }: Summary & { name: string }) => (
  <>
    <Icon name={icon} size={16} class="part-icon" />
    <b>{title || name}</b>
    {note && <em>{note}</em>}
  </>
)

/** Each part keeps its place on the page while others move or go: what is open stays open. */
function useParts(path: Path, editing: Editing, items: unknown[]) {
  const keys = useRef<number[]>([])
  const next = useRef(0)
  const [added, setAdded] = useState<number>()
  while (keys.current.length < items.length) keys.current.push(next.current++)
  keys.current.length = items.length
  const put = (changed: unknown[]) => editing.set(path, changed.length === 0 ? undefined : changed)
  const add = (part: object) => {
    setAdded(next.current)
    put([...items, part])
  }
  // The first one moves up to the end.
  const move = (index: number, by: number, { currentTarget }: { currentTarget: HTMLElement }) => {
    const to = (index + by + items.length) % items.length
    const moved = <T,>(list: T[]): T[] => list.toSpliced(index, 1).toSpliced(to, 0, list[index] as T)
    keys.current = moved(keys.current)
    put(moved(items))
    setTimeout(() => currentTarget.focus())
  }
  const remove = (index: number) => {
    keys.current = keys.current.toSpliced(index, 1)
    put(items.toSpliced(index, 1))
  }
  return { keys: keys.current, added, add, move, remove }
}

/** The buttons below a message or on a card. */
export function ButtonsField({ path, editing }: { path: Path; editing: Editing }) {
  const typeAt = (at: Path) => textAt(editing.message, [...at, 'type']) as Button['type']
  const setType = (at: Path, type: Button['type']) => {
    const [id, text] = ['id', 'text'].map((name) => textAt(editing.message, [...at, name]))
    editing.set(at, { id, type, text, ...(type === 'quick_reply' && { payload: id }) })
  }
  const fresh = () => {
    const id = freeId(editing.message)
    return { id, type: 'quick_reply', text: '', payload: id }
  }
  return (
    <PartList
      part="button"
      path={path}
      editing={editing}
      fresh={fresh}
      summaryOf={(at) => ({
        icon: BUTTON_ICONS[typeAt(at)] ?? 'circle-alert',
        title: textAt(editing.message, [...at, 'text']),
        note: say.buttonTypes[typeAt(at)],
      })}
    >
      {(at) => (
        <>
          <Fields names={['text']} at={at} editing={editing} />
          <Select
            label={say.does}
            value={typeAt(at)}
            options={BUTTON_TYPES.map((value) => ({ value, text: say.buttonTypes[value] }))}
            onChange={(type) => setType(at, type)}
          />
          <Fields names={[...(BUTTON_FIELDS[typeAt(at)] ?? []), 'id']} at={at} editing={editing} />
        </>
      )}
    </PartList>
  )
}

/** An id that no button of the message has. */
function freeId(message: unknown): string {
  const text = JSON.stringify(message)
  let index = 1
  while (text.includes(`"button-${index}"`)) index += 1
  return `button-${index}`
}

/** The cards of a carousel. */
export function CardsField({ editing }: { editing: Editing }) {
  return (
    <PartList
      part="card"
      path={['data', 'cards']}
      editing={editing}
      fresh={() => ({ title: '' })}
      summaryOf={(at) => ({ icon: 'image', title: textAt(editing.message, [...at, 'title']) })}
    >
      {(at) => (
        <>
          <Fields names={CARD_FIELDS} at={at} editing={editing} />
          <ButtonsField path={[...at, 'buttons']} editing={editing} />
        </>
      )}
    </PartList>
  )
}
