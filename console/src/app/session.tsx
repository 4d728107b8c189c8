import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import * as sendWords from '../words/en-send.ts'
import type { LiveEvent, LiveState } from './live.ts'
import type { WithPassword } from './password.tsx'

export type Role = 'viewer' | 'admin' | 'operator'
export type Module = 'rcs' | 'sms'

export type Session = {
  sessionId: string
  personId: number
  email: string
  name: string
  isOperator: boolean
  roles: { accountId: number; role: Role }[]
  hasPassword: boolean
  isConfirmed: boolean
}

export type Account = { accountId: number; name: string; modules: Module[]; suspendedAt?: string; role: Role }

/** Why the person can't send from the account. Undefined: they can. */
export function whyNotSend({ role, suspendedAt, modules }: Account): string | undefined {
  if (role === 'viewer') return sendWords.onlyReads
  if (suspendedAt !== undefined) return sendWords.suspended
  return modules.includes('rcs') ? undefined : sendWords.noRcs
}

/** What every page of an account knows. */
export type Frame = {
  session: Session
  account: Account
  /** All accounts of the person. */
  accounts: Account[]
  live: LiveState
  /** Calls the function for what happens in the account, until the returned function is called. */
  listen: (listener: (event: LiveEvent) => void) => () => void
  withPassword: WithPassword
  /** Reads the accounts again after one was created or changed. */
  accountsChanged: () => Promise<void>
}

export const FrameContext = createContext<Frame | undefined>(undefined)

export function useFrame(): Frame {
  const frame = useContext(FrameContext)
  if (frame === undefined) throw new Error('a component outside the frame asked for the account')
  return frame
}
