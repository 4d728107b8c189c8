import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../kit/icon.tsx'
import { Problem } from '../kit/problem.tsx'
import * as say from '../words/en-palette.ts'
import type { ApiProblem } from './api.ts'
import { type Found, findAll } from './found.ts'
import { useKnown } from './known.ts'
import { useFrame } from './session.tsx'

const OPEN = 'herald-palette'

export function openPalette(): void {
  dispatchEvent(new Event(OPEN))
}

/** Opens the palette for Ctrl-K and for the button of the top bar, always empty. */
function usePalette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  // Not its place in the list, which changes while the lists of names arrive.
  const [chosen, setChosen] = useState<string>()
  const [problem, setProblem] = useState<ApiProblem>()
  const [opened, setOpened] = useState(0)
  useEffect(() => {
    const open = () => {
      // Another dialog waits for a decision.
      if (document.querySelector('dialog[open]') !== null) return
      // Not on close: that event is asynchronous, and could clear what a person types into the palette that is opened next.
      setText('')
      setChosen(undefined)
      setProblem(undefined)
      setOpened((times) => times + 1)
      dialog.current?.showModal()
    }
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      open()
    }
    addEventListener('keydown', onKey)
    addEventListener(OPEN, open)
    return () => {
      removeEventListener('keydown', onKey)
      removeEventListener(OPEN, open)
    }
  }, [])
  return { dialog, opened, text, setText, chosen, setChosen, problem, setProblem }
}

/** Finds any page, action, id, number or reference by the keyboard: Ctrl-K. */
export function Palette({ onSignOut }: { onSignOut: () => Promise<void> }) {
  const { account } = useFrame()
  const { dialog, opened, text, setText, chosen: chosenKey, setChosen, problem, setProblem } = usePalette()
  const { known, problem: unread, reload } = useKnown(opened)
  const close = () => dialog.current?.close()
  const signOut = () => onSignOut().then(close, (error: ApiProblem) => setProblem(error))
  const found = findAll(account, known, signOut, text)
  const chosen = Math.max(
    0,
    found.findIndex(({ href }) => href === chosenKey),
  )
  // The list scrolls, and the focus stays in the field.
  useEffect(() => document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen, opened])
  const choose = (target: Found) => {
    if (target.run) return void target.run()
    close()
    location.hash = target.href
  }
  return (
    <dialog ref={dialog} class="palette" aria-label={say.label} closedby="any">
      <input
        class="palette-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-found"
        aria-activedescendant={`palette-${chosen}`}
        aria-label={say.open}
        placeholder={say.open}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setChosen(undefined)
        }}
        onKeyDown={(event) => followKey(event, found, chosen, (next) => setChosen(next.href), choose)}
      />
      <div id="palette-found" role="listbox" aria-label={say.label}>
        {found.map((each, index) => (
          <Option key={each.href} id={`palette-${index}`} found={each} isChosen={index === chosen} onClose={close} />
        ))}
      </div>
      {problem && <Problem problem={problem} />}
      {unread && <Problem problem={unread} onRetry={reload} />}
      {found.length === 0 && <p class="soft">{say.nothing}</p>}
    </dialog>
  )
}

/** Up and down choose another option, around the ends, and Enter takes the chosen one. */
function followKey(
  event: KeyboardEvent,
  found: Found[],
  chosen: number,
  setChosen: (found: Found) => void,
  choose: (found: Found) => void,
): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const next = found[(chosen + step + found.length) % found.length]
  if (step !== 0 && next !== undefined) {
    event.preventDefault()
    setChosen(next)
  }
  // While a person composes a character, Enter ends that.
  if (event.key !== 'Enter' || event.isComposing) return
  // The dialog gives the focus back when it closes. Without this, the key would then press what had it, such as a button that sends.
  event.preventDefault()
  const target = found[chosen]
  if (target !== undefined) choose(target)
}

type OptionProps = { id: string; found: Found; isChosen: boolean; onClose: () => void }

function Option({ id, found: { text, icon, href, run }, isChosen, onClose }: OptionProps) {
  const press = (event: Event) => {
    if (run === undefined) return onClose()
    event.preventDefault()
    void run()
  }
  return (
    <a id={id} role="option" tabIndex={-1} aria-selected={isChosen} href={href} onClick={press}>
      <Icon name={icon} size={16} /> {text}
    </a>
  )
}
