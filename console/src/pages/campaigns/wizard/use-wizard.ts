import { useState } from 'preact/hooks'
import { draftOf, forgetDraft, keepDraft } from '../../../app/drafts.ts'
import { useFrame } from '../../../app/session.tsx'
import { type Draft, EMPTY } from './draft.ts'

/** `key`: the Idempotency-Key. */
type Kept = { draft: Draft; key: string }

/**
 * The campaign that a person prepares, kept in the tab over a reload. It has one key from the first step until it is created, also while it
 * changes: if a response was lost, a changed request does not create a second campaign, but is refused.
 */
export function useWizard() {
  const { account, session } = useFrame()
  const name = `campaign-${session.personId}-${account.accountId}`
  const [{ draft, key }, setKept] = useState<Kept>(() => {
    const kept = draftOf<Kept>(name)
    return { draft: { ...EMPTY, ...kept?.draft }, key: kept?.key ?? crypto.randomUUID() }
  })
  const keep = (next: Draft, nextKey = key) => {
    setKept({ draft: next, key: nextKey })
    keepDraft(name, { draft: next, key: nextKey })
  }
  const change = (more: Partial<Draft>) => keep({ ...draft, ...more })
  /** The same key after a reload, even if nothing was changed since. */
  const keepForRetry = () => keep(draft)
  const startAnew = (next: Draft) => keep(next, crypto.randomUUID())
  const forget = () => forgetDraft(name)
  return { draft, key, change, keepForRetry, startAnew, forget }
}
