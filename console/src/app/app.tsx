import { useEffect, useRef, useState } from 'preact/hooks'
import { Loading } from '../kit/display.tsx'
import { Problem } from '../kit/problem.tsx'
import { SetUpPage } from '../pages/set-up.tsx'
import { SignInPage } from '../pages/sign-in.tsx'
import { ApiProblem, ask, askAll, UNAUTHORIZED } from './api.ts'
import { forgetAllDrafts } from './drafts.ts'
import type { Account, Session } from './session.tsx'
import { Shell } from './shell.tsx'

type State =
  | { is: 'loading' }
  | { is: 'failed'; problem: ApiProblem }
  | { is: 'signed-out' }
  | { is: 'signed-in'; session: Session; accounts: Account[] }

/**
 * The secret of a one-time link. It is removed from the address at once, so that it stays in no history, and kept for a reload of the page.
 */
function takeSetUpToken(): string | undefined {
  const token = /^#setup=(.+)$/.exec(location.hash)?.[1]
  if (token !== undefined) history.replaceState({ setUpToken: token }, '', location.pathname)
  return (history.state as { setUpToken?: string } | null)?.setUpToken
}

/** Notifies the other tabs of the browser that a person has signed in or out: they share the cookie. */
const sessions = new BroadcastChannel('herald-session')

/** When to read again who is signed in after a read that failed. */
const AGAIN_MS = 5_000

export function App() {
  const [token, endSetUp] = useSetUpToken()
  const { state, reload, load, signedOut } = useSession(token === undefined)
  const changed = () => {
    sessions.postMessage('changed')
    load()
  }
  if (token !== undefined) return <SetUpPage token={token} onDone={endSetUp} />
  switch (state.is) {
    case 'loading':
      return <Loading />
    case 'failed':
      return (
        <main>
          <Problem problem={state.problem} onRetry={load} />
        </main>
      )
    case 'signed-out':
      return <SignInPage onDone={changed} />
    case 'signed-in':
      return (
        <Shell
          key={state.session.personId}
          session={state.session}
          accounts={state.accounts}
          onAccountsChanged={reload}
          onSignedOut={signedOut}
        />
      )
  }
}

/** The secret of a one-time link, until the person has used it. */
function useSetUpToken(): [token: string | undefined, end: () => void] {
  const [token, setToken] = useState(takeSetUpToken)
  useEffect(() => {
    // A link that is pasted into a tab with the console does not load the page again.
    const takeAgain = () => setToken(takeSetUpToken)
    addEventListener('hashchange', takeAgain)
    return () => removeEventListener('hashchange', takeAgain)
  }, [])
  const end = () => {
    history.replaceState(null, '', location.pathname)
    sessions.postMessage('changed')
    setToken(undefined)
  }
  return [token, end]
}

/** Who is signed in. It is read again after a 401, and after another tab has signed a person in or out. */
function useSession(isWanted: boolean) {
  const [state, reload, set] = useRead()
  const load = () => void reload()
  useEffect(() => {
    if (!isWanted) return
    load()
    sessions.onmessage = ({ data }) => {
      if (data === 'signed-out') forgetAllDrafts()
      load()
    }
    // A wrong password also gets a 401: then the state stays the same.
    addEventListener(UNAUTHORIZED, load)
    return () => {
      sessions.onmessage = null
      removeEventListener(UNAUTHORIZED, load)
    }
  }, [isWanted])
  const signedOut = () => {
    forgetAllDrafts()
    sessions.postMessage('signed-out')
    // At once, since the pages would go on to read what they may no longer see.
    set({ is: 'signed-out' })
  }
  return { state, reload, load, signedOut }
}

/** A read that a later one or `set` has overtaken is ignored: it may have begun before the person signed out. */
function useRead() {
  const [state, setState] = useState<State>({ is: 'loading' })
  const last = useRef(0)
  const set = (next: State) => {
    last.current += 1
    setState(next)
  }
  const reload = async () => {
    last.current += 1
    const mine = last.current
    const read = await readState()
    if (mine !== last.current) return
    // While a person is signed in, the shell stays: its dialogs and forms may have work, or a secret that is shown only once.
    setState((shown) => (read.is === 'failed' && shown.is === 'signed-in' ? shown : read))
    if (read.is === 'failed') setTimeout(() => mine === last.current && void reload(), AGAIN_MS)
  }
  return [state, reload, set] as const
}

async function readState(): Promise<State> {
  try {
    // Asked first, since browsers report a response of 401 as an error of the page.
    const { isSignedIn } = await ask<{ isSignedIn: boolean }>('/sign-in-options')
    if (!isSignedIn) return { is: 'signed-out' }
    const session = await ask<Session>('/session')
    return { is: 'signed-in', session, accounts: await askAll<Account>('/accounts') }
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return error.status === 401 ? { is: 'signed-out' } : { is: 'failed', problem: error }
  }
}
