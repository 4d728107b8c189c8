import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon, type IconName } from '../kit/icon.tsx'
import { Problem } from '../kit/problem.tsx'
import { meaningsOf } from '../pages/messages/query.ts'
import { PAGES } from '../pages/pages.ts'
import { words } from '../words/words.ts'
import type { ApiProblem } from './api.ts'
import { type Known, matching, useKnown } from './known.ts'
import { linkTo } from './place.ts'
import { type Account, useFrame } from './session.tsx'

const OPEN = 'herald-palette'

export function openPalette(): void {
  dispatchEvent(new Event(OPEN))
}

/** A place, or something to do. */
type Found = { text: string; icon: IconName } & ({ href: string } | { run: () => Promise<void> })

/** The pages and actions whose names contain the text. */
function named({ accountId, role }: Account, signOut: () => Promise<void>, wanted: string): Found[] {
  const pages = PAGES.map(({ name, title, icon }) => ({ text: title, icon, href: linkTo({ accountId, path: [name] }) }))
  const add = { text: words.webhooks.add, icon: 'plus' as const, href: linkTo({ accountId, path: ['webhooks', 'new'] }) }
  const actions: Found[] = [...(role === 'viewer' ? [] : [add]), { text: words.frame.signOut, icon: 'log-out', run: signOut }]
  return [...pages, ...actions].filter(({ text }) => text.toLowerCase().includes(wanted.trim().toLowerCase()))
}

/** The messages that a text can mean: by an id, a number or a reference. */
function messagesOf(accountId: number, text: string): Found[] {
  const { messageId, recipient, campaignId, clientReferenceId } = meaningsOf(text)
  const say = words.palette
  const list = (icon: IconName, title: string, query: Record<string, string>) => ({
    text: title,
    icon,
    href: linkTo({ accountId, path: ['messages'], query }),
  })
  return [
    messageId && {
      text: say.message(messageId),
      icon: 'message-square' as const,
      href: linkTo({ accountId, path: ['messages', messageId] }),
    },
    recipient && list('smartphone', say.numberOf(recipient), { recipient }),
    campaignId && list('search', say.campaignOf(campaignId), { campaignId }),
    clientReferenceId && list('search', say.referenceOf(clientReferenceId), { clientReferenceId }),
  ].filter((each) => each !== undefined && each !== '')
}

/** Agents, endpoints and other accounts whose names or ids the text has. */
function knownBy(accountId: number, known: Known, text: string): Found[] {
  const { agents, endpoints, accounts } = matching(known, text)
  const say = words.palette
  return [
    ...endpoints.map(({ endpointId, url }) => ({
      text: say.endpoint(endpointId, url),
      icon: 'webhook' as const,
      href: linkTo({ accountId, path: ['webhooks', String(endpointId)] }),
    })),
    ...agents.map(({ agentId, name }) => ({
      text: say.agent(name, agentId),
      icon: 'bot' as const,
      href: linkTo({ accountId, path: ['messages'], query: { agentId } }),
    })),
    ...accounts.map((account) => ({
      text: say.account(account.name, account.accountId),
      icon: 'building-2' as const,
      href: linkTo({ accountId: account.accountId, path: [] }),
    })),
  ]
}

/** An id may be that of an event: what was posted to each endpoint. */
function eventsOf(accountId: number, { endpoints }: Known, text: string): Found[] {
  const { messageId: eventId } = meaningsOf(text)
  if (eventId === undefined) return []
  return endpoints.map(({ endpointId, url }) => ({
    text: words.palette.eventAt(eventId, url),
    icon: 'webhook' as const,
    href: linkTo({ accountId, path: ['webhooks', String(endpointId)], query: { eventId } }),
  }))
}

/** Opens the palette for Ctrl-K and for the button of the top bar, always empty. */
function usePalette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const [problem, setProblem] = useState<ApiProblem>()
  const [opened, setOpened] = useState(0)
  useEffect(() => {
    const open = () => {
      // Another dialog waits for a decision.
      if (document.querySelector('dialog[open]') !== null) return
      // Not on close: that event is asynchronous, and could clear what a person types into the palette that is opened next.
      setText('')
      setChosen(0)
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
export function Palette({ accounts, onSignOut }: { accounts: Account[]; onSignOut: () => Promise<void> }) {
  const { account } = useFrame()
  const { dialog, opened, text, setText, chosen, setChosen, problem, setProblem } = usePalette()
  const { known, problem: unread, reload } = useKnown(opened, accounts)
  const close = () => dialog.current?.close()
  const signOut = () => onSignOut().then(close, (error: ApiProblem) => setProblem(error))
  const { accountId } = account
  const found = [
    ...named(account, signOut, text),
    ...knownBy(accountId, known, text),
    ...messagesOf(accountId, text),
    ...eventsOf(accountId, known, text),
  ]
  const choose = (target: Found) => {
    if ('run' in target) return void target.run()
    close()
    location.hash = target.href
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0 && found.length > 0) {
      event.preventDefault()
      setChosen((chosen + step + found.length) % found.length)
    }
    const target = found[chosen]
    if (event.key !== 'Enter') return
    // The dialog gives the focus back when it closes. Without this, the key would then press what had it, such as a button that sends.
    event.preventDefault()
    if (target !== undefined) choose(target)
  }
  return (
    <dialog ref={dialog} class="palette" aria-label={words.palette.label} closedby="any">
      <input
        class="palette-input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-found"
        aria-activedescendant={`palette-${chosen}`}
        aria-label={words.palette.open}
        placeholder={words.palette.open}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setChosen(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-found" role="listbox" aria-label={words.palette.label}>
        {found.map((each, index) => (
          <Option key={each.text} id={`palette-${index}`} found={each} isChosen={index === chosen} onClose={close} />
        ))}
      </div>
      {problem && <Problem problem={problem} />}
      {unread && <Problem problem={unread} onRetry={reload} />}
      {found.length === 0 && <p class="soft">{words.palette.nothing}</p>}
    </dialog>
  )
}

type OptionProps = { id: string; found: Found; isChosen: boolean; onClose: () => void }

function Option({ id, found, isChosen, onClose }: OptionProps) {
  const content = (
    <>
      <Icon name={found.icon} size={16} /> {found.text}
    </>
  )
  const attributes = { id, role: 'option', tabIndex: -1, 'aria-selected': isChosen } as const
  if ('href' in found)
    return (
      <a {...attributes} href={found.href} onClick={onClose}>
        {content}
      </a>
    )
  return (
    <button {...attributes} type="button" onClick={() => void found.run()}>
      {content}
    </button>
  )
}
