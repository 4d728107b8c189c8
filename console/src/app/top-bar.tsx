import { useRef, useState } from 'preact/hooks'
import { Button, ButtonLink } from '../kit/controls.tsx'
import { Icon } from '../kit/icon.tsx'
import { Problem, sentenceOf } from '../kit/problem.tsx'
import { pages } from '../words/en.ts'
import * as frameWords from '../words/en-frame.ts'
import * as kitWords from '../words/en-kit.ts'
import * as paletteWords from '../words/en-palette.ts'
import type { ApiProblem } from './api.ts'
import { useCarriers } from './carriers.ts'
import { openPalette } from './palette.tsx'
import { linkHere } from './place.ts'
import { useFrame } from './session.tsx'

export function TopBar({ onSignOut }: { onSignOut: () => Promise<void> }) {
  const { session } = useFrame()
  const menu = useRef<HTMLDivElement>(null)
  return (
    <header class="top">
      <button type="button" class="menu-button" popovertarget="side" aria-label={frameWords.menu}>
        <Icon name="menu" size={20} />
      </button>
      <button type="button" class="palette-button" onClick={openPalette}>
        <Icon name="search" size={15} /> <span>{paletteWords.open}</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Network />
      <button type="button" class="avatar me" popovertarget="me" data-initials={session.name.slice(0, 1).toUpperCase()}>
        <span class="sr">{frameWords.signedInAs(session.name)}</span>
      </button>
      <div ref={menu} id="me" popover="auto" class="card me-menu">
        <b>{session.name}</b>
        <small>{session.email}</small>
        <ButtonLink icon="user-round" href={linkHere(['me'])} onClick={() => menu.current?.hidePopover()}>
          {pages.me}
        </ButtonLink>
        <SignOut onSignOut={onSignOut} />
      </div>
    </header>
  )
}

export function SignOut({ onSignOut }: { onSignOut: () => Promise<void> }) {
  const [problem, setProblem] = useState<ApiProblem>()
  const signOut = () => onSignOut().catch((error: ApiProblem) => setProblem(error))
  return (
    <>
      <Button icon="log-out" onClick={() => void signOut()}>
        {frameWords.signOut}
      </Button>
      {problem && <Problem problem={problem} />}
    </>
  )
}

/** Says whether messages go to real phones. */
function Network() {
  const { carriers, problem, reload } = useCarriers()
  if (carriers === undefined && problem !== undefined) {
    return (
      <button type="button" class="net tone-bad" title={sentenceOf(problem)} onClick={reload}>
        <Icon name="refresh-cw" size={15} /> {frameWords.network.unknown} <span class="sr">{kitWords.retry}</span>
      </button>
    )
  }
  // An account without agents has no network.
  if (carriers === undefined || carriers.length === 0) return <span class="net" />
  const simulated = carriers.filter(({ isSimulated }) => isSimulated).length
  const kind = simulated === 0 ? 'real' : simulated === carriers.length ? 'simulated' : 'both'
  return (
    <span class={`net ${kind === 'simulated' ? 'tone-warn' : 'tone-good'}`}>
      <Icon name="radio-tower" size={15} /> {frameWords.network[kind]}
    </span>
  )
}
