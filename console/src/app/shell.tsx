import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Button } from '../kit/controls.tsx'
import { Empty, Loading } from '../kit/display.tsx'
import { FirstAccount } from '../pages/accounts/first-account.tsx'
import { pageAt } from '../pages/pages.ts'
import { pages } from '../words/en.ts'
import * as frameWords from '../words/en-frame.ts'
import * as kitWords from '../words/en-kit.ts'
import { ApiProblem, ask } from './api.ts'
import { followAccount, type LiveEvent, type LiveState } from './live.ts'
import { Palette } from './palette.tsx'
import { usePassword } from './password.tsx'
import { linkTo, linkWith, type Place, usePlace } from './place.ts'
import { type Account, FrameContext, type Session } from './session.tsx'
import { SideBar } from './side-bar.tsx'
import { SignOut, TopBar } from './top-bar.tsx'

type Props = { session: Session; accounts: Account[]; onAccountsChanged: () => Promise<void>; onSignedOut: () => void }

/** The frame of all pages: which account, which page, and whether it is live. */
export function Shell({ session, accounts, onAccountsChanged, onSignedOut }: Props) {
  const place = usePlace()
  const account = accounts.find(({ accountId }) => accountId === place.accountId)
  const [first] = accounts
  useEffect(() => {
    if (place.accountId !== undefined || first === undefined) return
    location.replace(linkTo({ accountId: first.accountId, path: place.path, query: Object.fromEntries(place.query) }))
  }, [place, first])
  /** Throws if the session may not have ended. */
  const signOut = async () => {
    await ask('/session', { method: 'DELETE' }).catch((error: unknown) => {
      if (!(error instanceof ApiProblem && error.status === 401)) throw error
    })
    onSignedOut()
  }
  if (first === undefined) {
    return (
      <main>
        <Empty icon="building-2" title={frameWords.noAccount} isPage>
          {session.isOperator ? <FirstAccount onCreated={onAccountsChanged} /> : <p>{frameWords.noAccountHint}</p>}
          <SignOut onSignOut={signOut} />
        </Empty>
      </main>
    )
  }
  // The address will have an account in a moment.
  if (place.accountId === undefined) return <Loading />
  if (account === undefined) {
    return (
      <main>
        <NoPage accountId={first.accountId} />
      </main>
    )
  }
  return (
    <AccountShell
      key={account.accountId}
      {...{ session, account, accounts, place }}
      onAccountsChanged={onAccountsChanged}
      onSignOut={signOut}
    />
  )
}

type AccountProps = Omit<Props, 'onSignedOut'> & { account: Account; place: Place; onSignOut: () => Promise<void> }

function AccountShell({ session, account, accounts, place, onAccountsChanged, onSignOut }: AccountProps) {
  const { live, listen } = useLive(account.accountId, session.personId)
  const { withPassword, dialog } = usePassword(session)
  const frame = { session, account, accounts, live, listen, withPassword, accountsChanged: onAccountsChanged }
  const page = pageAt(place, account.role)
  const main = useRef<HTMLElement>(null)
  const title = page && pages[page.name]
  useEffect(() => {
    document.title = title === undefined ? 'Herald' : `${title} · ${account.name} · Herald`
    return () => {
      document.title = 'Herald'
    }
  }, [title, account.name])
  useKeptFocus(main, linkWith(place))
  // The part of the address behind # is the place.
  const skip = (event: Event) => {
    event.preventDefault()
    main.current?.focus()
  }
  return (
    <FrameContext.Provider value={frame}>
      <div class="shell">
        {/* biome-ignore lint/a11y/useValidAnchor: it leads to an element, as skip links do, but the address is the place. */}
        <a class="skip" href="#main" onClick={skip}>
          {frameWords.skip}
        </a>
        <SideBar accounts={accounts} current={page?.name} />
        <div class="page">
          <TopBar onSignOut={onSignOut} />
          {/* Narrow pages do not show the side bar, which says so, too. */}
          <p class="lost tone-bad" role="status">
            {live === 'lost' && frameWords.liveStates.lost}
          </p>
          <main id="main" ref={main} tabIndex={-1}>
            {page === undefined ? (
              <NoPage accountId={account.accountId} />
            ) : (
              <Guarded key={page.name} at={linkWith(place)}>
                <page.Page place={place} />
              </Guarded>
            )}
          </main>
        </div>
        <Palette onSignOut={onSignOut} />
        {dialog}
      </div>
    </FrameContext.Provider>
  )
}

/** A fault of a page leaves the frame as it is, so that the person can go on elsewhere, also at another place of the same page. */
function Guarded({ at, children }: { at: string; children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((thrown: unknown) => console.error(thrown))
  const last = useRef(at)
  useLayoutEffect(() => {
    if (last.current !== at) reset()
    last.current = at
  })
  if (error === undefined) return children
  return (
    <Empty icon="circle-x" title={frameWords.broken} isPage>
      <p>{frameWords.brokenHint}</p>
      <Button onClick={reset}>{kitWords.retry}</Button>
    </Empty>
  )
}

/** What had the focus may not exist in a new place. Then the content gets it, so that Tab continues there and screen readers read it. */
function useKeptFocus(main: RefObject<HTMLElement | null>, place: string): void {
  // Before the browser handles another key.
  useLayoutEffect(() => {
    // On a page that was just loaded, the first stop of Tab is the link that skips the navigation.
    const isLost = navigator.userActivation.hasBeenActive && document.activeElement === document.body
    if (isLost) main.current?.focus({ preventScroll: true })
  }, [main, place])
}

function NoPage({ accountId }: { accountId: number }) {
  return (
    <Empty icon="compass" title={frameWords.noPage} isPage>
      <p>{frameWords.noPageHint}</p>
      <a href={linkTo({ accountId, path: [] })}>{frameWords.toOverview}</a>
    </Empty>
  )
}

/** One stream for all components of the page. */
function useLive(accountId: number, personId: number) {
  const [live, setLive] = useState<LiveState>('connecting')
  const listeners = useRef(new Set<(event: LiveEvent) => void>())
  useEffect(() => {
    const onEvent = (event: LiveEvent) => {
      for (const listener of listeners.current) listener(event)
    }
    return followAccount({ accountId, personId, onState: setLive, onEvent })
  }, [accountId, personId])
  const listen = useMemo(
    () => (listener: (event: LiveEvent) => void) => {
      listeners.current.add(listener)
      return () => void listeners.current.delete(listener)
    },
    [],
  )
  return { live, listen }
}
